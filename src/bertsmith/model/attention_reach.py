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
_LONG_IN_WINDOWS = 4


@dataclass(frozen=True)
class Reach:
    """Which keys a query may look at, by their places in the sequence."""

    causal: bool = False
    half_window: int | None = None
    """Keys further away than this are not seen; None: all are."""

    def restricts(self, longest: int) -> bool:
        """Whether any key of a sequence that long is hidden from any query."""
        return self.causal or (self.half_window is not None and longest > self.half_window + 1)

    def sees_little_of(self, longest: int) -> bool:
        """Whether a window is all that is seen of a sequence several times as long."""
        return self.half_window is not None and longest > _LONG_IN_WINDOWS * 2 * self.half_window

    def mask(self, longest: int, device: torch.device) -> Bool[Tensor, "longest longest"] | None:
        """True where a query (row) sees a key (column); None where all see all."""
        return _whole_mask(self, longest, device) if self.restricts(longest) else None

    def tile_bounds(self, longest: int, heads: int) -> list[tuple[slice, slice]]:
        """Parts of the queries, and the keys that each can see at all."""
        return [(queries, keys) for queries, keys, _ in self.tiles(longest, heads)]

    def tiles(self, longest: int, heads: int) -> Iterator[tuple[slice, slice, Bool[Tensor, "queries keys"] | None]]:
        """Parts of the queries, the keys that each can see at all, and the mask between them, on the CPU."""
        restricts = self.restricts(longest)
        for start, stop in _query_ranges(self.half_window if restricts else None, longest, heads):
            first = 0 if self.half_window is None else max(0, start - self.half_window)
            last = longest if self.half_window is None else min(longest, stop + self.half_window)
            last = stop if self.causal else last
            mask = _part_mask(self, stop - start, last - first, start - first) if restricts else None
            yield slice(start, stop), slice(first, last), mask


def _query_ranges(half_window: int | None, longest: int, heads: int) -> list[tuple[int, int]]:
    size = max(_LEAST_QUERIES, _LARGEST_TILE // (heads * longest))
    if half_window is not None:
        # With as many queries as a window is wide, half of the scores that are made are within reach.
        size = min(size, max(_LEAST_QUERIES, 2 * half_window))
    return [(start, min(start + size, longest)) for start in range(0, longest, size)]


@lru_cache(maxsize=4)
def _whole_mask(reach: Reach, longest: int, device: torch.device) -> Tensor:
    # As large as a sequence's scores, so only the last few are kept.
    return _seen(reach, longest, longest, 0, device)


@lru_cache(maxsize=64)
def _part_mask(reach: Reach, queries: int, keys: int, ahead: int) -> Tensor:
    return _seen(reach, queries, keys, ahead, torch.device("cpu"))


def _seen(reach: Reach, queries: int, keys: int, ahead: int, device: torch.device) -> Tensor:
    """The mask where the first query stands `ahead` places after the first key."""
    distance = torch.arange(keys, device=device)[None, :] - torch.arange(ahead, ahead + queries, device=device)[:, None]
    seen = torch.ones_like(distance, dtype=torch.bool)
    if reach.causal:
        seen &= distance <= 0
    if reach.half_window is not None:
        seen &= distance.abs() <= reach.half_window
    return seen
