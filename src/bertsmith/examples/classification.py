"""The labels of a classification: found in the data, ordered, and mapped by name."""

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int

from bertsmith.examples.task_tables import TaskRow, TaskTable
from bertsmith.foundation.errors import InputError, near_match
from bertsmith.foundation.random_streams import random_stream
from bertsmith.text.shown import listed_names, on_one_line

_MOST_SHOWN = 8
_FEWEST_ROWS_TO_JUDGE = 10
_WHOLE_NUMBER = re.compile(r"(-?(?:0|[1-9]\d*))\.0*", re.ASCII)


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


def whole_number(name: str) -> str:
    """A whole number without the fraction that some files write, ``1`` for ``1.0``; any other name as it is."""
    found = _WHOLE_NUMBER.fullmatch(name)
    return found[1] if found else name


def whole_names(names: Collection[str]) -> set[str]:
    """Names of labels, whole numbers without a fraction, so that they are the same out of every kind of file.

    Beside a number that has one, such as ``1.1``, they stay as they are written: all may be names, as of versions.
    """
    values = filter(None, map(_number, names))
    return set(map(whole_number, names)) if all(value.is_integer() for value in values) else set(names)


def labels_of(table: TaskTable) -> tuple[str, ...]:
    """Every label of a table, ordered by name; numbers by their value.

    Raises:
        InputError: for one label alone, a label of the wrong type, numbers with fractions, or labels that never recur.
    """
    names = whole_names({label_name(row, table) for row in table.rows})
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


def label_places(labels: Sequence[str]) -> dict[str, int]:
    """Place of each label by its name, and of a whole number also by what it is without a fraction."""
    places = {name: place for place, name in enumerate(labels)}
    return {whole_number(name): place for name, place in places.items()} | places


def place_of(name: str, places: Mapping[str, int]) -> int | None:
    """The place of a label as it is written, or as the whole number that it is; None where there is neither."""
    return places[name] if name in places else places.get(whole_number(name))


def label_ids(table: TaskTable, labels: Sequence[str]) -> Int[np.ndarray, " rows"]:
    """Place of each row's label among `labels`, found by its name.

    Raises:
        InputError: for a label that is none of them; it and its row are named.
    """
    places = label_places(labels)
    ids = np.empty(len(table.rows), np.int64)
    for number, row in enumerate(table.rows):
        name = label_name(row, table)
        place = place_of(name, places)
        if place is None:
            raise unknown_label(name, labels, table.path, row.place)
        ids[number] = place
    return ids


def unknown_label(name: str, labels: Sequence[str], path: Path, place: str, *, word: str | None = None) -> InputError:
    """The error for a label of a row, or of a word in it, that a model does not know."""
    shown = on_one_line(listed_names(labels[:_MOST_SHOWN])) + (" …" if len(labels) > _MOST_SHOWN else "")
    near = near_match(name, labels)
    return InputError(
        f"Every label must be one that the model is trained on: {shown}",
        f"“{on_one_line(name)}”{'' if word is None else f' of “{word:.30}”'} in {path}, {place}",
        f"Did you mean {near}?" if near else "Mend it, or add rows with this label to the training data.",
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


def grouped_split(
    ids: Int[np.ndarray, " rows"], groups: Sequence[Hashable], *, share: float, seed: int
) -> tuple[Int[np.ndarray, " train"], Int[np.ndarray, " validation"]]:
    """Split rows as `stratified_split` does, as far as all rows of a group can stay on one side.

    Groups are gone through in an order that `seed` decides, and held out where that brings the rows of each label
    nearer to their share; where none does, the one that leads least far beyond it is. A row of each label stays to
    train on. Where no group can be held out, rows are split one by one.

    Args:
        ids: label of each row.
        groups: what each row belongs to; rows with equal ones stay together.
        share: of the rows, to be held out.
        seed: decides which.

    Returns:
        the rows to train on and those held out, each in ascending order.
    """
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    members = np.array([numbers[group] for group in groups], np.int64)
    labels, places = np.unique(ids, return_inverse=True)
    counts = np.zeros((len(numbers), len(labels)), np.int64)
    np.add.at(counts, (members, places), 1)
    left = counts.sum(0)
    missing = np.clip(np.round(share * left).astype(np.int64), 1, np.maximum(left - 1, 0))
    held = np.zeros(len(numbers), bool)
    order = random_stream(seed, "held out", "groups").permutation(len(numbers)).tolist()
    for group in order:
        if _leaves_some(left, counts[group]) and _distance(missing - counts[group]) < _distance(missing):
            held[group] = True
            left, missing = left - counts[group], missing - counts[group]
    if not held.any():
        possible = [group for group in order if _leaves_some(left, counts[group])]
        if not possible:
            return stratified_split(ids, share=share, seed=seed)
        held[min(possible, key=lambda group: _distance(missing - counts[group]))] = True
    return np.flatnonzero(~held[members]), np.flatnonzero(held[members])


def label_counts(ids: Int[np.ndarray, " rows"], labels: Sequence[str]) -> dict[str, int]:
    """Rows of each label."""
    counts = Counter(ids.tolist())
    return {name: counts[place] for place, name in enumerate(labels)}


def balanced_weights(ids: Int[np.ndarray, " rows"], num_labels: int) -> tuple[float, ...]:
    """A weight for each label so that all weigh the same together, and a row 1 on average."""
    counts = np.bincount(ids, minlength=num_labels)
    return tuple((len(ids) / (num_labels * np.maximum(counts, 1))).tolist())


def _leaves_some(left: Int[np.ndarray, " labels"], taken: Int[np.ndarray, " labels"]) -> bool:
    """Whether rows are left of each label that some are taken of."""
    return bool((left > taken)[taken > 0].all())


def _distance(missing: Int[np.ndarray, " labels"]) -> int:
    return int(np.abs(missing).sum())


def _number(name: str) -> float | None:
    try:
        value = float(name)
    except ValueError:
        return None
    return value if np.isfinite(value) else None
