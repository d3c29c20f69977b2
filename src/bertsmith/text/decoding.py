"""Characters and lines out of files: decompressed, decoded as UTF-8 whatever the locale, and streamed.

Another encoding is taken only where a person names it.

Line ends are ``\\n``, ``\\r\\n`` and ``\\r``, and nothing else; all come out as ``\\n``. A byte order mark at the
start of a file is removed. What is wrong with a file is told with its name, its line, and for a bad byte its offset.
"""

import codecs
import contextlib
import encodings.aliases
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from bertsmith.foundation.errors import InputError, near_match

MAX_RECORD_CHARACTERS = 16 * 1024 * 1024
"""The longest line of a .jsonl file, and the longest field of a .csv or .tsv file: both must be held whole."""

_CHUNK_BYTES = 1 << 18
_PROBE_BYTES = 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...

    def read1(self, size: int, /) -> bytes: ...


class NotUtf8(InputError):
    """A file holds bytes that are no UTF-8: it may be text in another encoding."""


class InUtf16(NotUtf8):
    """A file says by its first bytes that it is in UTF-16."""


class HoldsNul(InputError):
    """A file holds NUL bytes, as those that are no text do."""


@dataclass(frozen=True)
class LinePiece:
    """A line, or a part of one where the line is long."""

    text: str
    """Without the line's end."""
    number: int
    """The line's number in the file, from 1."""
    ends: bool
    """Whether the line ends with this piece."""


def refuse_binary(path: Path) -> None:
    """Read the first kilobyte of a file.

    Raises:
        InputError: if it cannot be opened or decompressed, or holds NUL bytes.
    """
    with _opened(path) as file, _damage_located(path, 1):
        _refuse_binary_start(path, file.read(_PROBE_BYTES))


def decoded_chunks(path: Path, encoding: str = "utf-8") -> Iterator[str]:
    """The characters of a file in pieces of bounded size, with ``\\n`` for every line end.

    Raises:
        InputError: for a byte that is not of the encoding, a damaged or cut-off compressed file, a binary file, or an
            encoding that is not known.
    """
    if (name := known_encoding(encoding)) != "utf-8":
        yield from _chunks_in(path, name)
        return
    with _opened(path) as file:
        rest, rest_offset, line = b"", 0, 1
        with _damage_located(path, line):
            chunk = file.read(_PROBE_BYTES)
        _refuse_binary_start(path, chunk)
        if chunk.startswith(_BYTE_ORDER_MARK):
            chunk, rest_offset = chunk[len(_BYTE_ORDER_MARK) :], len(_BYTE_ORDER_MARK)
        is_end = False
        while True:
            data = rest + chunk
            # A character that the chunk's border cuts, or a \r that may go on as \r\n, waits for the next chunk.
            usable = len(data) if is_end else _whole_characters(data)
            text = _decode(data[:usable], path, rest_offset, line)
            rest, rest_offset = data[usable:], rest_offset + usable
            line += text.count("\n")
            if text:
                yield text
            if is_end:
                return
            with _damage_located(path, line):
                chunk = file.read1(_CHUNK_BYTES)  # One that gives what it has, so that a cut is told near its line.
            is_end = not chunk


def line_pieces(path: Path, encoding: str = "utf-8") -> Iterator[LinePiece]:
    """The lines of a file, those that are long in pieces of bounded size.

    Raises:
        InputError: as `decoded_chunks`.
    """
    number, open_line = 1, False
    for chunk in decoded_chunks(path, encoding):
        *whole, last = chunk.split("\n")
        for text in whole:
            yield LinePiece(text, number, ends=True)
            number += 1
        if whole:
            open_line = False
        if last:
            yield LinePiece(last, number, ends=False)
            open_line = True
    if open_line:
        yield LinePiece("", number, ends=True)


