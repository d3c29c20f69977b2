"""Attention for training on a CPU: a few sequences at a time by matrix products, made again in the backward pass.

A block's scores stay in the caches, and nothing of the size ``longest x longest`` outlives its block, but for dropout:
a byte a score, since drawing it twice would cost more than all else. Where a token
sees a window only, or a sequence is very long, its queries are taken a tile at a time with the keys within reach.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bertsmith.model.attention_reach import Reach

_BLOCK_ELEMENTS = 1 << 21
"""Scores held at a time: 4 MiB in bf16. Smaller blocks cost more in calls than the caches give back."""


def blocked_attention(
    query_key_value: Float[Tensor, "sequences longest 3 heads head_size"],
    key_mask: Bool[Tensor, "sequences 1 1 longest"] | None,
    dropout: float,
    reach: Reach,
) -> Float[Tensor, "sequences longest heads head_size"]:
    """Scaled dot-product attention of each sequence with itself.

    Args:
        query_key_value: the three, side by side.
        key_mask: True where a key is real; None where all are.
        dropout: share of the attention weights that is set to zero, drawn from torch's random state.
        reach: how far a query sees.
    """
    with torch.autocast("cpu", enabled=False):
        return _BlockedAttention.apply(query_key_value, key_mask, dropout, reach)  # pyright: ignore[reportReturnType]


@dataclass(frozen=True)
class _Tile:
    """A few sequences, some of their queries, and the keys within their reach."""

    sequences: slice
    queries: slice
    keys: slice
    mask: Tensor | None
    """True where a query may look at a key; None where each may look at all."""
    kept: Tensor | None
    """True where dropout keeps a weight; None without dropout."""


class _BlockedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query_key_value: Tensor, key_mask: Tensor | None, dropout: float, reach: Reach) -> Tensor:
        sequences, longest, _, heads, head_size = query_key_value.shape
        context = query_key_value.new_empty(sequences, longest, heads, head_size)
        kept: list[Tensor] = []
        if dropout:
            kept = [
                torch.empty(
                    (sequences, heads, queries.stop - queries.start, keys.stop - keys.start), dtype=torch.bool
                ).bernoulli_(1.0 - dropout)
                for queries, keys, _ in reach.tiles(longest, heads)
            ]
        for tile in _tiles(query_key_value, key_mask, reach, kept):
            query, key, value = _parts(query_key_value, tile)
            weights = _weights(query, key, tile.mask)
            if tile.kept is not None:
                weights = weights * tile.kept / (1.0 - dropout)
            context[tile.sequences, tile.queries] = (weights @ value).transpose(1, 2)
        ctx.save_for_backward(query_key_value, key_mask, *kept)
        ctx.dropout, ctx.reach = dropout, reach
        return context

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        query_key_value, key_mask, *kept = ctx.saved_tensors
        whole = len(list(ctx.reach.tiles(query_key_value.shape[1], query_key_value.shape[3]))) == 1
        # A key may be within reach of several tiles, whose gradients add up; with one tile, nothing is added.
        gradient = torch.empty_like(query_key_value) if whole else torch.zeros_like(query_key_value)
        scale = query_key_value.shape[-1] ** -0.5
        for tile in _tiles(query_key_value, key_mask, ctx.reach, kept):
            query, key, value = _parts(query_key_value, tile)
            grad_context = gradients[0][tile.sequences, tile.queries].transpose(1, 2).contiguous()
            weights = _weights(query, key, tile.mask)
            grad_weights = grad_context @ value.transpose(-1, -2)
            used = weights
            if tile.kept is not None:
                used = weights * tile.kept / (1.0 - ctx.dropout)
                grad_weights = grad_weights * tile.kept / (1.0 - ctx.dropout)
            grad_scores = torch.ops.aten._softmax_backward_data(grad_weights, weights, -1, weights.dtype).mul_(scale)
            grad_query = (grad_scores @ key).transpose(1, 2)
            grad_key = (grad_scores.transpose(-1, -2) @ query).transpose(1, 2)
            grad_value = (used.transpose(-1, -2) @ grad_context).transpose(1, 2)
            gradient[tile.sequences, tile.queries, 0] = grad_query
            of_keys = gradient[tile.sequences, tile.keys]
            if whole:
                of_keys[:, :, 1], of_keys[:, :, 2] = grad_key, grad_value
            else:
                of_keys[:, :, 1] += grad_key
                of_keys[:, :, 2] += grad_value
        return gradient, None, None, None


def _tiles(query_key_value: Tensor, key_mask: Tensor | None, reach: Reach, kept: Sequence[Tensor]) -> Iterator[_Tile]:
    sequences, longest, _, heads, _ = query_key_value.shape
    for number, (queries, keys, near) in enumerate(reach.tiles(longest, heads)):
        scores = heads * (queries.stop - queries.start) * (keys.stop - keys.start)
        size = max(1, _BLOCK_ELEMENTS // scores)
        for start in range(0, sequences, size):
            block = slice(start, start + size)
            mask = near
            if key_mask is not None:
                real = key_mask[block, :, :, keys]
                mask = real if near is None else real & near
            yield _Tile(block, queries, keys, mask, kept[number][block] if kept else None)


def _parts(query_key_value: Tensor, tile: _Tile) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value as ``[sequences, heads, longest, head_size]``, each in memory of its own."""
    block = query_key_value[tile.sequences]
    if tile.queries == tile.keys:
        query, key, value = block[:, tile.keys].permute(2, 0, 3, 1, 4).contiguous()
        return query, key, value
    key, value = block[:, tile.keys, 1:].permute(2, 0, 3, 1, 4).contiguous()
    return block[:, tile.queries, 0].transpose(1, 2).contiguous(), key, value


def _weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    scores = (query @ key.transpose(-1, -2)).mul_(query.shape[-1] ** -0.5)
    if mask is not None:
        scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1)
