"""Gradients of a layer that is used more than once: summed where they are made, and no use of them is lost."""

import copy

import pytest
import torch
from exact_results import random
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from bertsmith.kernels import linear as module
from bertsmith.kernels.linear import Linear, feed_forward, weights_held

WIDTH = 64
# The wide one's gradients pass by the caches where they are written alone.
WIDTHS = [WIDTH, 1440]


@pytest.fixture(autouse=True)
def by_tiles(compiled: None) -> None:
    if not module.multiplies():
        pytest.skip("this processor has no products of bf16 that the kernels know")


def layer(width: int = WIDTH) -> Linear:
    made = Linear(width, width)
    with torch.no_grad():
        made.weight.copy_(random(width, width) * width**-0.5)
        made.bias.copy_(random(width, seed=1))
    return made


def gradients(made: Linear) -> tuple[Tensor, Tensor]:
    assert made.weight.grad is not None
    assert made.bias.grad is not None
    return made.weight.grad, made.bias.grad


def sums_of_parts(parts: list[Linear]) -> tuple[Tensor, Tensor]:
    """Of layers that were used once each, from the last to the first, as a backward pass goes."""
    weight, bias = (gradient.clone() for gradient in gradients(parts[-1]))
    for part in reversed(parts[:-1]):
        weight += part.weight.grad
        bias += part.bias.grad
    return weight, bias


# All uses wait; two do, and then one; none waits.
@pytest.mark.parametrize("most", [4096, 100, 1])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_shared_layer_has_the_sum_of_what_layers_of_their_own_have(
    width: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING_ROWS", most)
    shared, parts = layer(width), [layer(width) for _ in range(3)]
    values = random(70, width, seed=2)
    with torch.autocast("cpu", torch.bfloat16), weights_held():
        shared(shared(shared(values))).float().square().sum().backward()
        parts[2](parts[1](parts[0](values))).float().square().sum().backward()
    for ours, theirs in zip(gradients(shared), sums_of_parts(parts), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5 * float(theirs.abs().max()))
    if most == 1:
        assert all(torch.equal(*pair) for pair in zip(gradients(shared), sums_of_parts(parts), strict=True))


def test_a_shared_feed_forward_has_the_sum_too() -> None:
    up, down = layer(), layer()
    ups, downs = [layer() for _ in range(3)], [layer() for _ in range(3)]
    shared = own = random(70, WIDTH, seed=2)
    with torch.autocast("cpu", torch.bfloat16), weights_held():
        for one, other in zip(ups, downs, strict=True):
            shared, own = feed_forward(shared, up, down, "gelu"), feed_forward(own, one, other, "gelu")
        shared.float().square().sum().backward()
        own.float().square().sum().backward()
    for made, parts in ((up, ups), (down, downs)):
        for ours, theirs in zip(gradients(made), sums_of_parts(parts), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5 * float(theirs.abs().max()))


@pytest.mark.parametrize("held", [True, False])
def test_passes_one_after_the_other_add_up(held: bool) -> None:
    made, once = layer(), layer()
    first, second = random(40, WIDTH, seed=2), random(70, WIDTH, seed=3)
    with torch.autocast("cpu", torch.bfloat16):
        if held:
            with weights_held():
                for values in (first, second):
                    made(made(values)).sum().backward()
        else:
            for values in (first, second):
                made(made(values)).sum().backward()
        expected = []
        for values in (first, second):
            once.zero_grad()
            once(once(values)).sum().backward()
            expected.append([gradient.clone() for gradient in gradients(once)])
    for ours, one, two in zip(gradients(made), *expected, strict=True):
        torch.testing.assert_close(ours, one + two, rtol=1e-5, atol=1e-5)


def test_the_same_graph_gone_through_again_gives_the_same_again() -> None:
    made = layer()
    with torch.autocast("cpu", torch.bfloat16), weights_held():
        loss = made(made(random(40, WIDTH))).float().sum()
    found = [torch.autograd.grad(loss, list(made.parameters()), retain_graph=True) for _ in range(2)]
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))


def test_a_pass_that_failed_leaves_nothing_to_the_next() -> None:
    made, other, values = layer(), layer(), random(40, WIDTH)

    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, given: Tensor) -> Tensor:
            return given.clone()

        @staticmethod
        def backward(ctx: object, *gradients: Tensor) -> Tensor:
            raise ArithmeticError("on purpose")

    with torch.autocast("cpu", torch.bfloat16), weights_held():
        failing = made(Fails.apply(made(values)))  # pyright: ignore[reportArgumentType]
        with pytest.raises(ArithmeticError):
            failing.sum().backward()
        assert made.weight.grad is None
        made(values).sum().backward()
        other(values).sum().backward()
    assert all(torch.equal(one, two) for one, two in zip(gradients(made), gradients(other), strict=True))


def test_a_gradient_of_something_else_alone_leaves_nothing_to_the_next() -> None:
    made, other, values = layer(), layer(), random(40, WIDTH).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16), weights_held():
        torch.autograd.grad(made(values).sum(), values)
        assert made.weight.grad is None
        for one in (made, other):
            one(values).sum().backward()
    assert all(torch.equal(one, two) for one, two in zip(gradients(made), gradients(other), strict=True))


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_is_computed_again_in_the_backward_pass_counts_once(reentrant: bool) -> None:
    made, other, values = layer(), layer(), random(40, WIDTH).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16), weights_held():
        hidden = made(values)
        hidden = checkpoint(made, hidden, use_reentrant=reentrant)
        made(hidden).float().square().sum().backward()
        other(other(other(values))).float().square().sum().backward()
    for one, two in zip(gradients(made), gradients(other), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-3)


def test_another_use_of_the_weight_is_added() -> None:
    made, values = layer(), random(40, WIDTH)
    with torch.autocast("cpu", torch.bfloat16), weights_held():
        (made(made(values)).float().sum() + made.weight.sum()).backward()
        alone = layer()
        alone(alone(values)).float().sum().backward()
    torch.testing.assert_close(gradients(made)[0], gradients(alone)[0] + 1, rtol=1e-5, atol=1e-5)


def test_a_layer_can_be_copied_after_a_step() -> None:
    made = layer()
    with torch.autocast("cpu", torch.bfloat16), weights_held():
        made(random(40, WIDTH)).sum().backward()
    twin = copy.deepcopy(made)
    assert torch.equal(twin.weight, made.weight)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        assert torch.equal(twin(random(5, WIDTH)), made(random(5, WIDTH)))
