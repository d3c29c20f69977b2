"""Activations and their gradients against torch's in float64."""

import math

import pytest
import torch
from exact_results import TYPES, assert_rounded, random, within_one
from torch import Tensor
from torch.nn import functional

from bertsmith.kernels.activations import activate, activate_gated

KINDS = ["gelu", "gelu_tanh", "relu"]
SIZES = [0, 1, 15, 16, 17, 4095, 4096, 4097, 100_000]
"""Around the widths of vectors and of what a thread takes at a time, and enough for several threads."""
GATED_SHAPES = [(0, 7), (1, 1), (3, 15), (2, 16), (5, 17), (4097, 1), (2, 4095), (1, 4096), (250, 400)]


def by_torch(values: Tensor, kind: str) -> Tensor:
    match kind:
        case "gelu":
            return functional.gelu(values)
        case "gelu_tanh":
            return functional.gelu(values, approximate="tanh")
        case _:
            return functional.relu(values)


def gated_by_torch(values: Tensor, kind: str) -> Tensor:
    return by_torch(values[:, : values.shape[1] // 2], kind) * values[:, values.shape[1] // 2 :]


def roundings(way: str) -> int:
    """How often a bf16 number is rounded on its way: torch keeps what lies between two operations."""
    return 1 if way == "kernels" else 4


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_values_and_gradients_are_those_of_torch(way: str, kind: str, size: int, dtype: torch.dtype) -> None:
    values = (3 * random(1, size)).to(dtype).requires_grad_()
    wanted = within_one(1, size, seed=1).to(dtype)
    exact_values = values.detach().double().requires_grad_()
    given, exact = activate(values, kind), by_torch(exact_values, kind)
    assert given.dtype == dtype
    assert_rounded(given.detach(), exact.detach())
    (gradient,) = torch.autograd.grad(given, values, wanted)
    (exact_gradient,) = torch.autograd.grad(exact, exact_values, wanted.double())
    assert_rounded(gradient, exact_gradient, roundings=roundings(way))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", GATED_SHAPES, ids=str)
def test_gated_values_and_both_gradients_are_those_of_torch(
    way: str, kind: str, shape: tuple[int, int], dtype: torch.dtype
) -> None:
    rows, width = shape
    values = torch.cat([3 * random(rows, width), within_one(rows, width, seed=1)], 1).to(dtype).requires_grad_()
    wanted = within_one(rows, width, seed=2).to(dtype)
    exact_values = values.detach().double().requires_grad_()
    given, exact = activate_gated(values, kind), gated_by_torch(exact_values, kind)
    assert given.shape == shape
    assert given.dtype == dtype
    assert_rounded(given.detach(), exact.detach(), roundings=roundings(way))
    (gradient,) = torch.autograd.grad(given, values, wanted)
    (exact_gradient,) = torch.autograd.grad(exact, exact_values, wanted.double())
    assert_rounded(gradient, exact_gradient, roundings=roundings(way))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_far_out_give_themselves_or_nothing(kind: str, dtype: torch.dtype) -> None:
    values = torch.tensor([[9.0, 20.0, 40.0, 100.0, 1e4, 1e15, 1e30, 1e37]], dtype=dtype).repeat(1, 3)
    assert torch.equal(activate(values, kind), values)
    assert_rounded(activate(-values, kind), torch.zeros_like(values, dtype=torch.float64))
    gate = torch.full_like(values, 0.5)
    assert torch.equal(activate_gated(torch.cat([values, gate], 1), kind), values / 2)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_infinity_stays_so(kind: str, dtype: torch.dtype) -> None:
    infinite = torch.full((1, 19), math.inf, dtype=dtype)
    assert torch.equal(activate(infinite, kind), infinite)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_slope_far_out_is_one_or_nothing(kind: str, dtype: torch.dtype) -> None:
    # Beyond 1e12, torch's own slopes in fp32 overflow.
    values = torch.tensor([[9.0, 20.0, 40.0, 100.0, 1e4, 1e12]], dtype=dtype).repeat(1, 3)
    for sign in (1, -1):
        leaf = (sign * values).requires_grad_()
        activate(leaf, kind).sum().backward()
        assert leaf.grad is not None
        assert_rounded(leaf.grad, torch.full_like(values, max(sign, 0), dtype=torch.float64))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_minus_infinity_gives_nothing_or_no_number(kind: str, dtype: torch.dtype) -> None:
    # GELU multiplies it with 0 in torch as well; any other number would be wrong.
    given = activate(torch.full((1, 19), -math.inf, dtype=dtype), kind)
    assert (given.abs() < 1e-30).all() or (kind != "relu" and given.isnan().all())


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_number_stays_so_and_leaves_its_neighbours_alone(kind: str, dtype: torch.dtype) -> None:
    values = random(1, 35).to(dtype)
    clean = activate(values, kind)
    spoilt = values.clone()
    spoilt[0, [3, 17, 34]] = math.nan
    leaf = spoilt.requires_grad_()
    given = activate(leaf, kind)
    assert torch.equal(given.isnan(), spoilt.isnan())
    assert torch.equal(given[~spoilt.isnan()], clean[~spoilt.isnan()])
    given.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad[~spoilt.isnan()].isfinite().all()


@pytest.mark.usefixtures("compiled")
def test_bf16_is_rounded_to_the_nearest_and_between_two_to_the_even_one() -> None:
    values, gate = random(100, 1000).abs().bfloat16(), random(100, 1000, seed=1).bfloat16()
    products = values.float() * gate.float()
    # A product of two bf16 numbers is exact in fp32, and its lower half says where it lies between two of them.
    halfway = products.view(torch.int32) & 0xFFFF == 0x8000
    assert halfway.sum() > 1000
    assert torch.equal(activate_gated(torch.cat([values, gate], 1), "relu"), products.bfloat16())


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_numbers_below_the_normal_ones_are_not_lost(dtype: torch.dtype) -> None:
    smallest = torch.finfo(dtype).tiny
    values = torch.tensor([[smallest / 2, smallest / 64, -smallest / 2, -smallest / 64]], dtype=dtype).repeat(1, 5)
    assert torch.equal(activate(values, "relu"), values.clamp(min=0))
    for kind in ("gelu", "gelu_tanh"):
        torch.testing.assert_close(activate(values, kind).double(), values.double() / 2, rtol=1e-2, atol=0)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("kind", KINDS)
def test_how_numbers_lie_in_memory_changes_nothing(kind: str) -> None:
    values = random(60, 34).T[::2]
    assert not values.is_contiguous()
    for function in (activate, activate_gated):
        leaf, copy = values.detach().requires_grad_(), values.contiguous().requires_grad_()
        turned, straight = function(leaf, kind), function(copy, kind)
        assert torch.equal(turned, straight)
        # The gradient of a sum has one number in memory.
        turned.sum().backward()
        straight.backward(torch.ones_like(straight))
        assert leaf.grad is not None
        assert copy.grad is not None
        assert torch.equal(leaf.grad, copy.grad)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", KINDS)
def test_float64_is_exact_and_passes_a_numerical_check(kind: str) -> None:
    values = random(5, 8).double().requires_grad_()
    assert torch.equal(activate(values, kind), by_torch(values, kind))
    assert torch.equal(activate_gated(values, kind), gated_by_torch(values, kind))
    assert torch.autograd.gradcheck(lambda x: activate(x, kind), values)
    assert torch.autograd.gradcheck(lambda x: activate_gated(x, kind), values)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", KINDS)
def test_a_type_that_the_kernels_do_not_know_goes_the_way_of_torch(kind: str) -> None:
    values = random(3, 10).half()
    assert torch.equal(activate(values, kind), by_torch(values, kind))
    assert torch.equal(activate_gated(values, kind), gated_by_torch(values, kind))
