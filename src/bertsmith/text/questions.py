"""Questions about texts, a row each: out of SQuAD's JSON (Rajpurkar et al. 2016; 2018) and out of tables."""

import json
import math
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertsmith.foundation.errors import InputError
from bertsmith.text.decoding import decoded_chunks
from bertsmith.text.tables import TableRow, bad_row, refuse_half_pair, table_rows
from bertsmith.text.written_values import read_written

ID, QUESTION, CONTEXT, ANSWERS, ANSWER_START, IMPOSSIBLE = (
    "id",
    "question",
    "context",
    "answers",
    "answer_start",
    "is_impossible",
)
"""Names that SQuAD gives to the parts of a question, which its rows have here too."""
_COMPRESSED = (".gz", ".zst")
_WHOLE_NUMBER = re.compile(r"(-?\d{1,18})(?:\.0*)?", re.ASCII)
"""Also as programs write it that have the offsets of a table as numbers with fractions: ``7.0``."""
_NO_OFFSET = ("", "nan")
_WRITTEN_STARTS = re.compile(r"\s*\[[-\d.,\s]*\]\s*")


@dataclass(frozen=True)
class GoldAnswer:
    """An answer that a person gave."""

    text: str
    """As it was written."""
    start: int | None
    """Where it begins in the context, in code points; None where that is not known."""
    end: int | None
    """Behind its last code point."""

    def placed(self, context: str) -> "GoldAnswer":
        """The answer at its place in a context.

        Where it does not stand at its offset, it is looked for elsewhere, any white space counting as any other: the
        occurrence nearest to the offset is taken. Without one, its place is not known.
        """
        if self.start is not None and self.start >= 0 and context[self.start : self.end] == self.text:
            return self
        pattern = r"\s+".join(re.escape(word) for word in self.text.split())
        # Looking ahead finds occurrences that overlap, too.
        found = [match.span(1) for match in re.finditer(f"(?=({pattern}))", context)]
        if not found:
            return replace(self, start=None, end=None)
        wanted = self.start or 0
        start, end = min(found, key=lambda span: abs(span[0] - wanted))
        return replace(self, start=start, end=end)


@dataclass(frozen=True)
class Question:
    """A question about a text."""

    place: str
    """Where it stands in its file."""
    id: str
    """The file's own name for it, or its place where it has none."""
    question: str
    context: str
    answers: tuple[GoldAnswer, ...]
    """Every answer that counts as right; none where the context does not answer the question."""

    @property
    def key(self) -> tuple[str, str]:
        """Question and context: what a model is shown."""
        return self.question, self.context

    @property
    def is_impossible(self) -> bool:
        """Whether the context does not answer it."""
        return not self.answers

    @property
    def answer(self) -> GoldAnswer | None:
        """The first answer whose place is known."""
        return next((answer for answer in self.answers if answer.start is not None), None)


def is_question_file(path: Path) -> bool:
    """Whether a file's name says that it is SQuAD's JSON."""
    name = path.name.lower()
    for compressed in _COMPRESSED:
        name = name.removesuffix(compressed)
    return name.endswith(".json")


def question_rows(path: Path, encoding: str = "utf-8") -> Iterator[TableRow]:
    """The rows of a file of questions, with line ends as they were written, since offsets count them.

    A .json file is SQuAD's, version 1.1 or 2.0, and its rows have SQuAD's names; what it holds beside them is left out,
    and so are answers where no question has an entry for them. Any other file is a table.

    Raises:
        InputError: if the file cannot be read.
    """
    return _squad_rows(path, encoding) if is_question_file(path) else table_rows(path, encoding, as_written=True)


def gold_answers(path: Path, row: TableRow, column: str | None) -> tuple[GoldAnswer, ...]:
    """The answers of a row: SQuAD's list of objects, an object of lists, or a text with its start in another column.

    Lists and objects may be written out as text, as they are in a .csv file.

    Args:
        path: the row's file, for errors.
        row: the row.
        column: where the answers stand; None where there are none.

    Returns:
        the answers as they were written, those left out that are blank.

    Raises:
        InputError: if they are something else.
    """
    found: list[GoldAnswer] = []
    for text, start in _written_answers(path, row, column):
        if text is None or (isinstance(text, str) and not text.strip()):
            continue
        if not isinstance(text, str):
            raise _bad_answers(path, row, column, text)
        refuse_half_pair(path, row.place, text)
        at = _offset(path, row, column, start)
        found.append(GoldAnswer(text, at, None if at is None else at + len(text)))
    return tuple(found)


