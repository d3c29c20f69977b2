"""Rows as separated text that every reader of such files parts in the same places."""

import csv
import io
from collections.abc import Sequence


def separated_row(cells: Sequence[str | int | float], delimiter: str) -> str:
    """A row with the line feed that ends it; a cell is quoted where it must be.

    Each cell of a row that holds a carriage return is quoted: readers take a bare one for the end of a row, and before
    Python 3.13 its `csv` leaves it bare.
    """
    has_return = any(isinstance(cell, str) and "\r" in cell for cell in cells)
    quoting = csv.QUOTE_ALL if has_return else csv.QUOTE_MINIMAL
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter, lineterminator="\n", quoting=quoting).writerow(cells)
    return file.getvalue()
