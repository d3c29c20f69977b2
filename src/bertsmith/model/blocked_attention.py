"""Attention for training on a CPU: a few sequences at a time by matrix products, made again in the backward pass.

A block's scores stay in the caches, and nothing of the size ``longest x longest`` outlives its block.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

_BLOCK_ELEMENTS = 1 << 21
"""Scores held at a time: 4 MiB in bf16. Smaller blocks cost more in calls than the caches give back."""


def blocked_attention(
    query_key_value: Float[Tensor, "sequences longest 3 heads head_size"],
    key_mask: Bool[Tensor, "sequences 1 1 longest"] | None,
    dropout: float,
) -> Float[Tensor, "sequences longest heads head_size"]:
    """Scaled dot-product attention of each sequence with itself.

    Args:
        query_key_value: the three, side by side.
        key_mask: True where a key is real; None where all are.
        dropout: share of the attention weights that is set to zero, drawn from torch's random state.
    """
    with torch.autocast("cpu", enabled=False):
        return _BlockedAttention.apply(query_key_value, key_mask, dropout)  # pyright: ignore[reportReturnType]


class _BlockedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query_key_value: Tensor, key_mask: Tensor | None, dropout: float) -> Tensor:
        sequences, longest, _, heads, head_size = query_key_value.shape
        context = query_key_value.new_empty(sequences, longest, heads, head_size)
        kept = None
        if dropout:
            shape = (sequences, heads, longest, longest)
            kept = torch.empty(shape, dtype=torch.bool).bernoulli_(1.0 - dropout)
        for block in _blocks(query_key_value):
            query, key, value = _parts(query_key_value[block])
            weights = _weights(query, key, None if key_mask is None else key_mask[block])
            if kept is not None:
                weights = weights * kept[block] / (1.0 - dropout)
            context[block] = (weights @ value).transpose(1, 2)
        ctx.save_for_backward(query_key_value, key_mask, kept)
        ctx.dropout = dropout
        return context

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        query_key_value, key_mask, kept = ctx.saved_tensors
        gradient = torch.empty_like(query_key_value)
        scale = query_key_value.shape[-1] ** -0.5
        for block in _blocks(query_key_value):
            query, key, value = _parts(query_key_value[block])
            grad_context = gradients[0][block].transpose(1, 2).contiguous()
            weights = _weights(query, key, None if key_mask is None else key_mask[block])
            grad_weights = grad_context @ value.transpose(-1, -2)
            used = weights
            if kept is not None:
                used = weights * kept[block] / (1.0 - ctx.dropout)
                grad_weights = grad_weights * kept[block] / (1.0 - ctx.dropout)
            grad_scores = torch.ops.aten._softmax_backward_data(grad_weights, weights, -1, weights.dtype).mul_(scale)
            out = gradient[block]
            out[:, :, 0] = (grad_scores @ key).transpose(1, 2)
            out[:, :, 1] = (grad_scores.transpose(-1, -2) @ query).transpose(1, 2)
            out[:, :, 2] = (used.transpose(-1, -2) @ grad_context).transpose(1, 2)
        return gradient, None, None


def _blocks(query_key_value: Tensor) -> Iterator[slice]:
    sequences, longest, _, heads, _ = query_key_value.shape
    size = max(1, _BLOCK_ELEMENTS // (heads * longest * longest))
    return (slice(start, start + size) for start in range(0, sequences, size))


def _parts(block: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value as ``[sequences, heads, longest, head_size]``, each in memory of its own."""
    query, key, value = block.permute(2, 0, 3, 1, 4).contiguous()
    return query, key, value


def _weights(query: Tensor, key: Tensor, key_mask: Tensor | None) -> Tensor:
    scores = (query @ key.transpose(-1, -2)).mul_(query.shape[-1] ** -0.5)
    if key_mask is not None:
        scores.masked_fill_(~key_mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1)
