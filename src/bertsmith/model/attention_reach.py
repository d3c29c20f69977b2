"""How far a token sees: all of its sequence, what stands before it, or a window around it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool
from torch import Tensor

_LARGEST_TILE = 1 << 23
"""Scores of one sequence that are made at once; longer sequences are taken a part of their queries at a time."""
_LEAST_QUERIES = 64


@dataclass(frozen=True)
class Reach:
    """Which keys a query may look at, by their places in the sequence."""

    causal: bool = False
    half_window: int | None = None
    """Keys further away than this are not seen; None: all are."""

    def restricts(self, longest: int) -> bool:
        """Whether any key of a sequence that long is hidden from any query."""
        return self.causal or (self.half_window is not None and longest > self.half_window + 1)

    def mask(self, longest: int, device: torch.device) -> Bool[Tensor, "longest longest"] | None:
        """True where a query (row) sees a key (column); None where all see all."""
        return _mask(self, longest, device) if self.restricts(longest) else None

    def tiles(self, longest: int, heads: int) -> Iterator[tuple[slice, slice, Bool[Tensor, "queries keys"] | None]]:
        """Parts of the queries, the keys that each can see at all, and the mask between them, on the CPU."""
        mask = self.mask(longest, torch.device("cpu"))
        for start, stop in _query_ranges(self.half_window if self.restricts(longest) else None, longest, heads):
            first = 0 if self.half_window is None else max(0, start - self.half_window)
            last = longest if self.half_window is None else min(longest, stop + self.half_window)
            queries, keys = slice(start, stop), slice(first, stop if self.causal else last)
            yield queries, keys, None if mask is None else mask[queries, keys]


def _query_ranges(half_window: int | None, longest: int, heads: int) -> list[tuple[int, int]]:
    size = max(_LEAST_QUERIES, _LARGEST_TILE // (heads * longest))
    if half_window is not None:
        # With as many queries as a window is wide, half of the scores that are made are within reach.
        size = min(size, max(_LEAST_QUERIES, 2 * half_window))
    return [(start, min(start + size, longest)) for start in range(0, longest, size)]


@lru_cache(maxsize=32)
def _mask(reach: Reach, longest: int, device: torch.device) -> Tensor:
    place = torch.arange(longest, device=device)
    ahead = place[None, :] - place[:, None]
    seen = torch.ones(longest, longest, dtype=torch.bool, device=device)
    if reach.causal:
        seen &= ahead <= 0
    if reach.half_window is not None:
        seen &= ahead.abs() <= reach.half_window
    return seen
