"""How two lists of numbers go together: Pearson's and Spearman's coefficients."""

import numpy as np
from jaxtyping import Float


def pearson(first: Float[np.ndarray, " rows"], second: Float[np.ndarray, " rows"]) -> float:
    """Pearson's correlation, from -1 to 1; 0 where one side is constant, where it is not defined.

    NaN where a side holds what is no finite number.
    """
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return float("nan")
    directions: list[np.ndarray] = []
    for side in (first, second):
        distances = side - side.mean(dtype=np.float64)
        size = np.abs(distances).max()
        if size == 0 or side.min() == side.max():
            return 0.0
        # The size is taken out first, so that no square of a small or large distance is lost.
        directions.append(distances / size / np.linalg.norm(distances / size))
    return float(np.clip(directions[0] @ directions[1], -1.0, 1.0))


def spearman(first: Float[np.ndarray, " rows"], second: Float[np.ndarray, " rows"]) -> float:
    """Spearman's rank correlation: Pearson's of the ranks, where equal values share the mean of theirs.

    NaN where a side holds a NaN, which has no rank.
    """
    return pearson(ranks(first), ranks(second))


def ranks(numbers: Float[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
    """The place of each number from the least, from 1; equal ones share the mean of theirs. All NaN where one is."""
    if np.isnan(numbers).any():
        return np.full(len(numbers), np.nan)
    _, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]
