"""Tables of multiple choice, in the form of SWAG: which column holds what, and rows with their choices."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_columns import (
    SAMPLE_ROWS,
    column_names,
    holds_texts_alone,
    missing_column,
    named_column,
    no_columns,
    unknown_column,
)
from bertsmith.examples.task_tables import cell_text, is_blank, open_rows, whole_rows
from bertsmith.examples.written_lists import read_offered
from bertsmith.foundation.errors import InputError
from bertsmith.text.shown import listed_names
from bertsmith.text.tables import TableRow, refuse_half_pair

CONTEXT_COLUMNS = (
    "sent1",
    "context",
    "ctx_a",
    "ctx",
    "article",
    "passage",
    "premise",
    "story",
    "question",
    "query",
    "goal",
    "prompt",
    "text",
    "sentence",
)
"""Columns under which the context is looked for, in this order, where none is named."""
START_COLUMNS = ("sent2", "ctx_b", "sentence_start", "start", "question")
"""Columns under which the start of the sentence that each choice ends is looked for."""
CHOICE_COLUMNS = ("choices", "endings", "options", "answers", "alternatives", "candidates")
"""Columns under which a list of choices is looked for."""
ANSWER_COLUMNS = ("label", "labels", "answer", "answerkey", "gold", "correct", "target", "answer_index", "gold_label")
"""Columns under which the right choice is looked for."""

_NUMBERED = re.compile(r"(ending|choice|option|answer|alternative|candidate|sol)[ _-]?(\d+|[a-h])")


@dataclass(frozen=True)
class ChoiceItem:
    """A context and the choices, one of which fits it."""

    text: str
    choices: tuple[str, ...]
    start: str = ""
    """Of the sentence that each choice ends; empty where the choices stand by themselves."""

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The two texts of each choice's sequence: the context, and the sentence with this choice."""
        return [(self.text, f"{self.start} {choice}" if self.start else choice) for choice in self.choices]


@dataclass(frozen=True)
class ChoiceRow:
    """One row of a file."""

    item: ChoiceItem
    label: Any
    """As it was written, or the right one's place where the row names its choices; None where rows have no labels."""
    place: str
    """Where it stands in its file."""

    @property
    def key(self) -> ChoiceItem:
        """What a model is shown of it."""
        return self.item

    @property
    def target(self) -> Any:
        """The label: rows with the same texts should have the same."""
        return self.label


@dataclass(frozen=True)
class ChoiceColumns:
    """Which column holds what."""

    text: str
    start: str | None
    choices: tuple[str, ...]
    """A column for each choice, or one that holds lists."""
    label: str | None
    by_text: bool | None = None
    """Whether labels that are text are the texts of choices, and not their places; None where that is not known."""

    def __str__(self) -> str:
        parts = {"text": self.text, "start": self.start}
        told = [f"{what} “{name}”" for what, name in parts.items() if name is not None]
        told.append(f"choices {', '.join(f'“{name}”' for name in self.choices)}")
        return ", ".join(told if self.label is None else [*told, f"label “{self.label}”"])


@dataclass(frozen=True)
class ChoiceTable:
    """The rows of a file."""

    path: Path
    columns: ChoiceColumns
    rows: tuple[ChoiceRow, ...]
    skipped: tuple[str, ...] = ()
    """Places of rows that were left out because something in them is blank."""


def read_choice_table(
    path: Path,
    config: TableConfig = TableConfig(),
    *,
    options: OptionNames = OptionNames(),
    like: ChoiceColumns | None = None,
) -> ChoiceTable:
    """Read a file whose every row has a context, two choices at least, and the right one.

    Args:
        path: the file.
        config: how it is read: ``text`` names the context's column, ``pair`` that of the sentence's start and ``label``
            that of the right choice.
        options: what errors call the settings.
        like: columns that are meant.

    Raises:
        InputError: if it cannot be read, a column is missing or cannot be told, a row has fewer than two choices or a
            gap in them, or is blank.
    """
    rows = open_rows(path, config, options)
    sample = list(itertools.islice(rows, SAMPLE_ROWS))
    columns = find_choice_columns(path, sample, config, options=options) if like is None else like
    _refuse_missing(path, sample, columns, options)
    needed = [name for name in (columns.text, columns.label) if name is not None]
    found, skipped = whole_rows(
        path,
        itertools.chain(sample, rows),
        lambda row: [name for name in needed if is_blank(row.values, name)],
        lambda row: choice_row(path, row, columns, options=options),
        config,
        options,
    )
    return ChoiceTable(path, columns, found, skipped)


def read_choices(
    path: Path, config: TableConfig = TableConfig(), *, options: OptionNames = OptionNames()
) -> tuple[ChoiceColumns, Iterator[TableRow]]:
    """Open a file of rows to be predicted: its columns, and its rows one at a time, for `choice_row`.

    Raises:
        InputError: if it cannot be read or its columns not be found.
    """
    rows = open_rows(path, config, options)
    sample = list(itertools.islice(rows, SAMPLE_ROWS))
    columns = find_choice_columns(path, sample, config, options=options, labels=False)
    return columns, itertools.chain(sample, rows)


