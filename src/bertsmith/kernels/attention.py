"""Attention of packed tokens on a CPU, made again in the backward pass.

Where the kernels can multiply matrices themselves, a head of a sequence is taken at a time and its scores never leave a
core's caches. Elsewhere torch multiplies, a few sequences at a time, and nothing of the size ``longest x longest``
outlives its block; where a token sees a window only, or a sequence is very long, queries are taken a tile at a time
with the keys within reach.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertsmith.kernels.dropout import drawn_seed
from bertsmith.kernels.library import TILE, call, multiplies

_BLOCK_ELEMENTS = 1 << 19
"""Scores held at a time: 1 MiB in bf16, which the second cache of a core holds with what else a block needs."""


@dataclass(frozen=True)
class SequenceBlock:
    """Sequences of like length, which attention takes together."""

    starts: Int[Tensor, " sequences"]
    """First token of each."""
    lengths: Int[Tensor, " sequences"]
    longest: int
    """Length that all are padded to."""


@runtime_checkable
class Reach(Protocol):
    """How far a query sees."""

    @property
    def causal(self) -> bool:
        """Whether what follows a query is hidden."""
        ...

    @property
    def half_window(self) -> int | None:
        """How far to each side a query sees; None: all of the sequence."""
        ...

    def tile_bounds(self, longest: int, heads: int) -> Sequence[tuple[slice, slice]]:
        """Parts of the queries, and the keys that each can see at all."""
        ...


def attend(
    query_key_value: Float[Tensor, "tokens 3 heads head_size"],
    blocks: Sequence[SequenceBlock],
    reach: Reach,
    dropout: float,
    cosine: Float[Tensor, "tokens head_size"] | None,
    sine: Float[Tensor, "tokens head_size"] | None,
) -> Float[Tensor, "tokens heads head_size"]:
    """What each token finds in its sequence.

    Args:
        query_key_value: the three, side by side, as one linear layer gives them.
        blocks: every token's sequence, once.
        reach: how far a query sees.
        dropout: share of the attention weights that is set to zero; 0 in evaluation.
        cosine: by how much queries and keys are turned, and `sine`; None where positions are no rotations.
        sine: negative in the first half of a head's columns.
    """
    if not blocks:
        return query_key_value[:, 0]
    seed = drawn_seed() if dropout else 0
    if query_key_value.dtype == torch.bfloat16 and query_key_value.shape[-1] % TILE == 0 and multiplies():
        starts, lengths = (torch.cat([getattr(block, name) for block in blocks]) for name in ("starts", "lengths"))
        return _TiledAttention.apply(  # pyright: ignore[reportReturnType]
            query_key_value.contiguous(), starts, lengths, reach, dropout, seed, cosine, sine
        )
    with torch.autocast("cpu", enabled=False):
        return _Attention.apply(  # pyright: ignore[reportReturnType]
            query_key_value.contiguous(), tuple(blocks), reach, dropout, seed, cosine, sine
        )


class _TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query_key_value: Tensor,
        starts: Tensor,
        lengths: Tensor,
        reach: Reach,
        dropout: float,
        seed: int,
        cosine: Tensor | None,
        sine: Tensor | None,
    ) -> Tensor:
        tokens, _, heads, head_size = query_key_value.shape
        context = query_key_value.new_empty(tokens, heads, head_size)
        logarithms = torch.empty(tokens, heads)
        ctx.settings = (len(starts), heads, head_size, *_flags(reach), head_size**-0.5, dropout, seed)
        ctx.save_for_backward(query_key_value, logarithms, starts, lengths, cosine, sine)
        call(
            "tiled_attention", query_key_value, None, context, logarithms, starts, lengths, *ctx.settings, cosine, sine
        )
        return context

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        query_key_value, logarithms, starts, lengths, cosine, sine = ctx.saved_tensors
        gradient = torch.empty_like(query_key_value)
        call(
            "tiled_attention", query_key_value, gradients[0].contiguous(), gradient, logarithms, starts, lengths,
            *ctx.settings, cosine, sine,
        )  # fmt: skip
        return gradient, None, None, None, None, None, None, None


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query_key_value: Tensor,
        blocks: tuple[SequenceBlock, ...],
        reach: Reach,
        dropout: float,
        seed: int,
        cosine: Tensor | None,
        sine: Tensor | None,
    ) -> Tensor:
        run = _Run(query_key_value, reach, dropout, seed, cosine, sine)
        context = query_key_value.new_empty(len(query_key_value), *query_key_value.shape[2:])
        logarithms: list[Tensor] = []
        for part in _parts(blocks, run.heads):
            query, key, value = run.to_heads(query_key_value, part)
            found = torch.empty_like(query)
            for queries, keys in reach.tile_bounds(part.longest, run.heads):
                scores = torch.bmm(_of(query, queries), _of(key, keys).transpose(1, 2))
                kept = torch.empty(scores.shape[:2], dtype=torch.float32)
                run.softmax(scores, None, kept, part, queries, keys)
                _put(found, queries, scores, _of(value, keys))
                logarithms.append(kept)
            run.from_heads(found[None], context, part)
        ctx.save_for_backward(query_key_value)
        ctx.run, ctx.blocks, ctx.logarithms = run, blocks, logarithms
        return context

    @staticmethod
    @torch.autograd.function.once_differentiable
    @torch.autocast("cpu", enabled=False)
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        run: _Run = ctx.run
        (query_key_value,) = ctx.saved_tensors
        grad_context = gradients[0].contiguous()
        gradient = torch.empty_like(query_key_value)
        logarithms = iter(ctx.logarithms)
        for part in _parts(ctx.blocks, run.heads):
            query, key, value = run.to_heads(query_key_value, part)
            (wanted,) = run.to_heads(grad_context, part)
            tiles = run.reach.tile_bounds(part.longest, run.heads)
            # A key may be within reach of several tiles, whose gradients add up; with one tile, nothing is added.
            grads = query.new_empty(3, *query.shape) if len(tiles) == 1 else query.new_zeros(3, *query.shape)
            for queries, keys in tiles:
                tile_query, tile_wanted = _of(query, queries), _of(wanted, queries)
                weights = torch.bmm(tile_query, _of(key, keys).transpose(1, 2))
                grad_scores = torch.bmm(tile_wanted, _of(value, keys).transpose(1, 2))
                run.softmax(weights, grad_scores, next(logarithms), part, queries, keys)
                _put(grads[0], queries, grad_scores, _of(key, keys))
                for number, left, right in ((1, grad_scores, tile_query), (2, weights, tile_wanted)):
                    if len(tiles) == 1:
                        _put(grads[number], keys, left.transpose(1, 2), right)
                    else:
                        _of(grads[number], keys).add_(torch.bmm(left.transpose(1, 2), right))
            run.from_heads(grads, gradient, part)
        return gradient, None, None, None, None, None, None


def _flags(reach: Reach) -> tuple[bool, int]:
    """As the kernels are told it: whether what follows is hidden, and half a window or -1."""
    return reach.causal, -1 if reach.half_window is None else reach.half_window


def _of(block: Tensor, places: slice) -> Tensor:
    """Some places of all heads, ``[sequences x heads, places, head_size]``: a view."""
    return block[:, :, places].flatten(0, 1)


def _put(block: Tensor, places: slice, left: Tensor, right: Tensor) -> None:
    """Write a product to some places of all heads."""
    target = _of(block, places)
    if target.is_contiguous():
        torch.bmm(left, right, out=target)
    else:
        target.copy_(torch.bmm(left, right))


@dataclass(frozen=True)
class _Part:
    """Some sequences of a block."""

    starts: Tensor
    lengths: Tensor
    longest: int
    first_row: int
    """Rows of scores before it, which dropout counts."""


def _parts(blocks: Sequence[SequenceBlock], heads: int) -> Iterator[_Part]:
    first_row = 0
    for block in blocks:
        size = max(1, _BLOCK_ELEMENTS // (heads * block.longest * min(block.longest, 1024)))
        for start in range(0, len(block.starts), size):
            part = slice(start, start + size)
            yield _Part(block.starts[part], block.lengths[part], block.longest, first_row)
            first_row += len(block.starts[part]) * heads * block.longest


class _Run:
    """What all calls of one attention have in common."""

    def __init__(
        self,
        query_key_value: Tensor,
        reach: Reach,
        dropout: float,
        seed: int,
        cosine: Tensor | None,
        sine: Tensor | None,
    ) -> None:
        self.heads, self.head_size = query_key_value.shape[2:]
        self.narrow = query_key_value.dtype == torch.bfloat16
        self.reach = reach
        self._drawn = (dropout, seed)
        self._tables = (cosine, sine)

    def to_heads(self, tokens: Tensor, part: _Part) -> Tensor:
        """``[parts, sequences, heads, longest, head_size]``; zeros where a sequence is over."""
        parts = 3 if tokens.ndim == 4 else 1
        blocks = tokens.new_empty(parts, len(part.starts), self.heads, part.longest, self.head_size)
        self._rearrange(True, tokens, blocks, part)
        return blocks

    def from_heads(self, blocks: Tensor, tokens: Tensor, part: _Part) -> None:
        """Write blocks to their tokens; queries and keys are turned back."""
        self._rearrange(False, tokens, blocks, part)

    def _rearrange(self, to_blocks: bool, tokens: Tensor, blocks: Tensor, part: _Part) -> None:
        tables = self._tables if len(blocks) == 3 else (None, None)
        call(
            "rearrange_heads", self.narrow, to_blocks, tokens, blocks, len(blocks), len(part.starts), part.starts,
            part.lengths, part.longest, self.heads, self.head_size, *tables,
        )  # fmt: skip

    def softmax(
        self, scores: Tensor, grads: Tensor | None, logarithms: Tensor, part: _Part, queries: slice, keys: slice
    ) -> None:
        """In place: scores to weights, or with `grads` also their gradients to those of the scores."""
        call(
            "attention_softmax", self.narrow, scores, grads, logarithms, len(part.starts), self.heads,
            *scores.shape[1:], queries.start, keys.start, part.lengths, *_flags(self.reach),
            self.head_size**-0.5, *self._drawn, part.first_row + queries.start * len(part.starts) * self.heads,
        )  # fmt: skip
