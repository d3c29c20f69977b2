"""Ranges of places, many at once."""

import numpy as np
from jaxtyping import Int


def places_of(starts: Int[np.ndarray, " ranges"], lengths: Int[np.ndarray, " ranges"]) -> Int[np.ndarray, " places"]:
    """All places of ranges that begin at `starts`, one range after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())
