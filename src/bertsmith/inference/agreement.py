"""How often an int8 model says what its model says, on texts: judged by what people read of a prediction."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from bertsmith.foundation.errors import InputError
from bertsmith.inference.engine import Job

Measure = Literal[
    "cosine", "equal labels", "equal words", "equal answers", "equal choices", "equal pieces", "correlation"
]
Values = dict[str, Any]
"""A prediction's plain values."""

LEAST_COSINE, LEAST_EQUAL = 0.98, 0.97
"""What an int8 model must reach where nothing else is asked for: with vectors or values, and with what is chosen."""
_SMALLEST = 1e-12


@dataclass(frozen=True)
class Agreement:
    """Two models compared on texts.

    Attributes:
        measure: what is counted: the mean cosine of embeddings, the correlation of values, or the share of labels,
            labelled words, answers, choices or likeliest pieces that are equal.
        value: how much of it, at most 1.
        mean_difference: of the probabilities, of the numbers of an embedding, or of the values.
        compared: how many were compared.
    """

    measure: Measure
    value: float
    mean_difference: float
    compared: int

    @property
    def values(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def agreement(job: Job, exact: Sequence[Values], other: Sequence[Values]) -> Agreement:
    """Compare predictions on the same items.

    Args:
        job: what was predicted.
        exact: by the model itself.
        other: by the one that is judged.
    """
    pairs = list(zip(exact, other, strict=True))
    if job == "embed":
        return _of_vectors(pairs)
    if job == "regress":
        return _of_values(pairs)
    measure, units = _CHOSEN[job]
    found = [units(one, another) for one, another in pairs]
    equal, differences = (np.concatenate([np.atleast_1d(unit[part]) for unit in found]) for part in (0, 1))
    return Agreement(measure, float(np.mean(equal)), float(np.mean(differences)), len(equal))


def least_agreement(job: Job) -> float:
    """What is asked of a job where nobody asked for something else."""
    return LEAST_COSINE if job in ("embed", "regress") else LEAST_EQUAL


def refuse_agreement(found: Agreement, least: float, *, do: str) -> None:
    """Raise an `InputError` where an int8 model agrees less than is asked.

    Args:
        found: how far it agrees.
        least: what is asked.
        do: what can be done about it.
    """
    if found.value >= least:
        return
    raise InputError(
        f"A model in int8 must agree with its model: {found.measure} of {least:g} at least",
        f"{found.value:.6g} over {found.compared:,} of the texts that it is judged by",
        do,
    )


def _of_vectors(pairs: Sequence[tuple[Values, Values]]) -> Agreement:
    ours, theirs = (np.array([pair[side]["embedding"] for pair in pairs], np.float64) for side in (0, 1))
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    cosines = (ours * theirs).sum(1) / np.maximum(lengths, _SMALLEST)
    return Agreement("cosine", float(cosines.mean()), float(np.abs(ours - theirs).mean()), len(pairs))


def _of_values(pairs: Sequence[tuple[Values, Values]]) -> Agreement:
    ours, theirs = (np.array([pair[side]["value"] for pair in pairs], np.float64) for side in (0, 1))
    apart = [values - values.mean() for values in (ours, theirs)]
    spread = np.linalg.norm(apart[0]) * np.linalg.norm(apart[1])
    # Where one of them says the same of every text, both must.
    same = float(np.allclose(ours, theirs))
    correlation = float(apart[0] @ apart[1] / spread) if spread > _SMALLEST else same
    return Agreement("correlation", correlation, float(np.abs(ours - theirs).mean()), len(pairs))


Units = tuple[Any, Any]
"""Whether each unit of an item is equal, and by how much its probability differs."""


def _label(one: Values, other: Values) -> Units:
    return one["label"] == other["label"], abs(one["scores"][one["label"]] - other["scores"][one["label"]])


def _labels(one: Values, other: Values) -> Units:
    names = list(one["scores"])
    equal = [(name in one["labels"]) == (name in other["labels"]) for name in names]
    return equal, [abs(one["scores"][name] - other["scores"][name]) for name in names]


def _words(one: Values, other: Values) -> Units:
    pairs = list(zip(one["words"], other["words"], strict=True))
    return [a["label"] == b["label"] for a, b in pairs], [abs(a["score"] - b["score"]) for a, b in pairs]


def _answer(one: Values, other: Values) -> Units:
    places = [(found["start"], found["end"]) for found in (one, other)]
    return places[0] == places[1], abs(one["score"] - other["score"])


def _choice(one: Values, other: Values) -> Units:
    return one["index"] == other["index"], np.abs(np.subtract(one["scores"], other["scores"])).mean()


def _piece(one: Values, other: Values) -> Units:
    return one["piece"] == other["piece"], abs(one["score"] - other["score"])


_CHOSEN: dict[Job, tuple[Measure, Callable[[Values, Values], Units]]] = {
    "classify": ("equal labels", _label),
    "multilabel": ("equal labels", _labels),
    "tag": ("equal words", _words),
    "answer": ("equal answers", _answer),
    "choose": ("equal choices", _choice),
    "fill": ("equal pieces", _piece),
}