def _written_answers(path: Path, row: TableRow, column: str | None) -> list[tuple[Any, Any]]:
    """Texts and starts, whatever they are."""
    written = None if column is None else row.values.get(column)
    beside = row.values.get(ANSWER_START)
    try:
        if isinstance(written, str) and _is_written_out(written):
            written = read_written(written)
        if isinstance(written, list) and isinstance(beside, str) and _WRITTEN_STARTS.fullmatch(beside):
            beside = read_written(beside)
    except ValueError as error:
        raise _bad_answers(path, row, column, str(error)) from None
    match written:
        case None:
            return []
        case float() if math.isnan(written):
            return []
        case dict() if "text" in written or not written:
            texts, starts = written.get("text", []), written.get(ANSWER_START)
        case list() if all(isinstance(entry, dict) and "text" in entry for entry in written):
            texts, starts = ([entry.get(name) for entry in written] for name in ("text", ANSWER_START))
        case str() | list():
            texts, starts = written, beside
        case _:
            raise _bad_answers(path, row, column, written)
    texts = texts if isinstance(texts, list) else [texts]
    starts = starts if isinstance(starts, list) else [starts] * len(texts)
    if len(starts) != len(texts):
        raise _bad_answers(path, row, column, f"{len(texts)} texts and {len(starts)} starts")
    return list(zip(texts, starts, strict=True))


def _is_written_out(text: str) -> bool:
    """Whether a text is an empty list or object, or one with texts in it; an answer may be ``[1]`` or ``[sic]``."""
    bare = text.strip()
    return bare[:1] + bare[-1:] in ("[]", "{}") and (not bare[1:-1].strip() or any(sign in bare for sign in "'\""))


def _offset(path: Path, row: TableRow, column: str | None, start: Any) -> int | None:
    match start:
        case None:
            return None
        case bool():
            pass
        case int():
            return start
        case float() if math.isnan(start):
            return None
        case float() if start.is_integer():
            return int(start)
        case str() if start.strip().lower() in _NO_OFFSET:
            return None
        case str() if found := _WHOLE_NUMBER.fullmatch(start.strip()):
            return int(found[1])
        case _:
            pass
    raise _bad_answers(path, row, column, f"{ANSWER_START}={start!r:.40}")


def _bad_answers(path: Path, row: TableRow, column: str | None, received: Any) -> InputError:
    wanted = f"answers as a text with its {ANSWER_START}, or as a list of them, under {column}"
    return bad_row(path, row.place, f"{received!r:.60}" if not isinstance(received, str) else received, wanted)


def _squad_rows(path: Path, encoding: str) -> Iterator[TableRow]:
    asked = list(_squad_questions(path, encoding))
    held = dict.fromkeys(name for question, _ in asked for name in question)
    if asked and (QUESTION not in held or all(context is None for _, context in asked)):
        raise _no_squad(path, f"whose objects must hold {QUESTION} and {CONTEXT}", f"they hold {', '.join(held)}")
    for number, (question, context) in enumerate(asked, 1):
        yield _squad_row(number, question, context, held)


def _squad_questions(path: Path, encoding: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Each question of a document with its context."""
    document = _json(path, encoding)
    number = 0
    for article in _list(path, document if isinstance(document, list) else document.get("data"), "under data"):
        where = f"after question {number}"
        if "paragraphs" not in article:  # Some keep a flat list of questions under the same names.
            number += 1
            yield article, article.get(CONTEXT)
            continue
        for paragraph in _list(path, article["paragraphs"], f"under paragraphs, {where}"):
            for question in _list(path, paragraph.get("qas"), f"under qas, after question {number}"):
                number += 1
                yield question, paragraph.get(CONTEXT)


def _squad_row(number: int, question: dict[str, Any], context: Any, held: Container[str]) -> TableRow:
    """A question as a row; `held` are the names of all that questions hold."""
    name = question.get(ID)
    place = f"question {number}" if name is None else f"question {number} (id {name})"
    parts = {ID: name, QUESTION: question.get(QUESTION), CONTEXT: context, ANSWERS: question.get(ANSWERS)}
    # Without answers anywhere they are unknown, which is not the same as none.
    values = {part: value for part, value in parts.items() if part in (QUESTION, CONTEXT) or part in held}
    if IMPOSSIBLE in question:
        values[IMPOSSIBLE] = question[IMPOSSIBLE]
    return TableRow(number, place, values)


def _json(path: Path, encoding: str) -> dict[str, Any] | list[Any]:
    text = "".join(decoded_chunks(path, encoding))
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            "A .json file of questions must be one JSON document, as SQuAD's are",
            f"{path}, which is none ({error})",
            "Mend the file; with an object on each line, name it .jsonl.",
        ) from None
    if not isinstance(document, (dict, list)):
        raise _no_squad(path, "data", f"a {type(document).__name__}")
    return document


def _list(path: Path, value: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise _no_squad(path, where, "none" if value is None else f"a {type(value).__name__}")
    wrong = next((entry for entry in value if not isinstance(entry, dict)), None)
    if wrong is not None or None in value:
        raise _no_squad(path, where, f"{wrong!r:.40} in it")
    return value


def _no_squad(path: Path, where: str, received: str) -> InputError:
    return InputError(
        "A .json file of questions must be laid out as SQuAD's: data, paragraphs, qas, each a list of objects",
        f"{path}, {where}: {received}",
        "Lay it out so, or write a row a question into a .jsonl file.",
    )
