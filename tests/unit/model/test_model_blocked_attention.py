"""Attention in blocks gives what attention at once gives, forward and backward, with and without dropout."""

from typing import Any

import pytest
import torch
from small_models import LENGTHS, packed, sequences, small_model
from torch import Tensor

from bertsmith.model import blocked_attention as module
from bertsmith.model.blocked_attention import blocked_attention


@pytest.fixture(params=[1, 100, 1 << 19], ids=["one sequence a block", "some", "all in one"])
def block_elements(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(module, "_BLOCK_ELEMENTS", request.param)
    return request.param


def random_block(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Query, key and value of five sequences, and a mask that leaves each a length of its own."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(5, 4, 3, 2, 3, generator=generator, dtype=torch.float64).to(dtype)
    real = torch.arange(4) < torch.tensor([4, 1, 3, 2, 4])[:, None]
    return rows, real[:, None, None, :]


def by_the_book(rows: Tensor, mask: Tensor | None) -> Tensor:
    query, key, value = rows.unbind(2)
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) / rows.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), value)


@pytest.mark.usefixtures("block_elements")
@pytest.mark.parametrize("masked", [True, False])
def test_blocks_give_what_the_book_gives(masked: bool) -> None:
    rows, mask = random_block()
    expected = by_the_book(rows, mask if masked else None)
    torch.testing.assert_close(blocked_attention(rows, mask if masked else None, 0.0), expected, atol=1e-12, rtol=0)


@pytest.mark.usefixtures("block_elements")
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_the_backward_pass_is_the_derivative_of_the_forward_pass(masked: bool, dropout: float) -> None:
    rows, mask = random_block()

    def attend(x: Tensor) -> Tensor:
        torch.manual_seed(3)  # The same weights are dropped at every call.
        return blocked_attention(x, mask if masked else None, dropout)

    assert torch.autograd.gradcheck(attend, rows.requires_grad_())


@pytest.mark.usefixtures("block_elements")
def test_padding_gets_no_gradient_and_gives_none() -> None:
    rows, mask = random_block()
    rows.requires_grad_()
    real = mask[:, 0, 0]
    blocked_attention(rows, mask, 0.0)[real].pow(2).sum().backward()
    assert rows.grad is not None
    assert not rows.grad[~real].any()
    assert rows.grad[real].any()


@pytest.mark.usefixtures("block_elements")
def test_dropout_keeps_the_mean_and_drops_its_share() -> None:
    # All weights are one fourth and all values one, so that the output counts the weights that stayed.
    rows = torch.zeros(2000, 4, 3, 1, 1, dtype=torch.float64)
    rows[:, :, 2] = 1.0
    torch.manual_seed(0)
    stayed = blocked_attention(rows, None, 0.3).flatten() * 4 * 0.7
    assert torch.allclose(stayed, stayed.round())
    assert stayed.mean().item() / 4 == pytest.approx(0.7, abs=0.01)
    assert set(stayed.round().int().tolist()) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_lower_precision_stays_finite_and_near(dtype: torch.dtype) -> None:
    rows, mask = random_block(dtype)
    rows.requires_grad_()
    context = blocked_attention(rows, mask, 0.0)
    assert context.dtype == dtype
    context.sum().backward()
    assert torch.isfinite(rows.grad).all() if rows.grad is not None else False
    tolerance = 1e-6 if dtype == torch.float32 else 0.05
    expected = by_the_book(rows.detach().double(), mask)
    torch.testing.assert_close(context.detach().double(), expected, atol=tolerance, rtol=0)


@pytest.mark.usefixtures("block_elements")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_encoder_gives_the_same_with_and_without_a_gradient(dtype: torch.dtype) -> None:
    model: Any = small_model(initializer_range=0.1).to(dtype)
    tokens = packed(sequences(LENGTHS))
    trained = model.encoder.packed(tokens)
    assert trained.requires_grad
    with torch.no_grad():
        looked_at = model.encoder.packed(tokens)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    torch.testing.assert_close(trained.detach(), looked_at, atol=tolerance, rtol=0)
