"""Gradients of embeddings, of which a batch touches few rows, in memory that is used again."""

from collections.abc import Iterable

import torch
from torch import Tensor


class RowGradients:
    """Makes whole gradients of those that come as rows.

    An optimizer moves every row, touched or not. Fresh memory for all of them, set to zero at every step, would cost a
    CPU as much as the update; so the memory is kept, and only the rows that were touched are set to zero again.
    """

    def __init__(self) -> None:
        self._kept: dict[Tensor, tuple[Tensor, Tensor]] = {}

    @torch.no_grad()
    def spread(self, weights: Iterable[Tensor]) -> None:
        """Replace the gradients of `weights` that have rows only by whole ones, the others left as they are."""
        for weight in weights:
            if weight.grad is not None and weight.grad.is_sparse:
                weight.grad = self._whole(weight, weight.grad)

    def _whole(self, weight: Tensor, gradient: Tensor) -> Tensor:
        rows, values = gradient._indices()[0], gradient._values()
        kept = self._kept.get(weight)
        if kept is None:
            whole = torch.zeros_like(weight)
        else:
            whole, touched = kept
            whole.index_fill_(0, touched, 0.0)
        self._kept[weight] = (whole, rows)
        return whole.index_add_(0, rows, values)