def whole_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Number and text of every line, without its end.

    Raises:
        InputError: as `decoded_chunks`, and for a line longer than `MAX_RECORD_CHARACTERS`.
    """
    parts: list[str] = []
    size = 0
    for piece in line_pieces(path, encoding):
        parts.append(piece.text)
        size += len(piece.text)
        if size > MAX_RECORD_CHARACTERS:
            raise InputError(
                f"A line of {path.name} may have at most {MAX_RECORD_CHARACTERS:,} characters",
                f"{path}, line {piece.number}, which is longer",
                "Put each record on a line of its own.",
            )
        if piece.ends:
            yield piece.number, parts[0] if len(parts) == 1 else "".join(parts)
            parts, size = [], 0


def with_plain_line_ends(text: str) -> str:
    """`text` with ``\\n`` for ``\\r\\n`` and ``\\r``."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def known_encoding(name: str) -> str:
    """Python's own name of an encoding.

    Raises:
        InputError: if it is not known.
    """
    try:
        "".encode(name)  # Which refuses a codec that is none of text.
        return codecs.lookup(name).name
    except LookupError:
        near = near_match(name.lower(), {*encodings.aliases.aliases, *encodings.aliases.aliases.values()})
        raise InputError(
            "An encoding must be one that Python knows",
            name,
            f"Did you mean {near}?" if near else "For example: latin-1, cp1252, utf-16.",
        ) from None


def _chunks_in(path: Path, encoding: str) -> Iterator[str]:
    """`decoded_chunks` for an encoding that was named."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(), translate=True)
    line, is_start, is_end = 1, True, False
    with _opened(path) as file:
        while not is_end:
            with _damage_located(path, line):
                chunk = file.read1(_CHUNK_BYTES)
            is_end = not chunk
            try:
                text = decoder.decode(chunk, final=is_end)
            except UnicodeError as error:
                raise InputError(
                    "Text must be in the encoding that was named",
                    f"{path}, from line {line} on no {encoding} ({error})",
                    "Name another encoding.",
                ) from None
            line += text.count("\n")
            if is_start and text:
                text, is_start = text.removeprefix("\ufeff"), False  # Which utf-16-le and its like leave in place.
            if text:
                yield text


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[_Readable]:
    with contextlib.ExitStack() as stack:
        try:
            raw: IO[bytes] = stack.enter_context(open(path, "rb"))
        except OSError as error:
            raise InputError(
                "Every file that is named must be readable", f"{path} ({error.strerror})", "Check its place and rights."
            ) from None
        suffix = path.suffix.lower()
        if suffix == ".gz":
            yield stack.enter_context(gzip.GzipFile(fileobj=raw))
        elif suffix == ".zst":
            yield stack.enter_context(_zstd(raw))
        else:
            yield raw


def _zstd(raw: IO[bytes]) -> Any:
    import pyarrow  # Loaded only where such a file is read: it takes longer to import than all else here.

    return pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, mode="r"), "zstd")


@contextlib.contextmanager
def _damage_located(path: Path, line: int) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            "A file must be whole to be read",
            f"{path}, damaged or cut off after line {line} ({error})",
            "Fetch or write the file again.",
        ) from None


def _refuse_binary_start(path: Path, start: bytes) -> None:
    if b"\0" not in start and not start.startswith(_UTF16_MARKS):
        return
    if start.startswith(_UTF16_MARKS):
        raise InUtf16("Text must be UTF-8", f"{path}, in UTF-16", _re_encoding(path, "UTF-16"))
    at = start.index(0)
    line = 1 + with_plain_line_ends(start[:at].decode("latin-1")).count("\n")
    raise HoldsNul(
        "Text must be UTF-8 without NUL bytes",
        f"{path}, line {line}, a binary file (NUL byte at offset {at})",
        "Leave the file out, or save its text as UTF-8.",
    )


def _whole_characters(data: bytes) -> int:
    """How many bytes of `data` can be decoded before the rest is known."""
    end = len(data)
    for back in range(1, min(3, end) + 1):
        byte = data[end - back]
        if byte >= 0xC0:  # The first byte of a character; its high bits tell how many follow.
            width = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            if back < width:
                end -= back
            break
        if byte < 0x80:
            break
    return end - 1 if data[end - 1 : end] == b"\r" else end


def _decode(data: bytes, path: Path, offset: int, line: int) -> str:
    try:
        return with_plain_line_ends(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line += with_plain_line_ends(data[: error.start].decode("utf-8")).count("\n")
        raise NotUtf8(
            "Text must be UTF-8",
            f"{path}, line {line}, with the byte 0x{data[error.start]:02X} at offset {offset + error.start}",
            _re_encoding(path, "ENCODING"),
        ) from None


def _re_encoding(path: Path, encoding: str) -> str:
    return f"Re-encode the file: `iconv -f {encoding} -t UTF-8 {path.name} > new-{path.name}`"