def choice_row(path: Path, row: TableRow, columns: ChoiceColumns, *, options: OptionNames = OptionNames()) -> ChoiceRow:
    """A row by what its columns hold.

    Raises:
        InputError: the row's own fault, for a context that is blank or no text, fewer than two choices or a gap in
            them.
    """
    if row.fault is not None:
        raise row.fault
    text = cell_text(path, row, columns.text, options)
    has_start = columns.start is not None and not is_blank(row.values, columns.start)
    start = cell_text(path, row, columns.start, options) if has_start and columns.start is not None else ""
    label = None if columns.label is None else row.values.get(columns.label)
    if isinstance(label, str):
        refuse_half_pair(path, row.place, label)
    choices, names = _choices(path, row, columns)
    if names and label is not None:
        label = _named_choice(label, names, f"{path}, {row.place}: {columns.label}")
    return ChoiceRow(ChoiceItem(text, choices, start), label, row.place)


def find_choice_columns(
    path: Path, sample: Sequence[TableRow], config: TableConfig, *, options: OptionNames, labels: bool = True
) -> ChoiceColumns:
    """The columns that were named, or else those whose names tell.

    Raises:
        InputError: if one that was named is missing, or one that is needed cannot be told.
    """
    names = column_names(path, sample)
    given = [(options.text, config.text), (options.pair, config.pair)]
    if labels:
        given.append((options.label, config.label))
    for option, name in given:
        if name is not None and name not in names:
            raise missing_column(path, option, name, names)
    rest = [name for name in names if name not in [named for _, named in given]]
    choices = _choice_columns(rest)
    if not choices and holds_texts_alone(path):
        raise no_columns(path, "The choices must stand in columns")
    if not choices:
        raise InputError(
            "The columns of the choices must be known",
            f"{path} with the columns {', '.join(names)}",
            "Call them ending0, ending1 and so on, or choice0, choice1 and so on, or write lists under choices.",
        )
    rest = [name for name in rest if name not in choices]
    label = (config.label or _first(rest, ANSWER_COLUMNS)) if labels else None
    if labels and label is None:
        raise unknown_column(path, "label", options.label, names)
    text = config.text or _first(rest, CONTEXT_COLUMNS)
    if text is None:
        raise unknown_column(path, "text", options.text, names)
    # A context that was named stands alone, unless the start is named too.
    start = config.pair or (None if config.text else _first([name for name in rest if name != text], START_COLUMNS))
    return ChoiceColumns(text, start, choices, label)


def _refuse_missing(path: Path, sample: Sequence[TableRow], columns: ChoiceColumns, options: OptionNames) -> None:
    names = column_names(path, sample)
    # A file whose rows have fewer choices may lack the columns of the others.
    needed = [(options.text, columns.text), (options.pair, columns.start), (options.label, columns.label)]
    for option, name in [*needed, ("The choices", columns.choices[0])]:
        if name is not None and name not in names:
            raise missing_column(path, option, name, names)


def _choice_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Columns of one stem that are numbered or lettered, two at least; else one that is called after lists."""
    stems: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        if found := _NUMBERED.fullmatch(name.lower()):
            stem, number = found.groups()
            stems.setdefault(stem, []).append((int(number) if number.isdecimal() else ord(number), name))
    several = next((sorted(found) for found in stems.values() if len(found) > 1), None)
    if several is not None:
        return tuple(name for _, name in several)
    listed = _first(names, CHOICE_COLUMNS)
    return () if listed is None else (listed,)


def _first(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    return next((found for name in wanted if (found := named_column(names, name))), None)


def _choices(path: Path, row: TableRow, columns: ChoiceColumns) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The choices of a row, and what it calls them, if anything; blank ones at the end are none."""
    where = f"{path}, {row.place}"
    cells = [row.values.get(name) for name in columns.choices]
    found, names = (cells, ()) if len(cells) > 1 else _listed(cells[0], where, columns.choices[0])
    while found and (found[-1] is None or not str(found[-1]).strip()):
        found.pop()
    choices: list[str] = []
    for number, choice in enumerate(found):
        if not isinstance(choice, str) or not choice.strip():
            raise InputError(
                "A choice must be text, and none may be left out before the last",
                f"{where}: choice {number}, counted from 0, is {choice!r:.60}",
                "Mend the row; a row with fewer choices leaves out the last ones.",
            )
        refuse_half_pair(path, row.place, choice)
        choices.append(choice)
    if len(choices) < 2:
        raise InputError(
            "A row must have two choices at least", f"{where} with {len(choices)}", "Mend or remove the row."
        )
    return tuple(choices), names[: len(choices)]


def _listed(cell: Any, where: str, column: str) -> tuple[list[Any], tuple[str, ...]]:
    found = read_offered(cell)
    if found is None:
        raise InputError(
            "Choices in one column must be a list",
            f"{where}: {column}={cell!r:.60}",
            'Write one, such as ["a", "b"], or a column for each choice.',
        )
    return found


def _named_choice(label: Any, names: Sequence[str], where: str) -> int:
    """The place of the choice that a row's label names."""
    if (name := str(label).strip()) not in names:
        raise InputError(
            f"A label must name one of the row's choices: {listed_names(names)}",
            f"{where}={label!r:.60}",
            "Mend the row, or name another column with --label.",
        )
    return names.index(name)
