"""Residual sum and norm, values and gradients, against the plain computation in float64."""

from dataclasses import dataclass

import pytest
import torch
from exact_results import TYPES, assert_rounded, random
from torch import Tensor, nn
from torch.nn import functional

from bertsmith.kernels.residual_norm import Stream, add_and_norm, add_then_norm

FUNCTIONS = {"add_then_norm": add_then_norm, "add_and_norm": add_and_norm}
WIDTHS = [1, 7, 16, 128, 384]
ROWS = 50
"""Times the largest width enough for several threads."""


@dataclass(frozen=True)
class Parts:
    """What goes in, each with its gradient."""

    hidden: Tensor
    added: Tensor
    norm: nn.LayerNorm

    def leaves(self) -> list[Tensor]:
        bias = [] if self.norm.bias is None else [self.norm.bias]
        return [self.hidden, self.added, self.norm.weight, *bias]


def made_parts(width: int, dtype: torch.dtype, *, bias: bool = True, rows: int = ROWS, eps: float = 1e-5) -> Parts:
    norm = nn.LayerNorm(width, eps=eps, bias=bias)
    with torch.no_grad():
        norm.weight.copy_(1 + random(width, seed=1) / 4)
        if bias:
            norm.bias.copy_(random(width, seed=2) / 4)
    hidden = random(rows, width, seed=3).requires_grad_()
    return Parts(hidden, random(rows, width, seed=4).to(dtype).requires_grad_(), norm)


def exact_stream(name: str, parts: list[Tensor], eps: float = 1e-5) -> Stream:
    hidden, added, weight, *bias = parts
    total = hidden + added
    normed = functional.layer_norm(total, weight.shape, weight, bias[0] if bias else None, eps)
    return Stream(normed if name == "add_then_norm" else total, normed)


def weighted(stream: Stream, uses: str) -> Tensor:
    """A number that depends on one of a stream's two tensors, or on both, with the same weights in every type."""
    shape = tuple(stream.exact.shape)
    exact = (stream.exact * random(*shape, seed=5).to(stream.exact.dtype)).sum()
    # In bf16 the weights are rounded before any type gets them.
    matrix = (stream.matrix * random(*shape, seed=6).bfloat16().to(stream.matrix.dtype)).sum(dtype=torch.float64)
    return {"both": exact + matrix, "exact": exact, "matrix": matrix}[uses]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_values_are_those_of_the_sum_and_its_norm(name: str, dtype: torch.dtype, width: int, bias: bool) -> None:
    parts = made_parts(width, dtype, bias=bias)
    given = FUNCTIONS[name](parts.hidden, parts.added, parts.norm, 0.0)
    exact = exact_stream(name, [leaf.detach().double() for leaf in parts.leaves()])
    assert given.exact.dtype == torch.float32
    assert_rounded(given.exact.detach(), exact.exact)
    assert_rounded(given.matrix.detach(), exact.matrix)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_matrix_products_get_the_type_of_what_was_added(name: str, dtype: torch.dtype) -> None:
    parts = made_parts(16, dtype)
    given = FUNCTIONS[name](parts.hidden, parts.added, parts.norm, 0.0)
    assert given.matrix.dtype == dtype
    assert (given.exact is given.matrix) == (name == "add_then_norm" and dtype == torch.float32)
    if name == "add_then_norm":
        assert torch.equal(given.exact.to(dtype), given.matrix)


