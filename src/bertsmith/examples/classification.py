"""The labels of a classification: found in the data, ordered, and mapped by name."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int

from bertsmith.examples.task_tables import TaskRow, TaskTable
from bertsmith.foundation.errors import InputError, near_match
from bertsmith.foundation.random_streams import random_stream

_MOST_SHOWN = 8
_FEWEST_ROWS_TO_JUDGE = 10


def label_name(row: TaskRow, table: TaskTable) -> str:
    """The name of a row's label: text without surrounding space, a whole number's digits, or true and false.

    Raises:
        InputError: for a list, an object or a number with a fraction.
    """
    label = row.label
    match label:
        case bool():
            return str(label).lower()
        case str():
            return label.strip()
        case int():
            return str(label)
        case float() if label.is_integer():
            return str(int(label))
        case _:
            raise InputError(
                "A label must be a name or a whole number",
                f"{table.path}, {row.place}: {table.columns.label}={label!r:.60}",
                "Write it as one, or name another column with --label.",
            )


def labels_of(table: TaskTable) -> tuple[str, ...]:
    """Every label of a table, ordered by name; numbers by their value.

    Raises:
        InputError: for one label alone, a label of the wrong type, numbers with fractions, or labels that never recur.
    """
    names = {label_name(row, table) for row in table.rows}
    column = f"{table.path}, column {table.columns.label}"
    if len(names) < 2:
        raise InputError(
            "A classification must have two labels at least",
            f"only “{min(names)}” in all {len(table.rows)} rows of {column}",
            "Add rows with another label, or name another column with --label.",
        )
    values = {name: _number(name) for name in names}
    numbers = {name: value for name, value in values.items() if value is not None}
    fraction = next((name for name, value in sorted(numbers.items()) if not value.is_integer()), None)
    if fraction is not None and len(numbers) == len(names):
        raise InputError(
            "Labels must be names or whole numbers",
            f"{fraction} among the {len(names)} labels of {column}",
            "Name another column with --label, or give each class a name.",
        )
    if len(names) == len(table.rows) >= _FEWEST_ROWS_TO_JUDGE:
        raise InputError(
            "Labels must recur", f"another label in each of {len(names)} rows of {column}", "Name the right one."
        )
    return label_order(names)


def label_order(names: Iterable[str]) -> tuple[str, ...]:
    """Labels ordered by name; numbers, where all are, by their value."""
    values = {name: _number(name) for name in names}
    numbers = {name: value for name, value in values.items() if value is not None}
    if len(numbers) == len(values):
        return tuple(sorted(values, key=lambda name: (numbers[name], name)))
    return tuple(sorted(values))


def label_ids(table: TaskTable, labels: Sequence[str]) -> Int[np.ndarray, " rows"]:
    """Place of each row's label among `labels`, found by its name.

    Raises:
        InputError: for a label that is none of them; it and its row are named.
    """
    places = {name: place for place, name in enumerate(labels)}
    ids = np.empty(len(table.rows), np.int64)
    for number, row in enumerate(table.rows):
        name = label_name(row, table)
        if name not in places:
            raise unknown_label(name, labels, table.path, row.place)
        ids[number] = places[name]
    return ids


def unknown_label(name: str, labels: Sequence[str], path: Path, place: str) -> InputError:
    """The error for a label of a row that a model does not know."""
    shown = ", ".join(labels[:_MOST_SHOWN]) + (" …" if len(labels) > _MOST_SHOWN else "")
    near = near_match(name, labels)
    return InputError(
        f"Every label must be one that the model is trained on: {shown}",
        f"“{name}” in {path}, {place}",
        f"Did you mean {near}?" if near else "Mend the row, or add rows with this label to the training data.",
    )


def stratified_split(
    ids: Int[np.ndarray, " rows"], *, share: float, seed: int
) -> tuple[Int[np.ndarray, " train"], Int[np.ndarray, " validation"]]:
    """Split rows so that each label has about the same share on both sides.

    Args:
        ids: label of each row.
        share: of the rows, to be held out; of each label one row at least, a label's only row excepted.
        seed: decides which.

    Returns:
        the rows to train on and those held out, each in ascending order.
    """
    held_out = np.zeros(len(ids), bool)
    for label in np.unique(ids):
        rows = np.flatnonzero(ids == label)
        count = min(max(1, round(share * len(rows))), len(rows) - 1)
        held_out[random_stream(seed, "held out", int(label)).permutation(rows)[:count]] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def label_counts(ids: Int[np.ndarray, " rows"], labels: Sequence[str]) -> dict[str, int]:
    """Rows of each label."""
    counts = Counter(ids.tolist())
    return {name: counts[place] for place, name in enumerate(labels)}


def balanced_weights(ids: Int[np.ndarray, " rows"], num_labels: int) -> tuple[float, ...]:
    """A weight for each label so that all weigh the same together, and a row 1 on average."""
    counts = np.bincount(ids, minlength=num_labels)
    return tuple((len(ids) / (num_labels * np.maximum(counts, 1))).tolist())


def _number(name: str) -> float | None:
    try:
        value = float(name)
    except ValueError:
        return None
    return value if np.isfinite(value) else None
