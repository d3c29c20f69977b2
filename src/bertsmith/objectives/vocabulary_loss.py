"""Cross-entropy over the vocabulary without the logits of a whole batch.

Logits are made for a block of the vocabulary at a time, and made again in the backward pass: their matrix product is
cheap beside what it would cost to write all of them to memory and read them back.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

_BLOCK_ELEMENTS = 1 << 21
"""Logits held at a time: 8 MiB in fp32, which stays in the caches."""
_LEAST_BLOCK_WIDTH = 256
"""Narrower blocks would make the matrix products inefficient."""


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

    A row whose target is below 0 asks for nothing: it adds no loss, no hit and no gradient.

    Matrix products run in autocast's type where autocast is on, everything else in fp32 at least. The result is
    differentiable once, in `features`, `projection` and `bias`.
    """
    device = features.device.type
    matrix_type = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else features.dtype
    with torch.autocast(device, enabled=False):
        total, hits = _BlockedLoss.apply(  # pyright: ignore[reportGeneralTypeIssues]
            features, projection, bias, targets, matrix_type, block_elements
        )
    return VocabularyLoss(total, hits if with_hits else None)


class _Blocks:
    """Logits of all rows for one block of the vocabulary after the other, in buffers that are used again.

    Fresh memory would be faulted in anew for each block, which on a CPU costs more than the arithmetic.
    """

    def __init__(
        self, rows: Tensor, projection: Tensor, bias: Tensor, matrix_type: torch.dtype, block_elements: int
    ) -> None:
        self.rows = rows.to(matrix_type)
        self._projection, self._bias = projection, bias
        self._width = min(len(projection), max(_LEAST_BLOCK_WIDTH, block_elements // max(1, len(rows))))
        size = len(rows) * self._width
        exact = torch.promote_types(projection.dtype, torch.float32)
        self._raw = torch.empty(size, dtype=matrix_type, device=rows.device)
        self._exact = self._raw if matrix_type == exact else torch.empty(size, dtype=exact, device=rows.device)

    def __iter__(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Yields the block's place in the vocabulary, its part of the projection, and its logits, free to overwrite."""
        num_rows, vocabulary = len(self.rows), len(self._projection)
        for start in range(0, vocabulary, self._width):
            place = slice(start, min(start + self._width, vocabulary))
            shape = (num_rows, place.stop - start)
            matrix = self._projection[place].to(self.rows.dtype)
            raw = self._raw[: shape[0] * shape[1]].view(shape)
            torch.mm(self.rows, matrix.T, out=raw)
            logits = self._exact[: raw.numel()].view(shape)
            if logits.data_ptr() != raw.data_ptr():
                logits.copy_(raw)
            yield place, matrix, logits.add_(self._bias[place])

    def in_matrix_type(self, block: Tensor) -> Tensor:
        """A block's values in the type of matrix products; overwrites what the block was made from."""
        raw = self._raw[: block.numel()].view(block.shape)
        return raw if raw.data_ptr() == block.data_ptr() else raw.copy_(block)


class _BlockedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        projection: Tensor,
        bias: Tensor,
        targets: Tensor,
        matrix_type: torch.dtype,
        block_elements: int,
    ) -> tuple[Tensor, Tensor]:
        blocks = _Blocks(features, projection, bias, matrix_type, block_elements)
        num_rows, exact = len(features), torch.promote_types(projection.dtype, torch.float32)
        highest = torch.full((num_rows,), -torch.inf, dtype=exact, device=features.device)
        sums = torch.zeros(num_rows, dtype=exact, device=features.device)
        found = torch.zeros(num_rows, dtype=exact, device=features.device)
        best = torch.zeros(num_rows, dtype=torch.int64, device=features.device)
        for place, _, logits in blocks:
            inside = (targets >= place.start) & (targets < place.stop)
            column = (targets - place.start).clamp(0, logits.shape[1] - 1)
            found = torch.where(inside, logits.gather(1, column[:, None])[:, 0], found)
            block_highest, block_best = logits.max(1)
            best = torch.where(block_highest > highest, block_best + place.start, best)
            new_highest = torch.maximum(highest, block_highest)
            block_sums = logits.sub_(new_highest[:, None]).exp_().sum(1)
            sums = sums * (highest - new_highest).exp() + block_sums
            highest = new_highest
        asked = targets >= 0
        # An infinite sum makes every probability of a row 0, and with it its gradient.
        log_sums = torch.where(asked, highest + sums.log(), torch.inf)
        ctx.save_for_backward(features, projection, bias, targets, log_sums)
        ctx.matrix_type, ctx.block_elements = matrix_type, block_elements
        hits = (best == targets).sum()
        ctx.mark_non_differentiable(hits)
        return torch.where(asked, log_sums - found, 0.0).sum(), hits

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        scale = gradients[0]
        features, projection, bias, targets, log_sums = ctx.saved_tensors
        blocks = _Blocks(features, projection, bias, ctx.matrix_type, ctx.block_elements)
        # Scaled once here: rows are few, the gradient of the projection is large.
        scaled_rows = (blocks.rows * scale).to(ctx.matrix_type)
        grad_rows = torch.zeros_like(features, dtype=torch.promote_types(features.dtype, torch.float32))
        grad_projection, grad_bias = torch.empty_like(projection), torch.empty_like(bias)
        for place, matrix, logits in blocks:
            error = logits.sub_(log_sums[:, None]).exp_()
            row = ((targets >= place.start) & (targets < place.stop)).nonzero()[:, 0]
            error[row, targets[row] - place.start] -= 1.0
            torch.sum(error, 0, out=grad_bias[place])
            error = blocks.in_matrix_type(error)
            grad_projection[place] = error.T @ scaled_rows
            grad_rows += error @ matrix
        return grad_rows.mul_(scale).to(features.dtype), grad_projection, grad_bias.mul_(scale), None, None, None
