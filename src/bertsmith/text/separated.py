"""Fields of .csv and .tsv files, and what separates them."""

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bertsmith.foundation.errors import InputError
from bertsmith.text.decoding import MAX_RECORD_CHARACTERS, decoded_chunks, whole_lines
from bertsmith.text.sources import file_kind

_SAMPLE_ROWS = 100
_NAMED = re.compile(r'"?sep=([^\w\s"]|\t)"?', re.IGNORECASE)
"""Excel's first line, which names the separator."""
_OPENING_QUOTE = re.compile(r'(?:\A|[\t\n])"')
_QUOTED = re.compile(r'"[^"]*"')
_OTHER_DELIMITERS = ";\t"
"""What Excel writes into a .csv file where a comma is the decimal sign, and into its “Unicode text”."""


@dataclass(frozen=True)
class Separation:
    """How the lines of a file are split."""

    delimiter: str
    is_quoting: bool
    """Whether quotes hold fields together."""
    num_lines_before: int = 0
    """Lines before the header that are passed over."""
    is_spaced: bool = False
    """Whether spaces behind the delimiter are none of the field's."""


def separation(path: Path, encoding: str = "utf-8") -> Separation:
    """How a .csv or .tsv file is split.

    A .csv file is separated by what its first line names as Excel does, ``sep=;``; else by commas, unless its header
    has none outside of quotes and semicolons or tabs split it into several names. Where a space begins every name but
    the first, spaces behind the separator are no part of what follows. A .tsv file is looked through for whether its
    quotes hold fields together.

    Raises:
        InputError: if the file cannot be opened or decoded.
    """
    if file_kind(path).layout == "tsv":
        return Separation("\t", _quotes_are_quoting(path, encoding, _state(path)))
    lines = (line for _, line in whole_lines(path, encoding))
    first = next(lines, "")
    named = _NAMED.fullmatch(first)
    header = _header(lines if named else itertools.chain([first], lines))
    delimiter = named[1] if named else _delimiter(header)
    names = _QUOTED.sub("", header).split(delimiter)[1:]
    is_spaced = bool(names) and all(name.startswith(" ") for name in names)
    return Separation(delimiter, is_quoting=True, num_lines_before=1 if named else 0, is_spaced=is_spaced)


def separator_note(path: Path, encoding: str = "utf-8") -> str:
    """What is said behind the columns of a .csv file that is not separated by commas; nothing of other files.

    Raises:
        InputError: as `separation`.
    """
    if path.is_dir() or file_kind(path).layout != "csv":
        return ""
    delimiter = separation(path, encoding).delimiter
    return {",": "", "\t": ", separated by tabs"}.get(delimiter, f", separated by “{delimiter}”")


def separated_fields(path: Path, how: Separation, encoding: str) -> Iterator[tuple[int, list[str]]]:
    """Line number (of its first line) and fields of every row that is not empty, however many fields it has.

    Raises:
        InputError: if the file cannot be decoded, and for quotes that do not come in pairs, which leave no way to tell
            the rows that follow.
    """
    csv.field_size_limit(max(csv.field_size_limit(), MAX_RECORD_CHARACTERS))
    lines = (f"{line}\n" for _, line in whole_lines(path, encoding))
    for _ in range(how.num_lines_before):
        next(lines, None)
    reader = csv.reader(
        lines,
        delimiter=how.delimiter,
        quoting=csv.QUOTE_MINIMAL if how.is_quoting else csv.QUOTE_NONE,
        quotechar='"' if how.is_quoting else None,
        skipinitialspace=how.is_spaced,
        strict=True,
    )
    first_line = 1 + how.num_lines_before
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise _NotInPairs(
                f"{path.name} must hold quotes in pairs",
                f"{path}, line {first_line}: a row that cannot be split ({error})",
                "Mend or remove that row.",
            ) from None
        if row is None:
            return
        if row:
            yield first_line, row
        first_line = reader.line_num + 1 + how.num_lines_before


class _NotInPairs(InputError):
    """Quotes that hold fields together do not come in pairs."""


def _header(lines: Iterable[str]) -> str:
    """The first row that is not empty, whole where a name in quotes goes over several lines."""
    header = ""
    for line in itertools.islice(lines, _SAMPLE_ROWS):
        header = f"{header}{line}\n" if header or line else ""
        if header and header.count('"') % 2 == 0:
            break
    return header


def _delimiter(header: str) -> str:
    if "," in _QUOTED.sub("", header):
        return ","
    csv.field_size_limit(max(csv.field_size_limit(), MAX_RECORD_CHARACTERS))
    counts: dict[str, int] = {}
    for delimiter in _OTHER_DELIMITERS:
        names = next(csv.reader(io.StringIO(header), delimiter=delimiter), [])
        counts[delimiter] = sum(bool(name.strip()) for name in names)
    best = max(_OTHER_DELIMITERS, key=lambda delimiter: counts[delimiter])
    return best if counts[best] > 1 else ","


def _state(path: Path) -> tuple[int, int] | None:
    """Size and time of change of a file; None of one that cannot be opened, which is told where it is read."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=32)
def _quotes_are_quoting(path: Path, encoding: str, state: tuple[int, int] | None) -> bool:
    """Whether quotes in a .tsv file hold fields together, where they are often plain characters.

    The whole file is read for that, and several times opened by a command: it is looked through once for each `state`.

    They are taken for quoting only where some field begins with one, and they bring no row out of step with the header
    that is in step without them, nor join lines that are rows by themselves.
    """
    if not any(_OPENING_QUOTE.search(chunk) for chunk in decoded_chunks(path, encoding)):
        return False
    try:
        quoted = _misfit(path, Separation("\t", is_quoting=True), encoding)
    except _NotInPairs:
        return False
    return quoted <= _misfit(path, Separation("\t", is_quoting=False), encoding)


def _misfit(path: Path, how: Separation, encoding: str) -> tuple[int, int]:
    """How badly a way to split a file fits it: how many rows do not have the header's number of fields; of two ways
    with as many, the one that joins more lines, but where a single column leaves nothing to be in step with."""
    rows = separated_fields(path, how, encoding)
    width = len(next(rows, (0, []))[1])
    num_rows = num_odd = 0
    for _, row in rows:
        num_rows += 1
        num_odd += len(row) != width
    return num_odd, -num_rows if width > 1 else 0
