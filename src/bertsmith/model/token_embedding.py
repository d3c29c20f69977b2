"""The embedding of the vocabulary, whose gradient may come as the rows that a batch touched."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

RowGradient = tuple[Int[Tensor, " _"], Float[Tensor, "_ _"]]
"""Tokens that were looked up, repeated ones too, and the gradient of what was found for each, ``[tokens, width]``."""


class TokenEmbedding(nn.Embedding):
    """An embedding that can leave its gradient as rows.

    A batch has few of a vocabulary's tokens, and fresh memory for the gradient of all, set to zero at every step, costs
    a CPU as much as the optimizer's update. So whoever trains may set `rows` to a list: a backward pass then adds to
    the list what it has for this weight as an embedding, and leaves `weight.grad` to other uses of the weight, such as
    a projection that is tied to it.
    """

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__(vocabulary, width)
        self.rows: list[RowGradient] | None = None

    def forward(self, input: Int[Tensor, "*places"]) -> Float[Tensor, "*places width"]:
        if self.rows is None or not self.weight.requires_grad:
            return super().forward(input)
        return _LookUp.apply(self.weight, input, self.rows)  # pyright: ignore[reportReturnType]


class _LookUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, token_ids: Tensor, rows: list[RowGradient]) -> Tensor:
        ctx.save_for_backward(token_ids)
        ctx.rows = rows
        return functional.embedding(token_ids, weight)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (token_ids,) = ctx.saved_tensors
        ctx.rows.append((token_ids.flatten(), gradients[0].flatten(0, -2)))
        return None, None, None
