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
_MOST_WAITING_ROWS = 4096
"""Rows of a shared layer's uses that wait to be multiplied together."""


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

    def __getstate__(self) -> dict[str, Any]:
        # A copy, or a file, has the weight alone: what stands in a graph cannot be copied.
        return {**self.__dict__, "_packed": None}

    def forward(self, input: Float[Tensor, "*rows in"]) -> Float[Tensor, "*rows out"]:
        if not _takes(input, self):
            return super().forward(input)
        packed = self.packed()
        return _Linear.apply(input, packed.summed(self), packed)  # pyright: ignore[reportReturnType]

    def packed(self) -> "_Packed":
        """The weight in bf16, as the right operand of both products."""
        backward = torch.is_grad_enabled()
        if backward and not _Held.now:
            self._packed = None
            return _Packed(self.weight.detach(), self.bias, backward)
        if self._packed is None or not self._packed.serves(self.weight, self.bias, backward):
            self._packed = _Packed(self.weight.detach(), self.bias, backward)
        return self._packed


def feed_forward(
    hidden: Float[Tensor, "*rows hidden"], up: nn.Module, down: nn.Module, kind: str
) -> Float[Tensor, "*rows hidden"]:
    """Two linear layers with an activation between them, of which nothing but what is activated is kept.

    Args:
        hidden: any vectors.
        up: to the width between: a `Linear`, or what does the same in another way.
        down: and back.
        kind: name of the activation.
    """
    if not (isinstance(up, Linear) and isinstance(down, Linear) and _takes(hidden, up) and _takes(hidden, down)):
        return down(activate(up(hidden), kind))
    packed = (up.packed(), down.packed())
    summed = (packed[0].summed(up), packed[1].summed(down))
    return _FeedForward.apply(hidden, *summed, KINDS[kind], packed)  # pyright: ignore[reportReturnType]


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
    """A weight in bf16 as the right operand of the forward and, where asked for, of the backward product, its bias, and
    the gradients of both."""

    def __init__(self, weight: Tensor, bias: Tensor | None, backward: bool) -> None:
        self._identity = _identity(weight, bias)
        self.columns = len(weight)
        """Width of what comes out."""
        self.bias = None if bias is None else bias.detach()
        self.sums = _Sums()
        self._summed: Tensor | None = None
        words = weight.numel() // 2
        self.by_in = torch.empty(words, dtype=torch.int32)
        self.by_out = torch.empty(words, dtype=torch.int32) if backward else None
        call("tiled_pack", weight.contiguous(), self.by_in, self.by_out, *weight.shape)

    def serves(self, weight: Tensor, bias: Tensor | None, backward: bool) -> bool:
        """Whether it is of the weight and the bias as they are now."""
        return self._identity == _identity(weight, bias) and (self.by_out is not None or not backward)

    def summed(self, layer: nn.Linear) -> Tensor:
        """Stands in a graph for the layer's weight and bias, the same for all uses, so that a shared layer's gradients
        reach autograd once, when all of them are summed. It holds nothing."""
        if not torch.is_grad_enabled():
            return torch.empty(0)
        if self._summed is None:
            self._summed = _Summed.apply(layer.weight, layer.bias, self.sums)
        return self._summed  # pyright: ignore[reportReturnType]


class _Sums:
    """Gradients of a layer's weight and bias over all its uses in one backward pass.

    Autograd would write each use's aside and then add it, which for a wide layer that is shared moves more memory than
    all else in a step. Here uses of few rows wait and are multiplied together, as if they were one of many rows: the
    gradient, larger than all that waits, is written once.
    """

    def __init__(self) -> None:
        # A backward pass may run inside another one, and one that failed leaves its part behind.
        self._of_pass: dict[int, _PassSums] = {}

    def add(self, grad_out: Tensor, values: Tensor, bias: Tensor | None, kind: int = _NO_ACTIVATION) -> None:
        """One use's, from what went into the layer, activated first where `kind` says so."""
        number = torch._C._current_graph_task_id()
        if number not in self._of_pass:
            shape = (grad_out.shape[1], values.shape[1])
            self._of_pass[number] = _PassSums(shape, None if bias is None else torch.empty_like(bias), kind)
        self._of_pass[number].add(grad_out, values)

    def taken(self) -> tuple[Tensor | None, Tensor | None]:
        """The sums of this pass."""
        sums = self._of_pass.pop(torch._C._current_graph_task_id(), None)
        return (None, None) if sums is None else sums.taken()


