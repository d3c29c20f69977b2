"""Tables of a downstream task: the rows, with their labels as they were written."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_columns import LABEL_COLUMNS, SAMPLE_ROWS, Columns, find_columns
from bertsmith.foundation.errors import InputError
from bertsmith.text.sources import READABLE, content_suffix, file_kind
from bertsmith.text.tables import TableRow, refuse_half_pair, table_rows

_MOST_SHOWN = 5
_OTHER_TASKS = {".json": "the task answer", ".conll": "the task tag", ".conllu": "the task tag"}
_SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
RowT = TypeVar("RowT")


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

    @property
    def key(self) -> str | tuple[str, str]:
        """The same: rows with the same texts show a model the same."""
        return self.texts

    @property
    def target(self) -> Any:
        """The label: rows with the same texts should have the same."""
        return self.label


@dataclass(frozen=True)
class TaskTable:
    """The rows of a file."""

    path: Path
    columns: Columns
    rows: tuple[TaskRow, ...]
    skipped: tuple[str, ...] = ()
    """Places of rows that were left out because something in them is blank."""


def read_task_table(
    path: Path,
    config: TableConfig = TableConfig(),
    *,
    options: OptionNames = OptionNames(),
    label_columns: Sequence[str] = LABEL_COLUMNS,
) -> TaskTable:
    """Read a file whose every row has a label.

    Args:
        path: the file.
        config: how it is read.
        options: what errors call the settings.
        label_columns: names under which the label is looked for where none is given, in lower case.

    Raises:
        InputError: if it cannot be read, a column is missing or cannot be guessed, or a row is ragged, holds no text
            or is blank.
    """
    rows = open_rows(path, config, options)
    sample = list(itertools.islice(rows, SAMPLE_ROWS))
    columns = find_columns(path, sample, config, labels=True, options=options, label_columns=label_columns)
    needed = [name for name in (columns.text, columns.pair, columns.label) if name is not None]
    found, blank = whole_rows(
        path,
        itertools.chain(sample, rows),
        lambda row: [name for name in needed if is_blank(row.values, name)],
        lambda row: task_row(path, row, columns, options=options),
        config,
        options,
    )
    return TaskTable(path, columns, found, blank)


def whole_rows(
    path: Path,
    rows: Iterable[TableRow],
    blanks: Callable[[TableRow], list[str]],
    make: Callable[[TableRow], RowT],
    config: TableConfig,
    options: OptionNames,
) -> tuple[tuple[RowT, ...], tuple[str, ...]]:
    """Rows in which nothing that is needed is blank.

    Args:
        path: the file, for messages.
        rows: of it.
        blanks: the columns that are needed and blank in a row.
        make: what a row becomes.
        config: says what becomes of blank rows.
        options: what errors call the settings.

    Returns:
        what became of the rows, and the places of those that were left out.

    Raises:
        InputError: for a row that cannot be read, blank ones that are not left out, or no row.
    """
    found: list[RowT] = []
    blank: list[str] = []
    for row in rows:
        if row.fault is not None:
            raise row.fault
        if missing := blanks(row):
            blank.append(f"{row.place} ({', '.join(missing)})")
        else:
            found.append(make(row))
    shown = ", ".join(blank[:_MOST_SHOWN]) + (" …" if len(blank) > _MOST_SHOWN else "")
    if blank and (config.blank_rows == "refuse" or config.strict):
        skip = None if config.strict else options.skip_blank
        raise InputError(
            "Every row must have a text and a label",
            f"{len(blank)} blank in {path}: {shown}",
            "Fill these cells or remove the rows" + (f", or leave them out with {skip}." if skip else "."),
        )
    if not found:
        received = f"without any but blank ones: {shown}" if blank else "without any"
        raise InputError("A table must hold rows", f"{path} {received}", "Check the file.")
    return tuple(found), tuple(blank)


def read_texts(
    path: Path,
    config: TableConfig = TableConfig(),
    *,
    options: OptionNames = OptionNames(),
    as_written: bool = False,
) -> tuple[Columns, Iterator[TableRow]]:
    """Open a file of texts to be predicted: its columns, and its rows one at a time.

    Args:
        path: the file.
        config: how it is read.
        options: what errors call the settings.
        as_written: as in `table_rows`.

    Raises:
        InputError: if it cannot be read or its columns not be found.
    """
    rows = open_rows(path, config, options, as_written=as_written)
    sample = list(itertools.islice(rows, SAMPLE_ROWS))
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
    texts = [cell_text(path, row, name, options) for name in (columns.text, columns.pair) if name is not None]
    label = None if columns.label is None else row.values.get(columns.label)
    if isinstance(label, str):
        refuse_half_pair(path, row.place, label)
    return TaskRow(texts[0], texts[1] if len(texts) > 1 else None, label, row.place)


def open_rows(path: Path, config: TableConfig, options: OptionNames, *, as_written: bool = False) -> Iterator[TableRow]:
    """The rows of a table, one at a time, as `table_rows` gives them.

    Raises:
        InputError: as `table_rows`, with what mends it here, and as `refuse_other_files`.
    """
    refuse_other_files(path)
    with options.mend_bytes():
        yield from table_rows(path, config.encoding, as_written=as_written)


def refuse_other_files(path: Path) -> None:
    """Raise an `InputError` for a file that is no table by its ending, and would be taken for lines of plain text: one
    of words or of questions, a spreadsheet, or one of an unknown kind."""
    refuse_spreadsheet(path)
    suffix = content_suffix(path)
    if path.is_dir() or not suffix or file_kind(path).known:
        return
    what = f"a file for {_OTHER_TASKS[suffix]}" if suffix in _OTHER_TASKS else f"whose ending {suffix} tells no layout"
    do = "Write it as one of them." if suffix in _OTHER_TASKS else "Give it the ending of what it holds."
    raise InputError(f"A table must be one of: {READABLE}", f"{path}, {what}", do)


def refuse_spreadsheet(path: Path) -> None:
    """Raise an `InputError` for a file that a spreadsheet program has saved in its own format."""
    if content_suffix(path) in _SPREADSHEETS:
        raise InputError(
            f"A table must be one of: {READABLE}",
            f"{path}, a spreadsheet",
            "Save its sheet as CSV, in UTF-8, and name that file.",
        )


def is_blank(values: dict[str, Any], name: str) -> bool:
    """Whether a row has nothing in a column, or white space alone."""
    value = values.get(name)
    return value is None or (isinstance(value, str) and not value.strip())


def cell_text(path: Path, row: TableRow, name: str, options: OptionNames) -> str:
    """The text that a row has in a column.

    Raises:
        InputError: for nothing, white space alone, something else than text, or half a character.
    """
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