@pytest.mark.parametrize("uses", ["both", "exact", "matrix"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_all_gradients_are_the_exact_ones_whichever_part_of_the_stream_is_read(
    way: str, uses: str, name: str, dtype: torch.dtype, width: int, bias: bool
) -> None:
    parts = made_parts(width, dtype, bias=bias)
    weighted(FUNCTIONS[name](parts.hidden, parts.added, parts.norm, 0.0), uses).backward()
    leaves = [leaf.detach().double().requires_grad_() for leaf in parts.leaves()]
    weighted(exact_stream(name, leaves), uses).backward()
    for leaf, exact in zip(parts.leaves(), leaves, strict=True):
        assert leaf.grad is not None or (exact.grad is None and way == "torch")
        expected = torch.zeros_like(exact) if exact.grad is None else exact.grad
        found = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
        assert found.dtype == leaf.dtype
        # Of a width of 1, all spread is epsilon: its square root divides the last bits.
        assert_rounded(found, expected, within=5e-4 if width == 1 else 1e-5)


class _Unread(torch.autograd.Function):
    """Passes numbers on, and no gradient back."""

    @staticmethod
    def forward(ctx: object, values: Tensor) -> Tensor:
        return values.clone()

    @staticmethod
    def backward(ctx: object, *gradients: Tensor) -> None:
        return None


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_stream_that_nobody_reads_gives_no_gradient(name: str, dtype: torch.dtype) -> None:
    parts = made_parts(16, dtype)
    stream = FUNCTIONS[name](parts.hidden, parts.added, parts.norm, 0.0)
    (_Unread.apply(stream.exact).sum() + _Unread.apply(stream.matrix).sum()).backward()  # pyright: ignore[reportAttributeAccessIssue]
    for leaf in parts.leaves():
        assert leaf.grad is None or not leaf.grad.any()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_no_rows_give_no_rows_and_gradients_of_zero(name: str, dtype: torch.dtype) -> None:
    parts = made_parts(16, dtype, rows=0)
    stream = FUNCTIONS[name](parts.hidden, parts.added, parts.norm, 0.3)
    assert stream.exact.shape == stream.matrix.shape == (0, 16)
    weighted(stream, "both").backward()
    for leaf in parts.leaves()[2:]:
        assert leaf.grad is not None
        assert not leaf.grad.any()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_without_spread_stay_finite_at_the_smallest_epsilon_of_published_models(name: str) -> None:
    parts = made_parts(128, torch.float32, eps=1e-12)
    with torch.no_grad():
        parts.hidden.fill_(3.0)
        parts.added.fill_(-1.0)
    stream = FUNCTIONS[name](parts.hidden, parts.added, parts.norm, 0.0)
    assert torch.equal(stream.matrix, parts.norm.bias.expand(ROWS, 128))
    weighted(stream, "both").backward()
    for leaf in parts.leaves():
        assert leaf.grad is not None
        assert leaf.grad.isfinite().all()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_far_from_zero_keep_their_spread(name: str) -> None:
    # A variance made of a mean of squares would be lost here.
    parts = made_parts(128, torch.float32)
    with torch.no_grad():
        parts.hidden.add_(1000.0)
    given = FUNCTIONS[name](parts.hidden, parts.added, parts.norm, 0.0)
    exact = exact_stream(name, [leaf.detach().double() for leaf in parts.leaves()])
    assert_rounded(given.matrix.detach(), exact.matrix, within=5e-4)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("spoilt", [torch.nan, torch.inf], ids=str)
def test_a_row_that_is_spoilt_spoils_itself_and_no_other(name: str, spoilt: float) -> None:
    parts = made_parts(37, torch.float32)
    clean = FUNCTIONS[name](parts.hidden, parts.added, parts.norm, 0.0)
    with torch.no_grad():
        parts.hidden[7, 5] = spoilt
    given = FUNCTIONS[name](parts.hidden, parts.added, parts.norm, 0.0)
    others = torch.arange(ROWS) != 7
    assert given.matrix[7].isnan().all()
    assert torch.equal(given.matrix[others], clean.matrix[others])
    assert torch.equal(given.exact[others], clean.exact[others])


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_how_numbers_lie_in_memory_changes_no_stream(name: str, dtype: torch.dtype) -> None:
    parts = made_parts(24, dtype)
    hidden, added = (leaf.detach().T.contiguous().T for leaf in (parts.hidden, parts.added))
    assert not hidden.is_contiguous()
    assert not added.is_contiguous()
    given = FUNCTIONS[name](hidden, added, parts.norm, 0.0)
    expected = FUNCTIONS[name](parts.hidden, parts.added, parts.norm, 0.0)
    assert torch.equal(given.exact, expected.exact)
    assert torch.equal(given.matrix, expected.matrix)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_float64_passes_a_numerical_check(name: str) -> None:
    parts = made_parts(5, torch.float64, rows=3)
    norm = parts.norm.double()
    hidden, added = (leaf.detach().double().requires_grad_() for leaf in (parts.hidden, parts.added))

    def stream(hidden: Tensor, added: Tensor) -> tuple[Tensor, Tensor]:
        given = FUNCTIONS[name](hidden, added, norm, 0.0)
        return given.exact, given.matrix

    assert stream(hidden, added)[1].dtype == torch.float64
    assert torch.autograd.gradcheck(stream, (hidden, added))