class _PassSums:
    """The sums of one backward pass, and what waits to be added to them."""

    def __init__(self, shape: tuple[int, int], of_bias: Tensor | None, kind: int) -> None:
        self._shape, self._of_bias, self._kind = shape, of_bias, kind
        self._of_weight: Tensor | None = None
        self._waiting: list[tuple[Tensor, Tensor]] = []

    def add(self, grad_out: Tensor, values: Tensor) -> None:
        self._waiting.append((grad_out, values))
        if sum(len(rows) for rows, _ in self._waiting) >= _MOST_WAITING_ROWS:
            self._multiply()

    def taken(self) -> tuple[Tensor | None, Tensor | None]:
        if self._waiting:
            self._multiply()
        return self._of_weight, self._of_bias

    def _multiply(self) -> None:
        parts = zip(*self._waiting, strict=True)
        grad_out, values = (part[0] if len(part) == 1 else torch.cat(part) for part in parts)
        self._waiting.clear()
        adds = self._of_weight is not None
        if self._of_weight is None:
            self._of_weight = torch.empty(self._shape, dtype=torch.float32)
        call(
            "tiled_gradient", grad_out, values, self._kind, self._of_weight, self._of_bias, len(grad_out), *self._shape,
            int(adds),
        )  # fmt: skip


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, sums: _Sums) -> Tensor:
        ctx.sums = sums
        return weight.new_empty(0)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return *ctx.sums.taken(), None


def _identity(weight: Tensor, bias: Tensor | None) -> tuple[int, int, int, int]:
    # A bias is read where it stands, so that only another in its place is a change.
    return weight.data_ptr(), weight._version, _Held.changes, 0 if bias is None else bias.data_ptr()


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


_NOTHING = torch.empty(0)
"""The gradient of what `_Packed.summed` gives."""


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, summed: Tensor, packed: _Packed) -> Tensor:
        narrow = values.to(torch.bfloat16).contiguous()
        ctx.save_for_backward(narrow)
        ctx.packed, ctx.kind = packed, values.dtype
        return _product(narrow, packed.by_in, packed.columns, bias=packed.bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (narrow,) = ctx.saved_tensors
        wanted = gradients[0].contiguous()
        of_values = None
        if ctx.needs_input_grad[0]:
            of_values = _product(wanted, ctx.packed.by_out, narrow.shape[1]).to(ctx.kind)
        if ctx.needs_input_grad[1]:
            ctx.packed.sums.add(wanted, narrow, ctx.packed.bias)
        return of_values, _NOTHING, None


class _FeedForward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, up_summed: Tensor, down_summed: Tensor, kind: int, packed: tuple[_Packed, _Packed]
    ) -> Tensor:
        up, down = packed
        narrow = hidden.to(torch.bfloat16).contiguous()
        before = narrow.new_empty(len(narrow), up.columns)
        activated = _product(narrow, up.by_in, up.columns, bias=up.bias, kind=kind, before=before)
        ctx.save_for_backward(narrow, before)
        ctx.packed, ctx.activation, ctx.kind = packed, kind, hidden.dtype
        return _product(activated, down.by_in, down.columns, bias=down.bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        narrow, before = ctx.saved_tensors
        up, down = ctx.packed
        wanted = gradients[0].contiguous()
        if ctx.needs_input_grad[2]:
            down.sums.add(wanted, before, down.bias, ctx.activation)
        of_before = _product(wanted, down.by_out, before.shape[1], kind=ctx.activation, slopes_at=before)
        if ctx.needs_input_grad[1]:
            up.sums.add(of_before, narrow, up.bias)
        of_hidden = None
        if ctx.needs_input_grad[0]:
            of_hidden = _product(of_before, up.by_out, narrow.shape[1]).to(ctx.kind)
        return of_hidden, _NOTHING, _NOTHING, None, None
