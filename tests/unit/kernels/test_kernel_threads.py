"""What the number of threads may change, and what it may not."""

from collections.abc import Callable

import pytest
import torch
from exact_results import TYPES, random
from kernel_models import HIDDEN_SIZE, KINDS, loss_and_gradients, packed_tokens, varied_model
from torch import Tensor, nn

from bertsmith.kernels.activations import activate, activate_gated
from bertsmith.kernels.residual_norm import add_then_norm
from bertsmith.kernels.vocabulary import add_exponential_sums, to_exponential_gradients

LENGTHS = [100, 37, 90, 64, 12, 100, 61, 99, 80]
"""Together with the width of a model, more numbers than a kernel gives to one thread alone."""


def with_threads(count: int, compute: Callable[[], list[Tensor]]) -> list[Tensor]:
    torch.set_num_threads(count)
    return compute()


@pytest.mark.usefixtures("compiled", "two_threads")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_run_again_with_as_many_threads_gives_the_same_bits(kind: str, precision: str) -> None:
    packed = packed_tokens(LENGTHS)
    assert len(packed.token_ids) * HIDDEN_SIZE > 16_384
    model = varied_model(kind, dropout=0.1)
    first = loss_and_gradients(model, packed, precision)
    again = loss_and_gradients(model, packed, precision)
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
    other_dropout = loss_and_gradients(model, packed, precision, seed=1)
    assert not torch.equal(first[0], other_dropout[0])


@pytest.mark.usefixtures("compiled", "two_threads")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
def test_layers_that_are_run_again_for_their_gradients_drop_the_same_numbers(kind: str, precision: str) -> None:
    packed = packed_tokens(LENGTHS)
    model = varied_model(kind, dropout=0.1)
    kept = loss_and_gradients(model, packed, precision)
    model.encoder.recompute_activations(True)  # pyright: ignore[reportCallIssue]
    for one, other in zip(kept, loss_and_gradients(model, packed, precision), strict=True):
        assert torch.equal(one, other)


@pytest.mark.usefixtures("compiled", "two_threads")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_what_is_computed_row_by_row_is_the_same_with_any_number_of_threads(dtype: torch.dtype) -> None:
    norm = nn.LayerNorm(96)

    def rows() -> list[Tensor]:
        torch.manual_seed(0)
        hidden, added = random(301, 96).requires_grad_(), random(301, 96, seed=1).to(dtype).requires_grad_()
        stream = add_then_norm(hidden, added, norm, 0.2)
        values = added.detach().clone().requires_grad_()
        activated = [activate(values, "gelu"), activate_gated(values, "gelu_tanh")]
        (stream.matrix.sum() + stream.exact.pow(2).sum() + sum(part.sum() for part in activated)).backward()
        scores = added.detach().clone()
        totals = to_exponential_gradients(scores, torch.ones(301), torch.ones(96))
        parts = [stream.exact, stream.matrix, *activated, hidden.grad, added.grad, values.grad, scores, totals]
        return [part.detach() for part in parts if part is not None]

    alone = with_threads(1, rows)
    for threads in (2, 3):
        for one, other in zip(alone, with_threads(threads, rows), strict=True):
            assert torch.equal(one, other)


@pytest.mark.usefixtures("compiled", "two_threads")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_sums_over_rows_are_near_with_other_threads_and_equal_with_as_many(dtype: torch.dtype) -> None:
    def sums() -> list[Tensor]:
        norm = nn.LayerNorm(96)
        stream = add_then_norm(random(301, 96), random(301, 96, seed=1).to(dtype), norm, 0.0)
        (stream.matrix.float() * random(301, 96, seed=2)).sum().backward()
        of_exponentials = torch.zeros(96)
        add_exponential_sums(random(301, 96).to(dtype), torch.ones(301), of_exponentials)
        assert norm.weight.grad is not None
        assert norm.bias.grad is not None
        return [norm.weight.grad, norm.bias.grad, of_exponentials]

    alone = with_threads(1, sums)
    for threads in (2, 3):
        given = with_threads(threads, sums)
        for one, other, again in zip(alone, given, with_threads(threads, sums), strict=True):
            torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5)
            assert torch.equal(other, again)
