"""Attention by the book in float64, a sequence at a time, and what it takes in."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from exact_results import random
from torch import Tensor

from bertsmith.kernels.attention import SequenceBlock, attend
from bertsmith.model.attention_reach import Reach

LENGTHS = [5, 1, 12, 7, 9, 12, 2]
REACHES = [Reach(), Reach(causal=True), Reach(half_window=2), Reach(half_window=3, causal=True)]
ALL_TOGETHER = [list(range(len(LENGTHS)))]
BY_LENGTH = [[1, 6], [3, 0], [2, 4, 5]]


@dataclass(frozen=True)
class Packed:
    """Query, key and value of sequences that stand one after the other, and how they are taken together."""

    rows: Tensor
    """``[tokens, 3, heads, head_size]``."""
    lengths: list[int]
    groups: list[list[int]]
    angles: Tensor | None = None
    """``[tokens, head_size / 2]``, by which pairs of columns are turned."""

    @property
    def places(self) -> list[slice]:
        """The tokens of each sequence."""
        ends = torch.tensor(self.lengths).cumsum(0).tolist()
        return [slice(end - length, end) for end, length in zip(ends, self.lengths, strict=True)]

    @property
    def blocks(self) -> list[SequenceBlock]:
        """The groups, each padded to two places more than it needs."""
        starts, lengths = torch.tensor([place.start for place in self.places]), torch.tensor(self.lengths)
        return [
            SequenceBlock(starts[group], lengths[group], max(self.lengths[number] for number in group) + 2)
            for group in self.groups
        ]

    def attend(self, rows: Tensor, reach: Reach, dropout: float = 0.0) -> Tensor:
        """What the kernels find for rows like these."""
        return attend(rows, self.blocks, reach, dropout, *self._tables())

    def _tables(self) -> tuple[Tensor, Tensor] | tuple[None, None]:
        if self.angles is None:
            return None, None
        cosine, sine = self.angles.cos(), self.angles.sin()
        return torch.cat([cosine, cosine], -1).float(), torch.cat([-sine, sine], -1).float()


def made_packed(
    heads: int,
    head_size: int,
    *,
    lengths: Sequence[int] = LENGTHS,
    groups: Sequence[Sequence[int]] = ALL_TOGETHER,
    rotated: bool = False,
    seed: int = 0,
) -> Packed:
    """Random rows in fp32."""
    tokens = sum(lengths)
    angles = 3 * random(tokens, head_size // 2, seed=seed + 1).double() if rotated else None
    return Packed(random(tokens, 3, heads, head_size, seed=seed), list(lengths), [*map(list, groups)], angles)


def seen(reach: Reach, length: int) -> Tensor:
    """True where a query (row) sees a key (column)."""
    ahead = torch.arange(length) - torch.arange(length)[:, None]
    near = torch.ones_like(ahead, dtype=torch.bool) if reach.half_window is None else ahead.abs() <= reach.half_window
    return near & (ahead <= 0) if reach.causal else near


def softmax_weights(rows: Tensor, packed: Packed, reach: Reach) -> list[Tensor]:
    """The weights ``[heads, queries, keys]`` of each sequence, before any dropout."""
    query, key = rows[:, 0], rows[:, 1]
    if packed.angles is not None:
        query, key = _turned(query, packed.angles), _turned(key, packed.angles)
    weights: list[Tensor] = []
    for place in packed.places:
        scores = torch.einsum("qhd,khd->hqk", query[place], key[place]) / rows.shape[-1] ** 0.5
        hidden = ~seen(reach, place.stop - place.start)
        weights.append(scores.masked_fill(hidden, -torch.inf).softmax(-1))
    return weights


def dense_attention(rows: Tensor, packed: Packed, reach: Reach, factors: Sequence[Tensor] | None = None) -> Tensor:
    """What each token finds, where each weight was multiplied with a factor."""
    weights = softmax_weights(rows, packed, reach)
    if factors is not None:
        weights = [weight * factor for weight, factor in zip(weights, factors, strict=True)]
    found = [
        torch.einsum("hqk,khd->qhd", weight, rows[place, 2])
        for weight, place in zip(weights, packed.places, strict=True)
    ]
    return torch.cat(found)


def _turned(part: Tensor, angles: Tensor) -> Tensor:
    """Pairs of columns as complex numbers, turned."""
    half = part.shape[-1] // 2
    numbers = torch.complex(part[..., :half], part[..., half:])
    turned = numbers * torch.polar(torch.ones_like(angles), angles)[:, None]
    return torch.cat([turned.real, turned.imag], -1)
