"""Cross-entropy over the vocabulary without the logits of a whole batch.

Logits are made for a block of the vocabulary at a time, and made again in the backward pass: their matrix product is
cheap beside what it would cost to write all of them to memory and read them back.

With raw scores ``s = projection @ features.T``, the probability of token j in row i is
``exp(s_ji) * exp(bias_j) / Z_i``. So a block is looked at once in each direction, and never for its highest score.
Where exponentials would leave fp32's range, a slower way takes over that subtracts each row's highest logit first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from bertsmith.kernels.vocabulary import add_exponential_sums, to_exponential_gradients

_BLOCK_ELEMENTS = 1 << 22
"""Logits held at a time: 2 MiB in bf16, so that on a CPU they stay in a core's cache."""
_LEAST_BLOCK_WIDTH = 256
"""Narrower blocks would make the matrix products inefficient."""
_LARGEST_BIAS = 40.0
"""Beyond it, exp(bias) and exp(s) together could leave fp32's range while their product does not."""


@dataclass(frozen=True)
class VocabularyLoss:
    """Sums over rows."""

    total: Float[Tensor, ""]
    """Sum of the negative log-probabilities, in nats."""
    hits: Int[Tensor, ""] | None
    """Rows whose best-scored token is the target; None where not asked for."""


def vocabulary_loss(
    features: Float[Tensor, "rows width"],
    projection: Float[Tensor, "vocabulary width"],
    bias: Float[Tensor, " vocabulary"],
    targets: Int[Tensor, " rows"],
    *,
    with_hits: bool,
    block_elements: int = _BLOCK_ELEMENTS,
) -> VocabularyLoss:
    """Sum over rows of the cross-entropy of ``features @ projection.T + bias`` against `targets`.

    A row whose target is below 0 asks for nothing: it adds no loss, no hit and no gradient. Matrix products run in
    autocast's type where autocast is on, everything else in fp32 at least. The result is differentiable once, in
    `features`, `projection` and `bias`.
    """
    device = features.device.type
    matrix_type = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else features.dtype
    with torch.autocast(device, enabled=False):
        blocks = _Blocks(features.detach(), projection.detach(), matrix_type, block_elements)
        best = _best_tokens(blocks, bias.detach()) if with_hits else None
        sums = _exponential_sums(blocks, bias.detach())
        if sums is None:
            total = _careful_total(features, projection, bias, targets, matrix_type, block_elements)
        else:
            total = _BlockedLoss.apply(features, projection, bias, targets, sums, blocks)
    return VocabularyLoss(total, None if best is None else (best == targets).sum())  # pyright: ignore[reportArgumentType]


