"""Linear layers and feed-forwards in bf16 against the same in float64."""

import contextlib
import copy

import pytest
import torch
from exact_results import random, relative_error
from torch import Tensor
from torch.nn import functional

from bertsmith.kernels import linear as module
from bertsmith.kernels.linear import Linear, feed_forward, weights_held

# Rows that are no multiple of a tile, right operands that one cache holds and others, and several parts of the rows.
SIZES = [(1, 32, 32), (31, 64, 96), (32, 32, 64), (70, 96, 32), (200, 1536, 512), (1100, 512, 1408), (300, 2144, 640)]
NEAR = 5e-3
"""Relative error that bf16 leaves in sums of products."""


def bf16() -> torch.autocast:
    return torch.autocast("cpu", torch.bfloat16)


def layer(width_in: int, width_out: int, *, bias: bool = True, seed: int = 0) -> Linear:
    made = Linear(width_in, width_out, bias=bias)
    with torch.no_grad():
        made.weight.copy_(random(width_out, width_in, seed=seed) * width_in**-0.5)
        if made.bias is not None:
            made.bias.copy_(random(width_out, seed=seed + 1))
    return made


def exactly(made: Linear) -> Linear:
    """The layer in float64, with a weight as the products see it."""
    twin = copy.deepcopy(made).double()
    with torch.no_grad():
        twin.weight.copy_(made.weight.bfloat16())
    return twin


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("rows", "width_in", "width_out"), SIZES)
def test_a_layer_and_its_gradients_are_near_those_in_float64(
    rows: int, width_in: int, width_out: int, bias: bool
) -> None:
    made = layer(width_in, width_out, bias=bias)
    twin = exactly(made)
    values = random(rows, width_in, seed=5).bfloat16().requires_grad_()
    exact_values = values.detach().double().requires_grad_()
    wanted = random(rows, width_out, seed=6).bfloat16()
    with bf16():
        given = made(values)
    exact = twin(exact_values)
    assert given.dtype == torch.bfloat16
    assert relative_error(given.detach(), exact.detach()) < NEAR
    given.backward(wanted)
    exact.backward(wanted.double())
    assert values.grad is not None
    assert exact_values.grad is not None
    assert values.grad.dtype == torch.bfloat16
    assert relative_error(values.grad, exact_values.grad) < NEAR
    for ours, theirs in zip(made.parameters(), twin.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        assert ours.grad.dtype == torch.float32
        assert relative_error(ours.grad, theirs.grad) < NEAR


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", ["gelu", "gelu_tanh", "relu"])
@pytest.mark.parametrize(("rows", "width", "between"), [(1, 32, 32), (45, 64, 160), (300, 384, 1536)])
def test_a_feed_forward_and_its_gradients_are_near_those_in_float64(
    rows: int, width: int, between: int, kind: str
) -> None:
    up, down = layer(width, between), layer(between, width, seed=2)
    exact_up, exact_down = exactly(up), exactly(down)
    values = random(rows, width, seed=5).requires_grad_()
    exact_values = values.detach().bfloat16().double().requires_grad_()
    wanted = random(rows, width, seed=6).bfloat16()
    with bf16():
        given = feed_forward(values, up, down, kind)
    exact = exact_down(_activated(exact_up(exact_values), kind))
    assert relative_error(given.detach(), exact.detach()) < 3 * NEAR
    given.backward(wanted)
    exact.backward(wanted.double())
    assert values.grad is not None
    assert exact_values.grad is not None
    assert values.grad.dtype == torch.float32, "as what went in"
    # Near 0, a rounding decides on which side of ReLU's corner a number stands.
    assert relative_error(values.grad, exact_values.grad) < 10 * NEAR
    for ours, theirs in zip((*up.parameters(), *down.parameters()), (*exact_up.parameters(), *exact_down.parameters()),
                            strict=True):  # fmt: skip
        assert ours.grad is not None
        assert theirs.grad is not None
        assert relative_error(ours.grad, theirs.grad) < 10 * NEAR


def _activated(values: Tensor, kind: str) -> Tensor:
    if kind == "relu":
        return functional.relu(values)
    return functional.gelu(values, approximate="tanh" if kind == "gelu_tanh" else "none")


@pytest.fixture
def by_tiles(compiled: None) -> None:
    if not module.multiplies():
        pytest.skip("this processor has no products of bf16 that the kernels know")


@pytest.mark.usefixtures("by_tiles")
def test_a_weight_is_packed_once_until_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real = module.call
    monkeypatch.setattr(module, "call", lambda name, *rest: (calls.append(name), real(name, *rest))[1])
    made, values = layer(64, 64), random(10, 64)
    with bf16():
        with weights_held():
            first = made(values)
            assert torch.equal(made(values), first)
            with torch.no_grad():
                assert torch.equal(made(values), first)
            assert calls.count("tiled_pack") == 1, "what serves both passes serves one"
        with torch.no_grad():
            assert torch.equal(made(values), first)
            assert torch.equal(made(values), first)
            assert calls.count("tiled_pack") == 2, "whoever held the weights may have changed them since"
            made.weight.mul_(2.0)
            changed = made(values)
    assert calls.count("tiled_pack") == 3
    assert relative_error(changed.detach(), exactly(made)(values.bfloat16().double()).detach()) < NEAR


@pytest.mark.usefixtures("by_tiles")
def test_another_bias_in_the_place_of_one_is_a_change() -> None:
    made, values = layer(32, 32), random(8, 32)
    with bf16(), torch.no_grad():
        made(values)
        made.bias.add_(1.0)
        added = made(values)
        assert relative_error(added, exactly(made)(values.bfloat16().double())) < NEAR
        made.bias = torch.nn.Parameter(made.bias + 1.0)
        replaced = made(values)
    assert relative_error(replaced, exactly(made)(values.bfloat16().double()).detach()) < NEAR


@pytest.mark.usefixtures("by_tiles")
@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("looked_before", [True, False])
def test_a_fused_update_is_a_change_though_it_leaves_no_trace(held: bool, looked_before: bool) -> None:
    made, values = layer(32, 32), random(8, 32)
    optimizer = torch.optim.AdamW(made.parameters(), lr=0.1, fused=True)
    version = made.weight._version
    with bf16():
        if looked_before:
            with torch.no_grad():
                made(values)
        with weights_held() if held else contextlib.nullcontext():
            made(values).float().square().sum().backward()
        optimizer.step()
        assert made.weight._version == version, "a trace would make this simpler"
        with torch.no_grad():
            looked = made(values)
        trained = made(values)
    exact = exactly(made)(values.bfloat16().double()).detach()
    assert relative_error(looked, exact) < NEAR
    assert relative_error(trained.detach(), exact) < NEAR


@pytest.mark.usefixtures("by_tiles")
def test_the_number_of_threads_changes_no_bit() -> None:
    up, down = layer(128, 512), layer(512, 128, seed=2)
    values, wanted = random(500, 128), random(500, 128, seed=3).bfloat16()
    found: list[list[Tensor]] = []
    threads = torch.get_num_threads()
    for number in (1, 2, 3):
        torch.set_num_threads(number)
        leaf = values.clone().requires_grad_()
        with bf16():
            given = feed_forward(leaf, up, down, "gelu")
        gradients = torch.autograd.grad(given, (leaf, *up.parameters(), *down.parameters()), wanted)
        found.append([given.detach(), *gradients])
    torch.set_num_threads(threads)
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


@pytest.mark.usefixtures("by_tiles")
@pytest.mark.parametrize("frozen", ["weight", "bias", "input"])
def test_what_is_frozen_has_no_gradient_and_the_others_have_theirs(frozen: str) -> None:
    made, values = layer(32, 64), random(40, 32).requires_grad_(frozen != "input")
    expected = layer(32, 64)
    for name, parameter in made.named_parameters():
        parameter.requires_grad_(name != frozen)
    with bf16():
        made(values).sum().backward()
        expected(leaf := random(40, 32).requires_grad_()).sum().backward()
    for name, parameter in made.named_parameters():
        other = dict(expected.named_parameters())[name]
        assert (parameter.grad is None) == (name == frozen)
        assert parameter.grad is None or torch.equal(parameter.grad, other.grad)  # pyright: ignore[reportArgumentType]
    assert (values.grad is None) == (frozen == "input")
    assert values.grad is None or torch.equal(values.grad, leaf.grad)  # pyright: ignore[reportArgumentType]


@pytest.mark.usefixtures("by_tiles")
def test_a_width_that_is_no_multiple_of_a_tile_goes_torchs_way() -> None:
    made, values = layer(40, 48), random(9, 40)
    with bf16():
        given = made(values)
    assert torch.equal(given, functional.linear(values.bfloat16(), made.weight.bfloat16(), made.bias.bfloat16()))


@pytest.mark.usefixtures("by_tiles")
def test_no_rows_give_none() -> None:
    made, values = layer(32, 64), torch.empty(0, 32, requires_grad=True)
    with bf16():
        given = made(values)
    given.sum().backward()
    assert given.shape == (0, 64)
    assert made.weight.grad is not None
    assert not made.weight.grad.any()
