"""Cross-entropy over the vocabulary without the logits of a whole batch.

Logits are made for a block of the vocabulary at a time, and made again in the backward pass: their matrix product is
cheap beside what it would cost to write all of them to memory and read them back.

With raw scores ``s = projection @ features.T``, the probability of token j in row i is
``exp(s_ji) * exp(bias_j) / Z_i``. So a block is looked at once in each direction, and never for its highest score.
Where exponentials would leave fp32's range, a slower way takes over that subtracts each row's highest logit first.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from bertsmith.objectives.vocabulary_scores import BlockedScores, Scores, TiledScores

_BLOCK_ELEMENTS = 1 << 22
"""Logits held at a time: 2 MiB in bf16, so that on a CPU they stay in a core's cache."""
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
        own = (features.detach(), projection.detach(), matrix_type)
        best = _best_tokens(BlockedScores(*own, block_elements), bias.detach()) if with_hits else None
        scores = TiledScores(*own) if TiledScores.takes(*own) else BlockedScores(*own, block_elements)
        sums = _exponential_sums(scores, bias.detach())
        if sums is None:
            total = _careful_total(features, projection, bias, targets, matrix_type, block_elements)
        else:
            total = _Loss.apply(features, projection, bias, targets, sums, scores)
    return VocabularyLoss(total, None if best is None else (best == targets).sum())  # pyright: ignore[reportArgumentType]


def _exponential_sums(scores: Scores, bias: Tensor) -> Tensor | None:
    """``sum_j exp(s_ji) exp(bias_j)`` for each row; None where a number leaves the range of its type."""
    if not bias.abs().amax() <= _LARGEST_BIAS:
        return None
    sums = scores.sums(bias.to(scores.exact).exp())
    # The smallest sum must stand far above what underflows beside it.
    return sums if bool(((sums > 1e-25) & (sums < 1e35)).all()) else None


def _best_tokens(scores: BlockedScores, bias: Tensor) -> Tensor:
    highest = torch.full((len(scores.rows),), -torch.inf, dtype=scores.exact, device=bias.device)
    best = torch.zeros(len(scores.rows), dtype=torch.int64, device=bias.device)
    for place, _, block in scores.blocks():
        block_highest, block_best = block.to(scores.exact).add_(bias[place, None]).max(0)
        best = torch.where(block_highest > highest, block_best + place.start, best)
        highest = torch.maximum(highest, block_highest)
    return best


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, projection: Tensor, bias: Tensor, targets: Tensor, sums: Tensor, scores: Scores
    ) -> Tensor:
        asked = targets >= 0
        wanted = targets.clamp(min=0)
        losses = sums.log() - scores.of_tokens(wanted) - bias[wanted]
        ctx.save_for_backward(projection, bias, targets, sums)
        ctx.scores, ctx.features_type = scores, features.dtype
        return torch.where(asked, losses, 0.0).sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        scores: Scores = ctx.scores
        projection, bias, targets, sums = ctx.saved_tensors
        asked = targets >= 0
        scale = torch.where(asked, gradients[0], 0.0).to(scores.exact)
        grad_rows, grad_projection, grad_bias = scores.gradients(bias.to(scores.exact).exp(), scale / sums)
        # The target's own term, -1 at one place of each row.
        wanted = targets.clamp(min=0)
        grad_rows.sub_(scores.vectors(wanted) * scale[:, None])
        grad_projection.index_add_(0, wanted, (scores.rows.to(scores.exact) * -scale[:, None]).to(projection.dtype))
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
