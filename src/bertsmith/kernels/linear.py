"""Linear layers and feed-forwards in bf16 on a CPU that multiplies tiles; elsewhere torch's own."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertsmith.kernels.activations import KINDS, activate
from bertsmith.kernels.library import TILE, call, multiplies

_NO_ACTIVATION = -1


class _Held:
    """Whether weights stay as they are until somebody says otherwise, and how often that has changed."""

    now = False
    changes = 0


@contextlib.contextmanager
def weights_held() -> Iterator[None]:
    """Inside the block no weight changes, so that what is made of one for the products serves all its uses.

    Outside, a weight is prepared anew whenever a gradient may be wanted: an optimizer's fused update leaves no trace on
    it, not even in its version.
    """
    _Held.now, _Held.changes = True, _Held.changes + 1
    try:
        yield
    finally:
        _Held.now, _Held.changes = False, _Held.changes + 1


class Linear(nn.Linear):
    """A linear layer that keeps its weight as the kernels want it, for as long as the weight is known not to change."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self._packed: _Packed | None = None

    def forward(self, input: Float[Tensor, "*rows in"]) -> Float[Tensor, "*rows out"]:
        if not _takes(input, self):
            return super().forward(input)
        return _Linear.apply(input, self.weight, self.bias, self.packed())  # pyright: ignore[reportReturnType]

    def packed(self) -> "_Packed":
        """The weight in bf16, as the right operand of both products."""
        backward = torch.is_grad_enabled()
        if backward and not _Held.now:
            self._packed = None
            return _Packed(self.weight.detach(), backward)
        if self._packed is None or not self._packed.serves(self.weight, backward):
            self._packed = _Packed(self.weight.detach(), backward)
        return self._packed


def feed_forward(
    hidden: Float[Tensor, "*rows hidden"], up: Linear, down: Linear, kind: str
) -> Float[Tensor, "*rows hidden"]:
    """Two linear layers with an activation between them, of which nothing but what is activated is kept.

    Args:
        hidden: any vectors.
        up: to the width between.
        down: and back.
        kind: name of the activation.
    """
    if not (_takes(hidden, up) and _takes(hidden, down)):
        return down(activate(up(hidden), kind))
    packed = (up.packed(), down.packed())
    return _FeedForward.apply(hidden, up.weight, up.bias, down.weight, down.bias, KINDS[kind], packed)  # pyright: ignore[reportReturnType]


def _takes(values: Tensor, layer: nn.Linear) -> bool:
    return (
        values.is_cpu
        and values.ndim == 2
        and torch.is_autocast_enabled("cpu")
        and torch.get_autocast_dtype("cpu") == torch.bfloat16
        and layer.weight.dtype == torch.float32
        and layer.in_features % TILE == 0
        and layer.out_features % TILE == 0
        and multiplies()
    )


class _Packed:
    """A weight in bf16 as the right operand of the forward and, where asked for, of the backward product."""

    def __init__(self, weight: Tensor, backward: bool) -> None:
        self._identity = _identity(weight)
        words = weight.numel() // 2
        self.by_in = torch.empty(words, dtype=torch.int32)
        self.by_out = torch.empty(words, dtype=torch.int32) if backward else None
        call("tiled_pack", weight.contiguous(), self.by_in, self.by_out, *weight.shape)

    def serves(self, weight: Tensor, backward: bool) -> bool:
        """Whether it is of the weight as that is now."""
        return self._identity == _identity(weight) and (self.by_out is not None or not backward)


def _identity(weight: Tensor) -> tuple[int, int, int]:
    return weight.data_ptr(), weight._version, _Held.changes


def _product(
    left: Tensor,
    right: Tensor | None,
    columns: int,
    *,
    bias: Tensor | None = None,
    kind: int = _NO_ACTIVATION,
    before: Tensor | None = None,
    slopes_at: Tensor | None = None,
) -> Tensor:
    out = left.new_empty(len(left), columns)
    call("tiled_linear", left, right, bias, kind, before, slopes_at, out, *out.shape, left.shape[1])
    return out


def _gradients(
    grad_out: Tensor, values: Tensor, bias: Tensor | None, kind: int = _NO_ACTIVATION
) -> tuple[Tensor, Tensor | None]:
    """Of a weight and its bias, from what went into the layer, activated first where `kind` says so."""
    sizes = (len(grad_out), grad_out.shape[1], values.shape[1])
    of_weight = torch.empty(sizes[1:], dtype=torch.float32)
    of_bias = None if bias is None else torch.empty_like(bias)
    call("tiled_gradient", grad_out, values, kind, of_weight, of_bias, *sizes)
    return of_weight, of_bias


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor, bias: Tensor | None, packed: _Packed) -> Tensor:
        narrow = values.to(torch.bfloat16).contiguous()
        ctx.save_for_backward(narrow, bias)
        ctx.packed, ctx.kind = packed, values.dtype
        return _product(narrow, packed.by_in, len(weight), bias=bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        narrow, bias = ctx.saved_tensors
        wanted = gradients[0].contiguous()
        of_values = None
        if ctx.needs_input_grad[0]:
            of_values = _product(wanted, ctx.packed.by_out, narrow.shape[1]).to(ctx.kind)
        of_layer = _gradients(wanted, narrow, bias) if any(ctx.needs_input_grad[1:3]) else (None, None)
        return of_values, *of_layer, None


class _FeedForward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        up: Tensor,
        up_bias: Tensor | None,
        down: Tensor,
        down_bias: Tensor | None,
        kind: int,
        packed: tuple[_Packed, _Packed],
    ) -> Tensor:
        narrow = hidden.to(torch.bfloat16).contiguous()
        before = narrow.new_empty(len(narrow), len(up))
        activated = _product(narrow, packed[0].by_in, len(up), bias=up_bias, kind=kind, before=before)
        ctx.save_for_backward(narrow, before, up_bias, down_bias)
        ctx.packed, ctx.activation, ctx.kind = packed, kind, hidden.dtype
        return _product(activated, packed[1].by_in, len(down), bias=down_bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        narrow, before, up_bias, down_bias = ctx.saved_tensors
        up, down = ctx.packed
        wanted = gradients[0].contiguous()
        of_up, of_down = (None, None), (None, None)
        if any(ctx.needs_input_grad[3:5]):
            of_down = _gradients(wanted, before, down_bias, ctx.activation)
        of_before = _product(wanted, down.by_out, before.shape[1], kind=ctx.activation, slopes_at=before)
        if any(ctx.needs_input_grad[1:3]):
            of_up = _gradients(of_before, narrow, up_bias)
        of_hidden = None
        if ctx.needs_input_grad[0]:
            of_hidden = _product(of_before, up.by_out, narrow.shape[1]).to(ctx.kind)
        return of_hidden, *of_up, *of_down, None, None
