"""The norm of a residual stream, together with what is added to the stream before it."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bertsmith.kernels.dropout import drawn_seed
from bertsmith.kernels.library import call, usable


class Stream(NamedTuple):
    """Vectors in two precisions: exact ones, which are added to, and those that matrix products read.

    Both are the same tensor where matrix products read exact ones, or cast for themselves.
    """

    exact: Float[Tensor, "tokens hidden"]
    matrix: Float[Tensor, "tokens hidden"]

    @classmethod
    def of(cls, values: Float[Tensor, "tokens hidden"]) -> "Stream":
        """A stream of what no norm has made."""
        return cls(values, values)


def add_then_norm(
    hidden: Float[Tensor, "tokens hidden"],
    added: Float[Tensor, "tokens hidden"],
    norm: nn.LayerNorm,
    dropout: float,
) -> Stream:
    """``norm(hidden + dropout(added))``, as layers with their norm after it want it.

    Args:
        hidden: the stream in fp32 at least.
        added: what a sublayer gives, in the type of matrix products.
        norm: the norm.
        dropout: share of the numbers of `added` that is set to zero; 0 in evaluation.
    """
    if _takes(hidden, added):
        _, exact, matrix = _apply(hidden, added, norm, dropout, True)
        return Stream.of(matrix) if exact is None else Stream(exact, matrix)
    return Stream.of(norm(hidden + functional.dropout(added, dropout)))


def add_and_norm(
    hidden: Float[Tensor, "tokens hidden"],
    added: Float[Tensor, "tokens hidden"],
    norm: nn.LayerNorm,
    dropout: float,
) -> Stream:
    """The sum ``hidden + dropout(added)``, and its norm for the matrix products, as layers with their norm first do."""
    if _takes(hidden, added):
        total, _, matrix = _apply(hidden, added, norm, dropout, False)
        return Stream(total, matrix)
    total = hidden + functional.dropout(added, dropout)
    return Stream(total, norm(total))


def _takes(hidden: Tensor, added: Tensor) -> bool:
    return hidden.dtype == torch.float32 and usable(hidden) and usable(added)


def _apply(
    hidden: Tensor, added: Tensor, norm: nn.LayerNorm, dropout: float, exact: bool
) -> tuple[Tensor, Tensor | None, Tensor]:
    """The sum, its norm in fp32 where that is asked for and not the other one, and its norm in the type of `added`."""
    seed = drawn_seed() if dropout else 0
    return _ResidualNorm.apply(  # pyright: ignore[reportReturnType]
        hidden.contiguous(), added.contiguous(), norm.weight, norm.bias, norm.eps, dropout, seed, exact
    )


class _ResidualNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        added: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        eps: float,
        dropout: float,
        seed: int,
        exact: bool,
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        rows, width = hidden.shape
        sums, normed = torch.empty_like(hidden), torch.empty_like(added)
        both = exact and added.dtype != hidden.dtype
        precise = torch.empty_like(hidden) if both else None
        means, scales = hidden.new_empty(2, rows)
        narrow = added.dtype == torch.bfloat16
        call(
            "residual_norm_forward", narrow, hidden, added, weight, bias, eps, dropout, seed,
            sums, means, scales, precise, normed, rows, width,
        )  # fmt: skip
        ctx.save_for_backward(sums, means, scales, weight)
        ctx.drawn, ctx.narrow, ctx.has_bias = (dropout, seed), narrow, bias is not None
        ctx.set_materialize_grads(False)
        if exact:
            ctx.mark_non_differentiable(sums)
        return sums, precise, normed

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        sums, means, scales, weight = ctx.saved_tensors
        of_sum, of_exact, of_normed = (None if value is None else value.contiguous() for value in gradients)
        if of_exact is None and of_normed is None:
            of_exact = torch.zeros_like(sums)
        grad_hidden = torch.empty_like(sums)
        grad_added = torch.empty_like(sums, dtype=torch.bfloat16 if ctx.narrow else sums.dtype)
        grad_weight, grad_bias = torch.empty_like(weight), torch.empty_like(weight)
        call(
            "residual_norm_backward", ctx.narrow, of_exact, of_normed, of_sum, sums, means, scales, weight, *ctx.drawn,
            grad_hidden, grad_added, grad_weight, grad_bias, *sums.shape,
        )  # fmt: skip
        return grad_hidden, grad_added, grad_weight, grad_bias if ctx.has_bias else None, None, None, None, None
