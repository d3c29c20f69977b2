"""Lines out of a stream, such as standard input, as soon as they come."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from bertsmith.foundation.errors import InputError
from bertsmith.text.decoding import MAX_RECORD_CHARACTERS, known_encoding, with_plain_line_ends
from bertsmith.text.tables import PLAIN_COLUMN, TableRow, bad_row

STREAM = Path("standard input")
"""What errors call it."""
LinesAre = Literal["texts", "objects", "either"]
_OBJECT = re.compile(r'\s*\{\s*"')
_CHUNK_BYTES = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@runtime_checkable
class Stream(Protocol):
    """A stream of bytes."""

    def read1(self, size: int, /) -> bytes:
        """What there is, `size` bytes at most; waits only where there is nothing; nothing at the end."""
        ...


def stream_rows(stream: Stream, encoding: str = "utf-8", *, lines_are: LinesAre = "texts") -> Iterator[list[TableRow]]:
    """Lines of a stream, those together that came together.

    Args:
        stream: where they come from.
        encoding: in which a line ends with one byte, as in UTF-8 and every encoding that has ASCII in it.
        lines_are: texts, each the only value of its row; JSON objects, whose entries are the row's values; or either,
            where a line that begins as an object with an entry does, ``{"``, must be one.

    Raises:
        InputError: for an encoding of another kind, and for a line that never ends.
    """
    name = known_encoding(encoding).removesuffix("-sig")  # A byte order mark is removed from any.
    if "\n".encode(name) != b"\n":
        raise InputError(
            "Standard input must be in an encoding in which a line ends with one byte",
            encoding,
            "Re-encode it as UTF-8, or put it into a file.",
        )
    number = line_number = 0
    for lines in _lines(stream):
        rows: list[TableRow] = []
        for line in lines:
            line_number += 1
            if line_number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            if line.strip() or lines_are != "objects":
                number += 1
                rows.append(_row(line, number, f"line {line_number}", name, lines_are))
        if rows:
            yield rows


def _lines(stream: Stream) -> Iterator[list[bytes]]:
    parts: list[bytes] = []
    size = 0
    while chunk := stream.read1(_CHUNK_BYTES):
        first, *others = chunk.split(b"\n")
        parts.append(first)
        size += len(first)
        if size > 4 * MAX_RECORD_CHARACTERS:  # Bytes of the longest characters.
            raise InputError(
                f"A line may have at most {MAX_RECORD_CHARACTERS:,} characters",
                f"one in {STREAM} that is longer",
                "Put each text on a line of its own.",
            )
        if others:
            *whole, rest = others
            yield [b"".join(parts), *whole]
            parts, size = [rest], len(rest)
    if size:
        yield [b"".join(parts)]


def _row(line: bytes, number: int, place: str, encoding: str, lines_are: LinesAre) -> TableRow:
    try:
        text = with_plain_line_ends(line.removesuffix(b"\r").decode(encoding))
    except UnicodeDecodeError as error:
        received = f"{STREAM}, {place}, with the byte 0x{line[error.start]:02X}"
        rule = "Text must be UTF-8" if encoding == "utf-8" else "Text must be in the encoding that was named"
        return TableRow(number, place, {}, InputError(rule, received, "Re-encode it."))
    if lines_are == "texts" or (lines_are == "either" and not _OBJECT.match(text)):
        return TableRow(number, place, {PLAIN_COLUMN: text})
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        return TableRow(number, place, {}, bad_row(STREAM, place, f"not JSON ({error})", "one JSON object a line"))
    if not isinstance(values, dict):
        received = f"a {type(values).__name__}"
        return TableRow(number, place, {}, bad_row(STREAM, place, received, "one JSON object a line"))
    return TableRow(number, place, values)
