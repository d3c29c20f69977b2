"""The token embedding's gradient, of which a batch touches few rows, in memory that is used again."""

import torch
from torch import Tensor

from bertsmith.model.token_embedding import RowGradient, TokenEmbedding


class RowGradients:
    """Takes what backward passes leave for an embedding's rows, and makes a gradient of it.

    An optimizer moves every row, touched or not. So the gradient is whole; but its memory is kept, and only the rows
    that were touched are set to zero again. On a GPU, torch's own way is as good and nothing is taken.
    """

    def __init__(self, embedding: TokenEmbedding) -> None:
        self._weight = embedding.weight
        self._rows: list[RowGradient] = []
        self._kept: Tensor | None = None
        self._touched: list[Tensor] = []
        embedding.rows = self._rows if self._weight.is_cpu else None

    @torch.no_grad()
    def add_to_gradient(self) -> None:
        """Add all that was left since the last call to the weight's gradient."""
        if self._rows:
            if self._weight.grad is None:
                self._weight.grad = self._zeros()
                self._touched = [token_ids for token_ids, _ in self._rows]
            for token_ids, gradient in self._rows:
                self._weight.grad.index_add_(0, token_ids, gradient)
            self._rows.clear()

    def _zeros(self) -> Tensor:
        if self._kept is None:
            self._kept = torch.zeros_like(self._weight)
        for token_ids in self._touched:
            self._kept.index_fill_(0, token_ids, 0.0)
        return self._kept
