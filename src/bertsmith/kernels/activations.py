"""Activations, plain or as the first half of a gated feed-forward."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bertsmith.kernels.library import call, usable

KINDS = {"gelu": 0, "gelu_tanh": 1, "relu": 2}


def activate(values: Float[Tensor, "rows width"], kind: str) -> Float[Tensor, "rows width"]:
    """Each number activated.

    Args:
        values: any numbers.
        kind: ``gelu``, ``gelu_tanh`` or ``relu``.
    """
    if usable(values):
        return _Activate.apply(values.contiguous(), kind, False)  # pyright: ignore[reportReturnType]
    return _plain(values, kind)


def activate_gated(values: Float[Tensor, "rows twice_width"], kind: str) -> Float[Tensor, "rows width"]:
    """The first half of the columns activated, times the second half."""
    if usable(values):
        return _Activate.apply(values.contiguous(), kind, True)  # pyright: ignore[reportReturnType]
    activated, gate = values.chunk(2, dim=-1)
    return _plain(activated, kind) * gate


def _plain(values: Tensor, kind: str) -> Tensor:
    match kind:
        case "gelu":
            return functional.gelu(values)
        case "gelu_tanh":
            return functional.gelu(values, approximate="tanh")
        case _:
            return functional.relu(values)


class _Activate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, kind: str, gated: bool) -> Tensor:
        width = values.shape[-1] // (2 if gated else 1)
        result = values.new_empty((*values.shape[:-1], width))
        ctx.save_for_backward(values)
        ctx.kind, ctx.gated = KINDS[kind], gated
        _call(ctx, values, None, result, width)
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (values,) = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        result = torch.empty_like(values)
        _call(ctx, values, gradient, result, gradient.shape[-1])
        return result, None, None


def _call(ctx: Any, values: Tensor, gradient: Tensor | None, result: Tensor, width: int) -> None:
    rows = values.numel() // values.shape[-1] if values.numel() else 0
    call("activate", ctx.kind, values.dtype == torch.bfloat16, ctx.gated, values, gradient, result, rows, width)
