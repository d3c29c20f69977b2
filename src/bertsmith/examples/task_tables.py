"""Tables of a downstream task: which column holds what, and the rows with their labels as they were written."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from bertsmith.foundation.config import Config
from bertsmith.foundation.errors import InputError, near_match
from bertsmith.text.decoding import NotUtf8
from bertsmith.text.records import TEXT_COLUMNS
from bertsmith.text.sources import file_kind
from bertsmith.text.tables import TableRow, is_wordy, refuse_half_pair, table_rows

PAIR_COLUMNS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("sentence_a", "sentence_b"),
    ("question", "sentence"),
    ("question", "context"),
    ("query", "passage"),
    ("text", "text_pair"),
)
"""Columns that hold the two texts of a pair, where none is named."""
LABEL_COLUMNS = ("label", "labels", "class", "category", "target", "intent", "sentiment", "gold_label")
"""Columns under which the label is looked for, in this order, where none is named."""
_MORE_TEXT_COLUMNS = ("utterance", "question", "query", "review", "title")
_SAMPLE_ROWS = 100
_MOST_SHOWN = 5


class TableConfig(Config):
    """How the files of a task are read."""

    text: str | None = None
    """Column of the text; guessed, and said, where not given. The same holds for the next two."""
    pair: str | None = None
    """Column of the second text."""
    label: str | None = None
    encoding: Annotated[str, Field(min_length=1)] = "utf-8"
    blank_rows: Literal["refuse", "skip"] = "refuse"
    """What becomes of a row with a blank text or label."""


@dataclass(frozen=True)
class OptionNames:
    """How a command takes what stands in `TableConfig`, so that errors name options that it has."""

    text: str = "--text"
    pair: str = "--pair"
    label: str = "--label"
    encoding: str = "--encoding"
    skip_blank: str | None = None
    """What leaves blank rows out, where something does."""


@dataclass(frozen=True)
class Columns:
    """Which column holds what."""

    text: str
    pair: str | None
    label: str | None

    def __str__(self) -> str:
        parts = {"text": self.text, "pair": self.pair, "label": self.label}
        return ", ".join(f"{what} “{name}”" for what, name in parts.items() if name is not None)


@dataclass(frozen=True)
class TaskRow:
    """One row of a task."""

    text: str
    pair: str | None
    label: Any
    """As it was written; None where the task has no labels. The task itself knows what it must be."""
    place: str
    """Where it stands in its file."""

    @property
    def texts(self) -> str | tuple[str, str]:
        """The text, or both texts, as a tokenizer takes them."""
        return self.text if self.pair is None else (self.text, self.pair)


@dataclass(frozen=True)
class TaskTable:
    """The rows of a file."""

    path: Path
    columns: Columns
    rows: tuple[TaskRow, ...]
    skipped: tuple[str, ...] = ()
    """Places of rows that were left out because something in them is blank."""


def read_task_table(
    path: Path, config: TableConfig = TableConfig(), *, options: OptionNames = OptionNames()
) -> TaskTable:
    """Read a file whose every row has a label.

    Raises:
        InputError: if it cannot be read, a column is missing or cannot be guessed, or a row is ragged, holds no text
            or is blank.
    """
    rows = _rows(path, config, options)
    sample = list(itertools.islice(rows, _SAMPLE_ROWS))
    columns = find_columns(path, sample, config, labels=True, options=options)
    found: list[TaskRow] = []
    blank: list[str] = []
    for row in itertools.chain(sample, rows):
        if row.fault is not None:
            raise row.fault
        blanks = [name for name in (columns.text, columns.pair, columns.label) if name and _is_blank(row.values, name)]
        if blanks:
            blank.append(f"{row.place} ({', '.join(blanks)})")
        else:
            found.append(task_row(path, row, columns, options=options))
    if blank and config.blank_rows == "refuse":
        skip = options.skip_blank
        shown = ", ".join(blank[:_MOST_SHOWN]) + (" …" if len(blank) > _MOST_SHOWN else "")
        raise InputError(
            "Every row must have a text and a label",
            f"{len(blank)} blank in {path}: {shown}",
            "Fill these cells or remove the rows" + (f", or leave them out with {skip}." if skip else "."),
        )
    if not found:
        raise InputError("A table must hold rows", f"{path} without any", "Check the file.")
    return TaskTable(path, columns, tuple(found), tuple(blank))


def read_texts(
    path: Path, config: TableConfig = TableConfig(), *, options: OptionNames = OptionNames()
) -> tuple[Columns, Iterator[TableRow]]:
    """Open a file of texts to be predicted: its columns, and its rows one at a time.

    Raises:
        InputError: if it cannot be read or its columns not be found.
    """
    rows = _rows(path, config, options)
    sample = list(itertools.islice(rows, _SAMPLE_ROWS))
    if not sample:
        raise InputError("A file of texts must hold some", f"{path} without any row", "Check the file.")
    return find_columns(path, sample, config, labels=False, options=options), itertools.chain(sample, rows)


def task_row(path: Path, row: TableRow, columns: Columns, *, options: OptionNames = OptionNames()) -> TaskRow:
    """A row by what its columns hold.

    Raises:
        InputError: the row's own fault, or for a missing, blank or other than textual text, or half a character.
    """
    if row.fault is not None:
        raise row.fault
    texts = [_text(path, row, name, options) for name in (columns.text, columns.pair) if name is not None]
    label = None if columns.label is None else row.values.get(columns.label)
    if isinstance(label, str):
        refuse_half_pair(path, row.place, label)
    return TaskRow(texts[0], texts[1] if len(texts) > 1 else None, label, row.place)


def find_columns(
    path: Path, sample: Sequence[TableRow], config: TableConfig, *, labels: bool, options: OptionNames
) -> Columns:
    """The columns that were named, or else those whose names or contents tell.

    Raises:
        InputError: if one that was named is missing, or one that is needed cannot be told.
    """
    names = list(dict.fromkeys(name for row in sample for name in row.values))
    named = [(options.text, config.text), (options.pair, config.pair)]
    if labels:
        named.append((options.label, config.label))
    for option, name in named:
        if name is not None and name not in names:
            raise _missing_column(path, option, name, names)
    if not names:
        fault = next((row.fault for row in sample if row.fault is not None), None)
        raise fault or InputError("A table must hold rows", f"{path} without any", "Check the file.")
    label = _label_column(path, names, config, options) if labels else None
    rest = [name for name in names if name != label]
    text, pair = config.text, config.pair
    if text is None and pair is None:
        text, pair = _known_pair(rest)
    if text is None:
        rest = [name for name in rest if name != pair]
        text = next((found for name in (*TEXT_COLUMNS, *_MORE_TEXT_COLUMNS) if (found := _named(rest, name))), None)
    if text is None:
        # Where predictions are wanted, a column of labels may stand beside the text.
        rest = rest if labels else [name for name in rest if name.lower() not in LABEL_COLUMNS]
        wordy = [name for name in rest if any(is_wordy(row.values.get(name)) for row in sample)]
        if len(wordy) != 1:
            raise _unknown_column(path, "text", options.text, names)
        text = wordy[0]
    return Columns(text, pair, label)


def _rows(path: Path, config: TableConfig, options: OptionNames) -> Iterator[TableRow]:
    """The rows of a table; another encoding than the one it is read in is asked for by its option."""
    try:
        yield from table_rows(path, config.encoding)
    except NotUtf8 as error:
        do = f"Name the file's encoding with {options.encoding}, for example latin-1."
        raise InputError(error.rule, error.received, do) from None


def _label_column(path: Path, names: list[str], config: TableConfig, options: OptionNames) -> str:
    if config.label is not None:
        return config.label
    rest = [name for name in names if name not in (config.text, config.pair)]
    found = next((found for name in LABEL_COLUMNS if (found := _named(rest, name))), None)
    if found is not None:
        return found
    others = [name for name in rest if name.lower() not in TEXT_COLUMNS]
    if len(names) == (2 if config.pair is None else 3) and len(others) == 1:
        return others[0]
    raise _unknown_column(path, "label", options.label, names)


def _named(names: Sequence[str], wanted: str) -> str | None:
    """The column of this name, in whatever case it is written."""
    return next((name for name in names if name.lower() == wanted), None)


def _known_pair(names: Sequence[str]) -> tuple[str | None, str | None]:
    for first, second in PAIR_COLUMNS:
        text, pair = _named(names, first), _named(names, second)
        if text is not None and pair is not None:
            return text, pair
    return None, None


def _is_blank(values: dict[str, Any], name: str) -> bool:
    value = values.get(name)
    return value is None or (isinstance(value, str) and not value.strip())


def _text(path: Path, row: TableRow, name: str, options: OptionNames) -> str:
    value = row.values.get(name)
    if not isinstance(value, str) and value is not None:
        raise InputError(
            "A text must be text",
            f"{path}, {row.place}: {name}={value!r:.60}",
            f"Write it as a string, or name another column with {options.text}.",
        )
    if value is None or not value.strip():
        raise InputError("A text must not be blank", f"{path}, {row.place}: nothing under {name}", "Give it some text.")
    refuse_half_pair(path, row.place, value)
    return value


def _missing_column(path: Path, option: str, name: str, names: Sequence[str]) -> InputError:
    near = near_match(name, names)
    return InputError(
        f"{option} must be one of the file's columns: {', '.join(names)}",
        f"{name}, for {path}",
        f"Did you mean {near}?" if near else "Name one of them.",
    )


def _unknown_column(path: Path, what: str, option: str, names: Sequence[str]) -> InputError:
    header = " Is the first line the header?" if file_kind(path).layout in ("csv", "tsv") else ""
    return InputError(
        f"The column that holds the {what} must be known",
        f"{path} with the columns {', '.join(names)}",
        f"Name it with {option}.{header}",
    )
