"""Which files are read, and as what."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bertsmith.foundation.errors import InputError, near_match
from bertsmith.text.decoding import refuse_binary

Layout = Literal["plain", "jsonl", "csv", "tsv", "parquet"]

_LAYOUTS: dict[str, Layout] = {
    ".txt": "plain",
    ".text": "plain",
    ".md": "plain",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
COMPRESSED = (".gz", ".zst")
"""Suffixes behind a file's own that say how it is compressed."""
READABLE = f"{', '.join(_LAYOUTS)}, each but .parquet also with {' or '.join(COMPRESSED)} behind it"
"""The endings that are read."""
TABLES = ".jsonl, .csv, .tsv and .parquet"
"""Endings of files with columns."""


@dataclass(frozen=True)
class FileKind:
    """How a file is read."""

    layout: Layout
    known: bool
    """Whether the name's suffix tells the layout; where not, the file is taken for plain text."""


def file_kind(path: Path) -> FileKind:
    """How the file is read, by its name alone, in any case of letters."""
    layout = _LAYOUTS.get(content_suffix(path))
    if layout is None or (layout == "parquet" and path.suffix.lower() in COMPRESSED):
        return FileKind("plain", known=False)
    return FileKind(layout, known=True)


def content_suffix(path: Path) -> str:
    """The suffix that tells what a file holds, in small letters, whether or not it is compressed."""
    name = path.name.lower()
    for compressed in COMPRESSED:
        name = name.removesuffix(compressed)
    return os.path.splitext(name)[1]


def find_files(sources: Sequence[str | Path]) -> list[Path]:
    """The files that `sources` name, each once.

    A folder gives the files in it and in the folders below, in the order of their POSIX names; hidden ones, links to
    folders and files of other kinds are passed over. A file that is named itself is taken whatever its suffix.

    Raises:
        InputError: if there is no source, one is missing, cannot be opened or is binary, or a folder holds nothing
            that can be read.
    """
    if isinstance(sources, str):  # A string is a sequence too, of letters.
        sources = [sources]
    if not sources:
        raise InputError("Text comes out of at least one file or folder", "none", "Name a file or a folder.")
    found: dict[Path, Path] = {}
    for source in map(Path, sources):
        for path in _files_in_folder(source) if source.is_dir() else [_named_file(source)]:
            if file_kind(path).layout != "parquet":
                refuse_binary(path)
            found.setdefault(path.resolve(), path)
    return list(found.values())


def _named_file(path: Path) -> Path:
    if not path.exists():
        siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        near = near_match(path.name, siblings)
        raise InputError(
            "Every file and folder that is named must exist",
            path,
            f"Did you mean {path.parent / near}?" if near else "Check the path; relative ones start where you are.",
        )
    if not path.is_file():
        raise InputError("Text comes out of files and folders", f"{path}, which is neither", "Name a file or a folder.")
    if path.suffix.lower() == ".json":
        raise InputError(
            "JSON is read as one object a line (.jsonl)",
            path,
            "Write one object a line and name the file .jsonl, or copy the text into a .txt file.",
        )
    return path


def _files_in_folder(folder: Path) -> list[Path]:
    paths: list[Path] = []
    others = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file():
                if file_kind(path).known:
                    paths.append(path)
                else:
                    others += 1
    if not paths:
        received = f"{folder}, with {others} files of other kinds" if others else f"{folder}, which holds no file"
        raise InputError(
            f"A folder must hold files that can be read: {READABLE}",
            received,
            "Name the files themselves to read them as plain text." if others else "Put text files there.",
        )
    return sorted(paths, key=lambda path: path.relative_to(folder).as_posix())
