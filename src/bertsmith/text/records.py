"""Texts out of tables: .jsonl, .csv, .tsv and .parquet, one row at a time."""

import csv
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertsmith.foundation.errors import InputError, near_match
from bertsmith.text.decoding import MAX_RECORD_CHARACTERS, whole_lines, with_plain_line_ends

TEXT_COLUMNS = ("text", "content", "body", "article", "document", "sentence")
"""Names under which the text is looked for, in this order, where no column is named."""

_SAMPLE_ROWS = 100
_BATCH_ROWS = 64
_BUFFER_BYTES = 1 << 20  # Without it, or with pre_buffer, pyarrow holds the column of a whole row group.


@dataclass(frozen=True)
class Row:
    """The text of one row."""

    text: str
    place: str
    """Where the row stands: `line 3`, or `row 3` of a Parquet file, from 1."""


def json_rows(path: Path, column: str | None) -> Iterator[Row]:
    """The texts of a .jsonl file. A null is passed over, and so is an empty line.

    Raises:
        InputError: for a line that is no JSON object, lacks the column, or holds something else than text there.
    """
    is_known = False
    for number, line in whole_lines(path):
        if not line or line.isspace():
            continue
        place = f"line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _bad_row(path, place, f"not JSON ({error})", "one JSON object a line") from None
        if not isinstance(record, dict):
            raise _bad_row(path, place, f"a {type(record).__name__}", "one JSON object a line")
        if column is None:
            column = _text_column(path, list(record), [name for name in record if isinstance(record[name], str)])
        if column not in record and not is_known:
            raise _no_column(path, column, list(record), place)
        if column not in record:
            raise _bad_row(path, place, f"only {', '.join(record) or 'an empty object'}", f"text under {column}")
        is_known = True
        value = record[column]
        if value is None:
            continue
        if not isinstance(value, str):
            raise _bad_row(path, place, f"{column}={value!r:.60}", f"text under {column}")
        if not _is_unicode(value):
            raise _bad_row(path, place, "half of a surrogate pair, such as \\ud83d alone", "whole characters")
        yield Row(with_plain_line_ends(value), place)


def separated_rows(path: Path, column: str | None, *, delimiter: str) -> Iterator[Row]:
    """The texts of a .csv or .tsv file with a header. Quoted fields may hold delimiters, quotes and line breaks.

    In a .tsv file quotes are often plain characters. They are taken for quoting only where the file's first rows come
    out with the header's columns that way.

    Raises:
        InputError: for a missing header or column, or a row with more or fewer fields than the header.
    """
    rows = _separated(path, delimiter, quoting=quotes_are_quoting(path, delimiter))
    _, header = next(rows, (0, []))
    if not header:
        return
    sample = list(itertools.islice(rows, _SAMPLE_ROWS))
    if column is None:
        wordy = [name for index, name in enumerate(header) if any(not _is_number(row[index]) for _, row in sample)]
        column = _text_column(path, header, wordy)
    if column not in header:
        raise _no_column(path, column, header, "line 1")
    index = header.index(column)
    for number, row in itertools.chain(sample, rows):
        yield Row(row[index], f"line {number}")


def parquet_rows(path: Path, column: str | None) -> Iterator[Row]:
    """The texts of a .parquet file; only the text's column is read, in batches. A null is passed over.

    Raises:
        InputError: for a damaged file, a missing column, or one that holds something else than text.
    """
    import pyarrow as pa  # Loaded only where such a file is read: it takes longer to import than all else here.
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
            kinds = {field.name: _value_type(pa, field.type) for field in file.schema_arrow}
            texts = [name for name, kind in kinds.items() if pa.types.is_string(kind) or pa.types.is_large_string(kind)]
            column = column or _text_column(path, list(kinds), texts)
            if column not in kinds:
                raise _no_column(path, column, list(kinds), "its schema")
            if column not in texts:
                raise _bad_row(path, "its schema", f"{column} of type {kinds[column]}", f"text under {column}")
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=[column], use_threads=False):
                for value in batch.column(0):
                    number += 1
                    if (text := value.as_py()) is not None:
                        yield Row(with_plain_line_ends(text), f"row {number}")
    except UnicodeDecodeError as error:
        raise _bad_row(path, f"row {number}", f"the byte 0x{error.object[error.start]:02X}", "UTF-8") from None
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            "A file must be whole to be read",
            f"{path}, damaged or no Parquet file, after row {number} ({error})",
            "Fetch or write the file again.",
        ) from None


def _value_type(pa: Any, kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def separated_fields(
    path: Path, delimiter: str, *, quoting: bool, encoding: str = "utf-8"
) -> Iterator[tuple[int, list[str]]]:
    """Line number (of its first line) and fields of every row that is not empty, however many fields it has.

    Raises:
        InputError: for quotes that do not come in pairs, which leave no way to tell the rows that follow.
    """
    csv.field_size_limit(max(csv.field_size_limit(), MAX_RECORD_CHARACTERS))
    lines = (f"{line}\n" for _, line in whole_lines(path, encoding))
    reader = csv.reader(
        lines,
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE,
        quotechar='"' if quoting else None,
        strict=True,
    )
    first_line = 1
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise _bad_row(
                path, f"line {first_line}", f"a row that cannot be split ({error})", "quotes in pairs"
            ) from None
        if row is None:
            return
        if row:
            yield first_line, row
        first_line = reader.line_num + 1


def ragged_row(path: Path, line: int, num_fields: int, width: int) -> InputError:
    """The error for a row with another number of fields than the header."""
    received = f"{num_fields} fields where the header has {width}"
    return _bad_row(path, f"line {line}", received, "the header's number of fields in every row")


def quotes_are_quoting(path: Path, delimiter: str, encoding: str = "utf-8") -> bool:
    """Whether quotes in a separated file hold fields together; in a .tsv file they are often plain characters.

    There they are taken for quoting only where some field begins with one, and the first rows, read with quoting, have
    the header's columns.
    """
    if delimiter != "\t":
        return True
    plain = itertools.islice(whole_lines(path, encoding), _SAMPLE_ROWS)
    if not any(field.startswith('"') for _, line in plain for field in line.split("\t")):
        return False
    try:
        for _ in itertools.islice(_separated(path, "\t", quoting=True, encoding=encoding), _SAMPLE_ROWS):
            pass
    except InputError:
        return False
    return True


def _separated(
    path: Path, delimiter: str, *, quoting: bool, encoding: str = "utf-8"
) -> Iterator[tuple[int, list[str]]]:
    """The rows of a file in which every row has as many fields as the first, the header."""
    width = 0
    for line, row in separated_fields(path, delimiter, quoting=quoting, encoding=encoding):
        width = width or len(row)
        if len(row) != width:
            raise ragged_row(path, line, len(row), width)
        yield line, row


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
        if path.suffix.lower() in (".csv", ".tsv")
        else "Name it with text_column.",
    )


def _no_column(path: Path, column: str, columns: Sequence[str], place: str) -> InputError:
    near = near_match(column, columns)
    return InputError(
        f"text_column must be one of the file's columns: {', '.join(columns)}",
        f"{column}, for {path}, {place}",
        f"Did you mean {near}?" if near else "Name one of them.",
    )


def _bad_row(path: Path, place: str, received: str, wanted: str) -> InputError:
    return InputError(f"{path.name} must hold {wanted}", f"{path}, {place}: {received}", "Mend or remove that row.")


def _is_number(value: str) -> bool:
    try:
        float(value or 0)
    except ValueError:
        return False
    return True


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
