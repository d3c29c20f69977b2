"""How a table writes any number of labels for a row: a list, text with separators, or columns of 0 and 1."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bertsmith.examples.classification import whole_number
from bertsmith.examples.written_lists import is_written_list, read_list
from bertsmith.foundation.errors import InputError
from bertsmith.text.written_values import read_flag

Form = Literal["names", "separated", "flags", "columns"]
SEPARATORS = ("|", ";", ",")
"""In this order: a comma may stand inside a name where another sign separates."""


@dataclass(frozen=True)
class LabelLayout:
    """Where the labels of a row stand, and how they are written."""

    columns: tuple[str, ...]
    form: Form
    """names: a list of names, or one name. separated: names in one text. flags: a list with 0 or 1 for each label.
    columns: a column of 0 and 1 for each label."""
    separator: str | None = None
    """Between the names of one text; None where no row has two."""

    def __str__(self) -> str:
        named = ", ".join(f"“{name}”" for name in self.columns)
        match self.form:
            case "names":
                return f"labels {named} (lists of names)"
            case "separated":
                how = f"separated by “{self.separator}”" if self.separator else "one a row: no separator was found"
                return f"labels {named} ({how})"
            case "flags":
                return f"labels {named} (lists of 0 and 1)"
            case "columns":
                return f"labels {named} (0 or 1 in each)"


@dataclass(frozen=True)
class LabelCells:
    """What a row has in the columns of its labels, as written."""

    values: tuple[Any, ...]
    """One a column; None for a blank one."""
    place: str


def guess_layout(columns: Sequence[str], rows: Sequence[LabelCells], *, named: bool) -> LabelLayout:
    """How the labels of a file are written.

    Args:
        columns: where they stand.
        rows: the cells of all its rows.
        named: whether a single column that holds 0 and 1 alone is a label itself, as where a person named it.
    """
    if len(columns) > 1:
        return LabelLayout(tuple(columns), "columns")
    cells = [row.values[0] for row in rows if row.values[0] is not None]
    if cells and named and all(read_flag(cell) is not None for cell in cells):
        return LabelLayout(tuple(columns), "columns")
    if cells and all(isinstance(cell, list | tuple) or is_written_list(cell) for cell in cells):
        lists = [read_list(cell) or [] for cell in cells]
        return LabelLayout(tuple(columns), "flags" if _are_flags([found for found in lists if found]) else "names")
    if not cells or not all(isinstance(cell, str) for cell in cells):
        return LabelLayout(tuple(columns), "names")
    separator = next((sign for sign in SEPARATORS if any(sign in cell for cell in cells)), None)
    return LabelLayout(tuple(columns), "separated", separator)


def label_set(row: LabelCells, layout: LabelLayout, path: Path, *, width: int | None = None) -> tuple[str, ...]:
    """The labels of a row, each once, in alphabetical order; none is a valid answer.

    Args:
        row: its cells.
        layout: how they are written.
        path: the file, for messages.
        width: of lists of 0 and 1, how long each must be.

    Raises:
        InputError: for a value other than 0 or 1 where only these may stand, a list that is too long or short, or what
            is no name.
    """
    cell = row.values[0]
    match layout.form:
        case "columns":
            flags = zip(layout.columns, row.values, strict=True)
            found = [name for name, value in flags if _must_be_flag(value, path, row.place, name)]
        case "flags":
            found = _flagged(_listed(cell, path, row.place, layout), path, row.place, layout, width)
        case "separated":
            split = isinstance(cell, str) and layout.separator is not None
            parts = cell.split(layout.separator) if split else _listed(cell, path, row.place, layout)
            found = [_name(part, path, row.place, layout) for part in parts]
        case "names":
            found = [_name(part, path, row.place, layout) for part in _listed(cell, path, row.place, layout)]
    return tuple(sorted({name for name in found if name}))


def best_layout(
    layouts: Sequence[LabelLayout], cells: Sequence[LabelCells], known: Collection[str], path: Path, *, width: int = 0
) -> LabelLayout:
    """The layout by which cells hold the fewest unknown labels and then the most known ones, the first of equal ones.

    Where cells can be read by none, it is the last, so that the error is told to which it leads.
    """
    whole = set(map(whole_number, known))
    found: list[tuple[int, int, int]] = []
    for place, layout in enumerate(layouts):
        try:
            sets = [label_set(row, layout, path, width=width or None) for row in cells]
        except InputError:
            continue
        names = [whole_number(name) in whole for of_row in sets for name in of_row]
        found.append((names.count(False), -names.count(True), place))
    return layouts[min(found)[2]] if found else layouts[-1]


def flag_width(rows: Sequence[LabelCells]) -> int:
    """Length of the first list that is not empty; 0 without any."""
    return next((len(found) for row in rows if (found := read_list(row.values[0]))), 0)


def _are_flags(lists: Sequence[Sequence[Any]]) -> bool:
    """Whether lists hold a 0 or 1 for each label, and not the numbers of labels, which never recur in a list."""
    numbers = [value for found in lists for value in found]
    if not numbers or not all(isinstance(value, bool | int | float) for value in numbers):
        return False
    if any(isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()) for value in numbers):
        return True
    of_one_length = len({len(found) for found in lists}) == 1 and len(lists[0]) > 1
    only_zero_and_one = all(value in (0, 1) for value in numbers)
    repeats = any(len(set(found)) < len(found) for found in lists)
    return (of_one_length and (only_zero_and_one or repeats)) or (only_zero_and_one and repeats)


def _listed(cell: Any, path: Path, place: str, layout: LabelLayout) -> list[Any]:
    if cell is None:
        return []
    found = read_list(cell)
    if found is not None:
        return found
    if is_written_list(cell):
        raise InputError(
            "A list of labels must be written as JSON or Python writes one",
            f"{path}, {place}: {layout.columns[0]}={cell!r:.60}",
            'For example ["a", "b"], or a|b without brackets.',
        )
    return [cell]


def _flagged(values: list[Any], path: Path, place: str, layout: LabelLayout, width: int | None) -> list[str]:
    if values and width is not None and len(values) != width:
        raise InputError(
            "Lists of 0 and 1 must all be as long: a place for each label",
            f"{path}, {place}: {len(values)} in {layout.columns[0]}, and {width} in the first row",
            "Mend the row, or write the names of the labels that it has.",
        )
    return [
        str(number)
        for number, value in enumerate(values)
        if _must_be_flag(value, path, place, f"{layout.columns[0]}[{number}]")
    ]


def _must_be_flag(value: Any, path: Path, place: str, name: str) -> bool:
    flag = read_flag(value)
    if flag is None:
        raise InputError(
            "A label that a row has or lacks must be written as 1 or 0",
            f"{path}, {place}: {name}={value!r:.60}",
            "Mend the row, or name other columns with --label.",
        )
    return flag


def _name(value: Any, path: Path, place: str, layout: LabelLayout) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case str():
            return value.strip()
        case int():
            return str(value)
        case float() if value.is_integer():
            return str(int(value))
        case _:
            raise InputError(
                "A label must be a name or a whole number",
                f"{path}, {place}: {value!r:.60} in {layout.columns[0]}",
                "Write it as one, or name another column with --label.",
            )
