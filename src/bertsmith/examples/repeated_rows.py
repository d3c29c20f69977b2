"""Rows with the same texts: in one file, with different answers, or in training and validation."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from bertsmith.examples.choice_tables import ChoiceItem
from bertsmith.examples.classification import whole_number
from bertsmith.examples.table_config import OptionNames
from bertsmith.foundation.errors import InputError
from bertsmith.text.shown import counted, counted_of, first_few, shortened

_MOST_TEXTS_SHOWN = 3


@runtime_checkable
class KeyedRow(Protocol):
    """A row of any task."""

    @property
    def key(self) -> Hashable:
        """Its text or texts: rows with the same key show a model the same."""
        ...

    @property
    def place(self) -> str:
        """Where it stands in its file."""
        ...


@runtime_checkable
class JudgedRow(KeyedRow, Protocol):
    """A row of a task in which the same texts have one right answer."""

    @property
    def target(self) -> Any:
        """What must be found, as it was written."""
        ...


@dataclass(frozen=True)
class Contradiction:
    """Two rows with the same texts and different answers."""

    first: str
    """Place of the first row with these texts."""
    other: str
    key: Hashable

    def __str__(self) -> str:
        return f"{self.first} and {self.other}"


def contradictions(rows: Sequence[KeyedRow]) -> list[Contradiction]:
    """Rows whose texts stood before with another answer, each with the first row that has these texts.

    In tasks where several answers may be right there are none.
    """
    seen: dict[Hashable, tuple[str, str]] = {}
    found: list[Contradiction] = []
    for row in rows:
        if not isinstance(row, JudgedRow):
            return []
        target = _label_name(row.target)
        first, expected = seen.setdefault(row.key, (row.place, target))
        if target != expected:
            found.append(Contradiction(first, row.place, row.key))
    return found


def _label_name(target: Any) -> str:
    """A label's name, by which it is learned: JSON's true is the same as the text."""
    return str(target).lower() if isinstance(target, bool) else whole_number(str(target).strip())


def contradiction_note(rows: Sequence[KeyedRow]) -> str | None:
    """A line about rows that contradict each other; None without any."""
    places: dict[Hashable, list[str]] = {}
    for one in contradictions(rows):
        places.setdefault(one.key, [one.first]).append(one.other)
    if not places:
        return None
    shown = [f"“{shortened(_first_text(key))}” in {first_few(of_text)}" for key, of_text in places.items()]
    differ = "different labels in different rows"
    texts = counted(len(places), f"text has {differ}", f"texts have {differ}")
    more = len(shown) - _MOST_TEXTS_SHOWN
    return f"{texts}: {'; '.join(shown[:_MOST_TEXTS_SHOWN])}" + (
        f"; and {counted(more, 'more text')}" if more > 0 else ""
    )


def repeats(rows: Sequence[KeyedRow]) -> list[str]:
    """Places of the rows with the texts of an earlier one."""
    known: set[Hashable] = set()
    found: list[str] = []
    for row in rows:
        if row.key in known:
            found.append(row.place)
        known.add(row.key)
    return found


def overlap(train: Sequence[KeyedRow], validation: Sequence[KeyedRow]) -> list[str]:
    """Places of validation rows whose texts stand in training rows too."""
    known = {row.key for row in train}
    return [row.place for row in validation if row.key in known]


def overlap_note(train: Sequence[KeyedRow], validation: Sequence[KeyedRow]) -> str | None:
    """A line about rows that stand in both, which make scores look better than they are; None without any."""
    shared = len(overlap(train, validation))
    if not shared:
        return None
    stand = ("stands in the training rows too", "stand in the training rows too")
    return counted_of(shared, len(validation), "validation text", *stand)


def refuse_contradictions(path: Path, rows: Sequence[KeyedRow], options: OptionNames = OptionNames()) -> None:
    """Raise an `InputError` that lists the rows of a file that contradict each other, if any do."""
    if found := contradictions(rows):
        raise InputError(
            f"Under {options.strict} rows with the same texts must have the same label",
            f"{len(found):,} in {path} that differ from an earlier one: {first_few(list(map(str, found)))}",
            f"Mend or remove these rows, or leave {options.strict} out.",
        )


def refuse_overlap(
    path: Path, train: Sequence[KeyedRow], validation: Sequence[KeyedRow], options: OptionNames = OptionNames()
) -> None:
    """Raise an `InputError` that lists the validation rows, of a file, that stand in training too, if any do."""
    if shared := overlap(train, validation):
        raise InputError(
            f"Under {options.strict} no validation row may have the texts of a training row",
            f"{len(shared):,} of {len(validation):,}, in {path}: {first_few(shared)}",
            f"Remove these rows from one of the two, or leave {options.strict} out.",
        )


def refuse_repeats(path: Path, rows: Sequence[KeyedRow], options: OptionNames = OptionNames()) -> None:
    """Raise an `InputError` that lists the rows of a file with the texts of an earlier one, if any have them.

    It is for files of which a share is held out: whichever rows that are, none then stands in training too.
    """
    if found := repeats(rows):
        raise InputError(
            f"Under {options.strict} no text may be repeated where a share of the rows is held out",
            f"{len(found):,} of {len(rows):,} rows of {path}: {first_few(found)}",
            f"Remove the repeats, give rows to validate on with --validation, or leave {options.strict} out.",
        )


def _first_text(key: Any) -> str:
    match key:
        case ChoiceItem():
            return key.text
        case tuple():
            return key[0]
        case _:
            return key