class _Blocks:
    """Raw scores of one block of the vocabulary after the other for all rows, in a buffer that is used again.

    Fresh memory would be faulted in anew for each block, which on a CPU costs more than the arithmetic.
    """

    def __init__(self, rows: Tensor, projection: Tensor, matrix_type: torch.dtype, block_elements: int) -> None:
        self.rows = rows.to(matrix_type)
        self.matrix = projection.to(matrix_type)
        self.exact = torch.promote_types(projection.dtype, torch.float32)
        self._width = min(len(projection), max(_LEAST_BLOCK_WIDTH, block_elements // max(1, len(rows))))

    def __iter__(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Yields the block's place in the vocabulary, its part of the projection, and its scores, free to overwrite."""
        num_rows, vocabulary = len(self.rows), len(self.matrix)
        buffer = torch.empty(num_rows * self._width, dtype=self.matrix.dtype, device=self.rows.device)
        for start in range(0, vocabulary, self._width):
            place = slice(start, min(start + self._width, vocabulary))
            shape = (place.stop - start, num_rows)
            scores = buffer[: shape[0] * shape[1]].view(shape)
            matrix = self.matrix[place]
            yield place, matrix, torch.mm(matrix, self.rows.T, out=scores)


def _exponential_sums(blocks: _Blocks, bias: Tensor) -> Tensor | None:
    """``sum_j exp(s_ji) exp(bias_j)`` for each row; None where a number leaves the range of its type."""
    if not bias.abs().amax() <= _LARGEST_BIAS:
        return None
    weights = bias.to(blocks.exact).exp()
    sums = torch.zeros(len(blocks.rows), dtype=blocks.exact, device=bias.device)
    for place, _, scores in blocks:
        add_exponential_sums(scores, weights[place], sums)
    # The smallest sum must stand far above what underflows beside it.
    return sums if bool(((sums > 1e-25) & (sums < 1e35)).all()) else None


def _best_tokens(blocks: _Blocks, bias: Tensor) -> Tensor:
    highest = torch.full((len(blocks.rows),), -torch.inf, dtype=blocks.exact, device=bias.device)
    best = torch.zeros(len(blocks.rows), dtype=torch.int64, device=bias.device)
    for place, _, scores in blocks:
        block_highest, block_best = scores.to(blocks.exact).add_(bias[place, None]).max(0)
        best = torch.where(block_highest > highest, block_best + place.start, best)
        highest = torch.maximum(highest, block_highest)
    return best


class _BlockedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, projection: Tensor, bias: Tensor, targets: Tensor, sums: Tensor, blocks: _Blocks
    ) -> Tensor:
        asked = targets >= 0
        wanted = targets.clamp(min=0)
        # Rounded as the matrix product rounds it, so that a probability does not exceed 1.
        dots = (blocks.rows.to(blocks.exact) * blocks.matrix[wanted].to(blocks.exact)).sum(1).to(blocks.rows.dtype)
        losses = sums.log() - dots.to(blocks.exact) - bias[wanted]
        ctx.save_for_backward(projection, bias, targets, sums)
        ctx.blocks, ctx.features_type = blocks, features.dtype
        return torch.where(asked, losses, 0.0).sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        blocks: _Blocks = ctx.blocks
        projection, bias, targets, sums = ctx.saved_tensors
        asked = targets >= 0
        scale = torch.where(asked, gradients[0], 0.0).to(blocks.exact)
        row_weights, token_weights = scale / sums, bias.to(blocks.exact).exp()
        rows = blocks.rows.to(blocks.exact)
        grad_rows = torch.zeros_like(rows)
        grad_projection, grad_bias = torch.empty_like(projection), torch.empty_like(bias)
        for place, matrix, scores in blocks:
            grad_bias[place] = to_exponential_gradients(scores, token_weights[place], row_weights)
            grad_projection[place] = scores @ blocks.rows
            grad_rows += scores.T @ matrix
        # The target's own term, -1 at one place of each row.
        wanted = targets.clamp(min=0)
        grad_rows.sub_(blocks.matrix[wanted] * scale[:, None])
        grad_projection.index_add_(0, wanted, (rows * -scale[:, None]).to(projection.dtype))
        grad_bias.index_add_(0, wanted, -scale.to(bias.dtype))
        return grad_rows.to(ctx.features_type), grad_projection, grad_bias, None, None, None


def _careful_total(
    features: Tensor, projection: Tensor, bias: Tensor, targets: Tensor, matrix_type: torch.dtype, block_elements: int
) -> Tensor:
    """The same sum for scores of any size: logits of a few rows at a time, made again in the backward pass."""
    exact = torch.promote_types(projection.dtype, torch.float32)

    def block_total(rows: Tensor, wanted: Tensor) -> Tensor:
        logits = functional.linear(rows.to(matrix_type), projection.to(matrix_type)).to(exact) + bias
        return functional.cross_entropy(logits, wanted.clamp(min=-1), ignore_index=-1, reduction="sum")

    block_rows = max(1, block_elements // len(projection))
    pairs = zip(features.split(block_rows), targets.split(block_rows), strict=True)
    totals = [checkpoint(block_total, rows, wanted, use_reentrant=False) for rows, wanted in pairs]
    return torch.stack(totals).sum()  # pyright: ignore[reportArgumentType]
