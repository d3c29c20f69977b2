"""Whole rows out of tables, one at a time: .jsonl, .csv, .tsv, .parquet, and .txt with one text a line.

A row that cannot be read is given with its fault, so that the caller may refuse the file or go on without the row.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertsmith.foundation.errors import InputError
from bertsmith.text.decoding import NotUtf8, whole_lines, with_plain_line_ends
from bertsmith.text.records import quotes_are_quoting, ragged_row, separated_fields
from bertsmith.text.sources import file_kind

PLAIN_COLUMN = "text"
"""The only column of a plain text file."""

_BATCH_ROWS = 256


@dataclass(frozen=True)
class TableRow:
    """One row of a table."""

    number: int
    """From 1, the header and empty lines not counted."""
    place: str
    """Where it stands in the file: `line 3`, or `row 3` of a Parquet file, from 1."""
    values: dict[str, Any]
    """By column: text from separated and plain files, what was written there from the others."""
    fault: InputError | None = None
    """Why the row could not be read; its values are then empty."""


def table_rows(path: Path, encoding: str = "utf-8") -> Iterator[TableRow]:
    """The rows of a table.

    Args:
        path: the file; its name tells the layout.
        encoding: of a text file.

    Raises:
        InputError: if the file cannot be opened or decoded, is damaged, or has two columns of one name.
    """
    kind = file_kind(path)
    rows = {
        "plain": _plain_rows,
        "jsonl": _json_rows,
        "csv": _separated_rows,
        "tsv": _separated_rows,
        "parquet": _parquet_rows,
    }[kind.layout]
    try:
        yield from rows(path, encoding)
    except NotUtf8 as error:
        raise InputError(
            error.rule, error.received, "Name the file's encoding with --encoding, for example latin-1."
        ) from None


def _plain_rows(path: Path, encoding: str) -> Iterator[TableRow]:
    for number, line in whole_lines(path, encoding):
        yield TableRow(number, f"line {number}", {PLAIN_COLUMN: line})


def _json_rows(path: Path, encoding: str) -> Iterator[TableRow]:
    number = 0
    for line, text in whole_lines(path, encoding):
        if not text or text.isspace():
            continue
        number += 1
        place = f"line {line}"
        try:
            record = json.loads(text)
            received = None if isinstance(record, dict) else f"a {type(record).__name__}"
        except (ValueError, RecursionError) as error:
            record, received = None, f"not JSON ({error})"
        if received is None and isinstance(record, dict):
            yield TableRow(number, place, record)
        else:
            fault = InputError(
                f"{path.name} must hold one JSON object a line", f"{path}, {place}: {received}", "Mend that row."
            )
            yield TableRow(number, place, {}, fault)


def _separated_rows(path: Path, encoding: str) -> Iterator[TableRow]:
    delimiter = "\t" if file_kind(path).layout == "tsv" else ","
    quoting = quotes_are_quoting(path, delimiter, encoding)
    rows = separated_fields(path, delimiter, quoting=quoting, encoding=encoding)
    _, header = next(rows, (0, []))
    doubles = sorted({name for name in header if header.count(name) > 1})
    if doubles:
        raise InputError(
            "Each column of a table must have a name of its own",
            f"{path}, line 1, with {', '.join(doubles)} more than once",
            "Is the first line the header? Add one, or rename the columns.",
        )
    for number, (line, row) in enumerate(rows, 1):
        if len(row) == len(header):
            yield TableRow(number, f"line {line}", dict(zip(header, row, strict=True)))
        else:
            yield TableRow(number, f"line {line}", {}, ragged_row(path, line, len(row), len(header)))


def _parquet_rows(path: Path, encoding: str) -> Iterator[TableRow]:
    import pyarrow as pa  # Loaded only where such a file is read: it takes longer to import than all else here.
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, use_threads=False):
                for record in batch.to_pylist():
                    number += 1
                    yield TableRow(number, f"row {number}", {name: _plain_ends(record[name]) for name in record})
    except UnicodeDecodeError as error:
        received = f"{path}, after row {number}: the byte 0x{error.object[error.start]:02X}"
        raise InputError("Text in a Parquet file must be UTF-8", received, "Write the file again.") from None
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            "A file must be whole to be read",
            f"{path}, damaged or no Parquet file, after row {number} ({error})",
            "Fetch or write the file again.",
        ) from None


def _plain_ends(value: Any) -> Any:
    return with_plain_line_ends(value) if isinstance(value, str) else value
