"""Files of questions for a task: which column holds what, and answers brought to where they stand in their text."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertsmith.examples.data_look import skipped_notes
from bertsmith.examples.repeated_rows import repeats
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_columns import (
    SAMPLE_ROWS,
    Columns,
    column_names,
    missing_column,
    named_column,
    unknown_column,
)
from bertsmith.examples.task_tables import cell_text, is_blank, refuse_other_files, whole_rows
from bertsmith.foundation.errors import InputError
from bertsmith.text.questions import ID, IMPOSSIBLE, Question, gold_answers, is_question_file, question_rows
from bertsmith.text.shown import counted, counted_of, first_few
from bertsmith.text.tables import TableRow, bad_row
from bertsmith.text.written_values import read_flag

QUESTION_COLUMNS = ("question", "query")
"""Columns under which the question is looked for, in this order, where none is named. So are the next two."""
CONTEXT_COLUMNS = ("context", "passage", "paragraph", "document", "text")
ANSWER_COLUMNS = ("answers", "answer")


@dataclass(frozen=True)
class QuestionTable:
    """The questions of a file."""

    path: Path
    columns: Columns
    """Of question (text), context (pair) and answers (label)."""
    rows: tuple[Question, ...]
    notes: tuple[str, ...]
    """What stands out in them, a line each."""


def read_questions(
    path: Path, config: TableConfig = TableConfig(), *, options: OptionNames = OptionNames()
) -> QuestionTable:
    """Read a file of questions with their answers.

    A question with no answer, or marked ``is_impossible``, is one that its context does not answer. An answer that does
    not stand at its offset as written is brought to the nearest place where it does, white space aside, and one without
    an offset to the first; where there is none its place is not known, so that it is not trained on and still counts as
    right. All of it is said, and but for missing offsets refused under `config.strict`.

    Args:
        path: SQuAD's JSON, or a table with a row a question.
        config: how it is read: ``text`` is the question's column, ``pair`` the context's, ``label`` the answers'.
        options: what errors call the settings.

    Raises:
        InputError: if it cannot be read, a column is missing or cannot be told, or a row is blank or holds something
            else than a question, or ``is_impossible`` something else than a truth value.
    """
    columns, rows = open_questions(path, config, labels=True, options=options)
    impossible: list[str] = []

    def question(row: TableRow) -> Question:
        found = question_of(path, row, columns, options=options)
        if _is_marked(path, row) and found.answers:
            impossible.append(row.place)
            return replace(found, answers=())
        return found

    needed = [name for name in (columns.text, columns.pair) if name is not None]
    written, blank = whole_rows(
        path,
        rows,
        lambda row: [name for name in needed if is_blank(row.values, name)],
        question,
        config,
        options,
    )
    placed = tuple(replace(row, answers=tuple(answer.placed(row.context) for answer in row.answers)) for row in written)
    found, moved, lost = _misplaced(written, placed)
    faults = [
        _Told(
            moved,
            "answer does not stand at its offset as written, and the nearest place where it does is taken",
            "answers do not stand at their offset as written, and the nearest place where they do is taken",
        ),
        _Told(
            lost,
            "answer does not stand in its context, and is not trained on",
            "answers do not stand in their context, and are not trained on",
        ),
        _Told(
            impossible,
            "question has answers and is marked is_impossible, and the mark counts",
            "questions have answers and are marked is_impossible, and the mark counts",
        ),
    ]
    if config.strict:
        _refuse(path, faults, options)
    offset = _Told(
        found,
        "answer has no offset, and the first place where it stands is taken",
        "answers have no offset, and the first place where they stand is taken",
    )
    told = [offset, *faults]
    return QuestionTable(path, columns, placed, (*skipped_notes(blank), *_notes(placed, told)))


def open_questions(
    path: Path, config: TableConfig, *, labels: bool, options: OptionNames = OptionNames()
) -> tuple[Columns, Iterator[TableRow]]:
    """Open a file of questions: its columns, and its rows one at a time.

    Args:
        path: the file.
        config: how it is read.
        labels: whether answers are needed.
        options: what errors call the settings.

    Raises:
        InputError: if it cannot be read or its columns not be found.
    """
    rows = _rows(path, config, options)
    sample = list(itertools.islice(rows, SAMPLE_ROWS))
    if not sample:
        raise InputError("A file of questions must hold some", f"{path} without any", "Check the file.")
    return _columns(path, sample, config, labels, options), itertools.chain(sample, rows)


def question_of(path: Path, row: TableRow, columns: Columns, *, options: OptionNames = OptionNames()) -> Question:
    """A row as a question, with its answers where the columns say where they are, as they were written.

    Raises:
        InputError: the row's own fault; a blank question or context, or one that is no text; answers that are none.
    """
    if row.fault is not None:
        raise row.fault
    question = cell_text(path, row, columns.text, options)
    context = cell_text(path, row, str(columns.pair), options)
    name: Any = row.values.get(ID)
    return Question(
        row.place, row.place if name is None else str(name), question, context, gold_answers(path, row, columns.label)
    )


def _is_marked(path: Path, row: TableRow) -> bool:
    """Whether a row says that its context does not answer its question."""
    value = row.values.get(IMPOSSIBLE)
    flag = False if is_blank(row.values, IMPOSSIBLE) else read_flag(value)
    if flag is None:
        raise bad_row(path, row.place, f"{IMPOSSIBLE}={value!r:.60}", f"true or false, or nothing, under {IMPOSSIBLE}")
    return flag


def _rows(path: Path, config: TableConfig, options: OptionNames) -> Iterator[TableRow]:
    if not is_question_file(path):
        refuse_other_files(path)
    with options.mend_bytes():
        yield from question_rows(path, config.encoding)


def _columns(
    path: Path, sample: Sequence[TableRow], config: TableConfig, labels: bool, options: OptionNames
) -> Columns:
    names = column_names(path, sample)
    wanted = [
        ("question", options.text, config.text, QUESTION_COLUMNS),
        ("context", options.pair, config.pair, CONTEXT_COLUMNS),
    ]
    if labels:
        wanted.append(("answers", options.label, config.label, ANSWER_COLUMNS))
    found: list[str] = []
    for what, option, name, known in wanted:
        if name is not None and name not in names:
            raise missing_column(path, option, name, names)
        rest = [column for column in names if column not in (*found, config.text, config.pair, config.label)]
        column = name or next((column for one in known if (column := named_column(rest, one)) is not None), None)
        if column is None and is_question_file(path):
            raise InputError(
                "Questions to learn from or to score by need answers",
                f"{path}, whose questions hold {', '.join(names)}",
                "Give each its answers, as SQuAD does; an empty list says that the context does not answer it.",
            )
        if column is None:
            raise unknown_column(path, what, option, names)
        found.append(column)
    return Columns(found[0], found[1], found[2] if labels else None)


def _misplaced(written: Sequence[Question], placed: Sequence[Question]) -> tuple[list[str], list[str], list[str]]:
    """Places of answers that were found without an offset, that stand elsewhere than at theirs or with other white
    space, and that were not found."""
    found: list[str] = []
    moved: list[str] = []
    lost: list[str] = []
    for before, after in zip(written, placed, strict=True):
        for old, new in zip(before.answers, after.answers, strict=True):
            if new.start is None:
                lost.append(before.place)
            elif old.start is None:
                found.append(before.place)
            elif new is not old:
                moved.append(before.place)
    return found, moved, lost


@dataclass(frozen=True)
class _Told:
    """What is said of some rows: the fault, and behind a comma what becomes of it."""

    places: Sequence[str]
    one: str
    """Of a single one."""
    several: str
    """Of more."""

    def __str__(self) -> str:
        return counted(len(self.places), self.one, self.several)


def _refuse(path: Path, faults: Sequence[_Told], options: OptionNames) -> None:
    found = [f"{str(told).partition(',')[0]}: {_places(told.places)}" for told in faults if told.places]
    if found:
        raise InputError(
            f"Under {options.strict} answers must stand at their offsets, and impossible questions must have none",
            f"{path}, where {'; '.join(found)}",
            f"Mend these rows, or leave {options.strict} out to have them mended or passed over.",
        )


def _notes(questions: Sequence[Question], told: Sequence[_Told]) -> list[str]:
    notes = [f"{one}: {_places(one.places)}" for one in told if one.places]
    if doubles := len(repeats(questions)):
        repeat = ("repeats another about the same text", "repeat another about the same text")
        notes.append(counted_of(doubles, len(questions), "question", *repeat))
    return notes


def _places(places: Sequence[str]) -> str:
    """The first of some places, each once."""
    return first_few(list(dict.fromkeys(places)))
