"""Texts out of tables: of every row of a .jsonl, .csv, .tsv or .parquet file the column that holds the text."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertsmith.foundation.errors import InputError, near_match
from bertsmith.text.arrow_files import parquet_columns
from bertsmith.text.sources import file_kind
from bertsmith.text.tables import TableRow, bad_row, is_wordy, refuse_half_pair, table_rows

TEXT_COLUMNS = ("text", "content", "body", "article", "document", "sentence")
"""Names under which the text is looked for, in this order, where no column is named."""

_SAMPLE_ROWS = 100
_TEXT_TYPES = ("string", "large_string")


@dataclass(frozen=True)
class Row:
    """The text of one row."""

    text: str
    place: str
    """Where the row stands: `line 3`, or `row 3` of a Parquet file, from 1."""


def text_rows(path: Path, column: str | None) -> Iterator[Row]:
    """The texts of a table, one row at a time. A null is passed over.

    Args:
        path: a .jsonl, .csv, .tsv or .parquet file, in UTF-8.
        column: where the text stands; looked for by name, or as the only one that holds text, where not given.

    Raises:
        InputError: if the file cannot be read, the column is missing or cannot be told, or a row cannot be read or
            holds something else than text there.
    """
    if file_kind(path).layout == "parquet":
        column = _parquet_column(path, column)
        rows = table_rows(path, column=column)  # Only the text's column is read.
    else:
        rows = table_rows(path)
        sample = list(itertools.islice(rows, _num_sample_rows(path, column)))
        if not sample:
            return
        column = _column_of(path, sample, column)
        rows = itertools.chain(sample, rows)
    for row in rows:
        if row.fault is not None:
            raise row.fault
        if column not in row.values:
            held = ", ".join(row.values) or "an empty object"
            raise bad_row(path, row.place, f"only {held}", f"text under {column}")
        text = row.values[column]
        if text is None:
            continue
        if not isinstance(text, str):
            raise bad_row(path, row.place, f"{column}={text!r:.60}", f"text under {column}")
        refuse_half_pair(path, row.place, text)
        yield Row(text, row.place)


def _num_sample_rows(path: Path, column: str | None) -> int:
    """Rows that are held to tell the column. A JSON value shows what it is; a field of other files may be a number."""
    return _SAMPLE_ROWS if column is None and file_kind(path).layout != "jsonl" else 1


def _column_of(path: Path, sample: Sequence[TableRow], column: str | None) -> str:
    for row in sample:
        if row.fault is not None:
            raise row.fault
    first, is_json = sample[0], file_kind(path).layout == "jsonl"
    names = list(first.values)
    if column is None:
        texts = [
            name
            for name in names
            if any(isinstance(row.values[name], str) if is_json else is_wordy(row.values[name]) for row in sample)
        ]
        column = _text_column(path, names, texts)
    if column not in names:
        raise _no_column(path, column, names, first.place if is_json else "line 1")
    return column


def _parquet_column(path: Path, column: str | None) -> str:
    kinds = parquet_columns(path)
    texts = [name for name, kind in kinds.items() if kind in _TEXT_TYPES]
    column = column or _text_column(path, list(kinds), texts)
    if column not in kinds:
        raise _no_column(path, column, list(kinds), "its schema")
    if column not in texts:
        raise bad_row(path, "its schema", f"{column} of type {kinds[column]}", f"text under {column}")
    return column


def _text_column(path: Path, columns: Sequence[str], texts: Sequence[str]) -> str:
    for name in TEXT_COLUMNS:
        if name in columns:
            return name
    if len(texts) == 1:
        return texts[0]
    raise InputError(
        "The column that holds the text must be known",
        f"{path} with the columns {', '.join(columns)}",
        "Name it with text_column. Is the first line the header?"
        if file_kind(path).layout in ("csv", "tsv")
        else "Name it with text_column.",
    )


def _no_column(path: Path, column: str, columns: Sequence[str], place: str) -> InputError:
    near = near_match(column, columns)
    return InputError(
        f"text_column must be one of the file's columns: {', '.join(columns)}",
        f"{column}, for {path}, {place}",
        f"Did you mean {near}?" if near else "Name one of them.",
    )
