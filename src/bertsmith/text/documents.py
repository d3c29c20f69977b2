"""Documents out of files, streamed: memory does not grow with a file's size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from bertsmith.foundation.config import Config
from bertsmith.foundation.errors import InputError
from bertsmith.text.decoding import decoded_chunks, line_pieces
from bertsmith.text.records import Row, text_rows
from bertsmith.text.sentences import cut_place, has_visible
from bertsmith.text.sources import file_kind, find_files

__all__ = ["Document", "TextConfig", "find_files", "read_documents"]


@dataclass(frozen=True, slots=True)
class Document:
    """A text that belongs together."""

    text: str
    """Stripped, with ``\\n`` between its lines and at least one visible character."""
    source: str
    """Where it begins: the file and the line, or the row of a Parquet file."""


class TextConfig(Config):
    """How documents are read out of files."""

    layout: Literal["blank_line", "line", "file"] = "blank_line"
    """What parts the documents of a plain text file: blank lines, every line end, or nothing but the file's end."""
    text_column: str | None = None
    """The column that holds the text in .jsonl, .csv, .tsv and .parquet files; looked for where not named."""
    max_document_characters: int = Field(default=1_000_000, ge=1)
    """A longer document is cut, at the end of a sentence where there is one, and goes on as a further document."""


def read_documents(paths: Sequence[Path], config: TextConfig) -> Iterator[Document]:
    """The documents of `paths`, in order, one held at a time.

    A document longer than `config.max_document_characters` is cut at its last sentence end before the limit, else at
    white space, else at the limit, and goes on as a further `Document`. So a file of any size without a single line
    break is read in bounded memory. Texts with nothing visible are passed over.

    Raises:
        InputError: for what cannot be read, told with file and line: a byte that is not UTF-8, a damaged or cut-off
            file, a row without its text; and at the end if all files together held no document.
    """
    is_empty = True
    for path in paths:
        for text, place in _texts(path, config):
            if has_visible(text):
                is_empty = False
                yield Document(text.strip(), f"{path}, {place}")
    if is_empty:
        names = ", ".join(str(path) for path in paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
        raise InputError(
            "The files must hold at least one document", f"no text in {names or 'no file'}", "Name others."
        )


def _texts(path: Path, config: TextConfig) -> Iterator[tuple[str, str]]:
    limit = config.max_document_characters
    if file_kind(path).layout == "plain":
        return _plain_texts(path, config.layout, limit)
    return _row_texts(text_rows(path, config.text_column), limit)


def _row_texts(rows: Iterator[Row], limit: int) -> Iterator[tuple[str, str]]:
    for row in rows:
        growing = _GrowingText(limit)
        yield from ((text, row.place) for text in growing.add(row.text))
        yield growing.rest(), row.place


def _plain_texts(path: Path, layout: str, limit: int) -> Iterator[tuple[str, str]]:
    growing = _GrowingText(limit)
    line = 1

    def placed(texts: list[str]) -> Iterator[tuple[str, str]]:
        nonlocal line
        for text in texts:
            yield text, f"line {line}"
            line += text.count("\n")

    if layout == "file":
        for chunk in decoded_chunks(path):
            yield from placed(growing.add(chunk))
    else:
        is_blank = True
        for piece in line_pieces(path):
            is_blank = is_blank and (not piece.text or piece.text.isspace())
            parts = piece.ends and (is_blank or layout == "line")
            yield from placed(growing.add(piece.text if parts or not piece.ends else piece.text + "\n"))
            if parts:
                yield from placed([growing.rest()])
                line = piece.number + 1
            if piece.ends:
                is_blank = True
    yield from placed([growing.rest()])


class _GrowingText:
    """A text that comes in pieces, and is cut where it outgrows the limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[str] = []
        self._size = 0

    def add(self, piece: str) -> list[str]:
        """Take a piece. Gives the texts that are full, none in the common case."""
        self._parts.append(piece)
        self._size += len(piece)
        if self._size <= self._limit:
            return []
        text = "".join(self._parts)
        full: list[str] = []
        start = 0
        while len(text) - start > self._limit:
            stop = cut_place(text, start, start + self._limit)
            full.append(text[start:stop])
            start = stop
        self._parts, self._size = [text[start:]], len(text) - start
        return full

    def rest(self) -> str:
        """What is left, which is empty afterwards."""
        text = "".join(self._parts)
        self._parts, self._size = [], 0
        return text
