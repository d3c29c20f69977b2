"""Whole rows out of tables, one at a time: .jsonl, .csv, .tsv, .parquet, .txt with one text a line, saved data sets.

A row that cannot be read is given with its fault, so that the caller may refuse the file or go on without the row.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import sha256
from bertsmith.text.arrow_files import (
    UnreadableRow,
    dataset_files,
    dataset_rows,
    num_arrow_rows,
    parquet_rows,
    refuse_double_names,
)
from bertsmith.text.decoding import whole_lines, with_plain_line_ends
from bertsmith.text.separated import separated_fields, separation
from bertsmith.text.sources import COMPRESSED, file_kind

PLAIN_COLUMN = "text"
"""The only column of a plain text file."""

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class TableRow:
    """One row of a table."""

    number: int
    """From 1. A table's header is not counted, nor are the empty lines of a .jsonl, .csv or .tsv file."""
    place: str
    """Where it stands in the file: `line 3`, or `row 3` of a Parquet file or a data set, from 1."""
    values: dict[str, Any]
    """By column: text from separated and plain files, what was written there from the others. Text has ``\\n`` for
    every line end. Classes of a data set are given by their names, and as None where a row has none."""
    fault: InputError | None = None
    """Why the row could not be read; its values are then empty."""


def table_rows(
    path: Path, encoding: str = "utf-8", *, column: str | None = None, as_written: bool = False
) -> Iterator[TableRow]:
    """The rows of a table.

    Args:
        path: the file, whose name tells the layout, or the folder of a data set's one split.
        encoding: of a text file.
        column: the only one that is read of a Parquet file; where not given, all are.
        as_written: leave the line ends in the values of .jsonl, Parquet and data sets as they are, as offsets count
            them.

    Raises:
        InputError: if the file cannot be opened or decoded, is damaged, or has two columns of one name.
    """
    if path.is_dir():
        rows = _arrow_rows(path, dataset_rows(path))
    else:
        match file_kind(path).layout:
            case "plain":
                return _plain_rows(path, encoding)
            case "csv" | "tsv":
                return _separated_rows(path, encoding)
            case "jsonl":
                rows = _json_rows(path, encoding)
            case "parquet":
                rows = _arrow_rows(path, parquet_rows(path, column))
    return rows if as_written else (replace(row, values=_plain_ends(row.values)) for row in rows)


def about_rows(path: Path, encoding: str = "utf-8") -> int | None:
    """About how many rows a table has, told by its lines where it is a text file; None where that takes reading it.

    Args:
        path: the table.
        encoding: of a text file.

    Raises:
        InputError: as `table_rows`.
    """
    kind = file_kind(path)
    if path.is_dir() or kind.layout == "parquet":
        return num_arrow_rows(path)
    if not kind.known or path.suffix.lower() in COMPRESSED:
        return None
    with open(path, "rb") as file:
        lines = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(_CHUNK_BYTES), b""))
    if kind.layout == "csv":
        lines -= 1 + separation(path, encoding).num_lines_before
    elif kind.layout == "tsv":
        lines -= 1
    return max(1, lines)


def table_sha256(path: Path) -> str:
    """The SHA-256 sum of a file; of a data set's folder, one over those of its files.

    Raises:
        InputError: as `dataset_files`.
    """
    if not path.is_dir():
        return sha256(path)
    files = [*dataset_files(path), *(info for info in [path / "dataset_info.json"] if info.is_file())]
    return hashlib.sha256("\n".join(map(sha256, files)).encode()).hexdigest()


def bad_row(path: Path, place: str, received: str, wanted: str) -> InputError:
    """The error for a row that does not hold what it must."""
    return InputError(f"{path.name} must hold {wanted}", f"{path}, {place}: {received}", "Mend or remove that row.")


def refuse_half_pair(path: Path, place: str, text: str) -> None:
    """Raise an `InputError` where text holds half of a surrogate pair, which JSON can write and no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise bad_row(path, place, "half of a surrogate pair, such as \\ud83d alone", "whole characters") from None


def is_wordy(value: Any) -> bool:
    """Whether a value is text, and not a number written as text."""
    if not isinstance(value, str):
        return False
    try:
        float(value or 0)
    except ValueError:
        return True
    return False


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
            received = f"a {type(record).__name__}"
        except (ValueError, RecursionError) as error:
            record, received = None, f"not JSON ({error})"
        if isinstance(record, dict):
            yield TableRow(number, place, record)
        else:
            yield TableRow(number, place, {}, bad_row(path, place, received, "one JSON object a line"))


def _separated_rows(path: Path, encoding: str) -> Iterator[TableRow]:
    rows = separated_fields(path, separation(path, encoding), encoding)
    header_line, header = next(rows, (0, []))
    mend = "Is the first line the header? Add one, or rename the columns."
    refuse_double_names(header, f"{path}, line {header_line}", mend)
    for number, (line, row) in enumerate(rows, 1):
        place = f"line {line}"
        if len(row) == len(header):
            yield TableRow(number, place, dict(zip(header, row, strict=True)))
        else:
            received = f"{len(row)} fields where the header has {len(header)}"
            fault = bad_row(path, place, received, "the header's number of fields in every row")
            yield TableRow(number, place, {}, fault)


def _arrow_rows(path: Path, rows: Iterator[dict[str, Any] | UnreadableRow]) -> Iterator[TableRow]:
    for number, row in enumerate(rows, 1):
        place = f"row {number}"
        if isinstance(row, UnreadableRow):
            yield TableRow(number, place, {}, bad_row(path, place, row.received, row.wanted))
        else:
            yield TableRow(number, place, row)


def _plain_ends(value: Any) -> Any:
    match value:
        case str():
            return with_plain_line_ends(value)
        case list():
            return [_plain_ends(item) for item in value]
        case dict():
            return {name: _plain_ends(part) for name, part in value.items()}
        case _:
            return value
