"""The values of a regression: numbers read out of a table, and the scale on which they are learned."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bertsmith.examples.task_tables import TaskRow, TaskTable
from bertsmith.foundation.errors import InputError
from bertsmith.text.shown import counted_of

VALUE_COLUMNS = (
    "label",
    "labels",
    "score",
    "value",
    "similarity",
    "similarity_score",
    "relatedness_score",
    "rating",
    "stars",
    "target",
    "price",
)
"""Columns under which the value is looked for, in this order, where none is named."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LARGEST = 1e30
"""Far inside the range of fp32."""
_MOST_STRATA = 10
_ROWS_OF_A_STRATUM = 20
_SMALLEST_SPREAD = 1e-5
"""Of the values' size. fp32, which the model's weights are in, tells apart what differs by a hundredth of this."""


def value_of(row: TaskRow, table: TaskTable) -> float:
    """The number that a row's label is.

    Raises:
        InputError: for text that is no number, a truth value, a list, NaN, or what is infinite or nearly so.
    """
    label = row.label
    value = _number(label)
    if value is None or not abs(value) <= _LARGEST:
        comma = isinstance(label, str) and _NUMBER.fullmatch(label.strip().replace(",", ".", 1))
        raise InputError(
            f"The value that a regression learns must be a number, of {_LARGEST:g} at most",
            f"{table.path}, {row.place}: {table.columns.label}={label!r:.60}",
            "Write a decimal point, not a comma." if comma else "Mend the row, or name another column with --label.",
        )
    return value


def values_of(table: TaskTable) -> Float[np.ndarray, " rows"]:
    """The number of every row; raises as `value_of`."""
    return np.array([value_of(row, table) for row in table.rows], np.float64)


def value_scale(values: Float[np.ndarray, " rows"], where: str | Path) -> tuple[float, float]:
    """Mean and spread (standard deviation) of training values: learned are their distances from the mean in spreads.

    Args:
        values: one a row.
        where: what a person would recognise as the place they came from.

    Raises:
        InputError: if all are equal, or differ by less than fp32 can tell apart.
    """
    if values.min() == values.max():
        raise InputError(
            "Values must differ for a regression to learn anything",
            f"{values[0]:g} in all {len(values)} training rows of {where}",
            "Add rows with other values, or name another column with --label.",
        )
    mean, spread = float(values.mean()), float(values.std())
    if spread < _SMALLEST_SPREAD * np.abs(values).max():
        raise InputError(
            "Values must differ by more than a hundred-thousandth of their size",
            f"a mean of {mean:g} and a spread of {spread:g} in {where}",
            "Take away from each what all have in common.",
        )
    return mean, spread


def value_strata(values: Float[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    """A stratum for each row by its value, so that the rows that are held out have values as the others do.

    There are ten at most, fewer for few rows; each has about as many rows, and those of equal value are in the same.
    """
    count = max(1, min(_MOST_STRATA, len(values) // _ROWS_OF_A_STRATUM))
    edges = np.unique(np.quantile(values, np.linspace(0, 1, count + 1)[1:-1]))
    return np.searchsorted(edges, values, side="right").astype(np.int64)


def value_notes(values: Float[np.ndarray, " rows"]) -> list[str]:
    """What a person should know of training values, a line each."""
    low, middle, high = np.quantile(values, [0, 0.5, 1])
    notes = [f"values from {low:g} to {high:g}, half of them below {middle:g}"]
    common, counts = np.unique(values, return_counts=True)
    if counts.max() > len(values) / 2:
        value = f"the value {common[counts.argmax()]:g}"
        having = counted_of(int(counts.max()), len(values), "row", f"has {value}", f"have {value}")
        notes.append(f"{having}: a model that always says it looks good by its mean error")
    if len(common) <= 2:
        notes.append(f"the values are {' and '.join(f'{value:g}' for value in common)} alone: are they classes?")
    return notes


def _number(label: Any) -> float | None:
    match label:
        case bool():
            return None
        case int() | float() | Decimal():
            try:
                return float(label)
            except OverflowError:  # A whole number of JSON may be larger than any float.
                return None
        case str() if _NUMBER.fullmatch(label.strip()):
            return float(label)
        case _:
            return None
