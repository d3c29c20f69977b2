"""Attention in blocks gives what attention at once gives, forward and backward, with and without dropout."""

from typing import Any

import pytest
import torch
from small_models import LENGTHS, packed, sequences, small_model
from torch import Tensor

from bertsmith.model import attention_reach
from bertsmith.model import blocked_attention as module
from bertsmith.model.attention_reach import Reach
from bertsmith.model.blocked_attention import blocked_attention

REACHES = [Reach(), Reach(causal=True), Reach(half_window=1), Reach(half_window=2, causal=True)]


@pytest.fixture(params=[1, 100, 1 << 19], ids=["one sequence a block", "some", "all in one"])
def block_elements(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(module, "_BLOCK_ELEMENTS", request.param)
    return request.param


@pytest.fixture(params=[64, 2], ids=["one tile", "tiles of two queries"])
def tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(attention_reach, "_LEAST_QUERIES", request.param)
    monkeypatch.setattr(attention_reach, "_LARGEST_TILE", 1)
    return request.param


def random_block(dtype: torch.dtype = torch.float64, longest: int = 4) -> tuple[Tensor, Tensor]:
    """Query, key and value of five sequences, and a mask that leaves each a length of its own."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(5, longest, 3, 2, 3, generator=generator, dtype=torch.float64).to(dtype)
    real = torch.arange(longest) < torch.tensor([longest, 1, 3, 2, longest])[:, None]
    return rows, real[:, None, None, :]


def by_the_book(rows: Tensor, mask: Tensor | None, reach: Reach = Reach()) -> Tensor:
    query, key, value = rows.unbind(2)
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) / rows.shape[-1] ** 0.5
    unseen = torch.finfo(scores.dtype).min  # And no infinity: padding may have nothing real within reach.
    if mask is not None:
        scores = scores.masked_fill(~mask, unseen)
    place = torch.arange(rows.shape[1])
    ahead = place - place[:, None]
    if reach.causal:
        scores = scores.masked_fill(ahead > 0, unseen)
    if reach.half_window is not None:
        scores = scores.masked_fill(ahead.abs() > reach.half_window, unseen)
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), value)


@pytest.mark.usefixtures("block_elements", "tiles")
@pytest.mark.parametrize("reach", REACHES, ids=str)
@pytest.mark.parametrize("masked", [True, False])
def test_blocks_give_what_the_book_gives(masked: bool, reach: Reach) -> None:
    rows, mask = random_block(longest=7)
    # What padding finds is nobody's matter: there may be nothing real within its reach.
    real = mask[:, 0, 0] if masked else torch.ones(5, 7, dtype=torch.bool)
    given = blocked_attention(rows, mask if masked else None, 0.0, reach)
    expected = by_the_book(rows, mask if masked else None, reach)
    torch.testing.assert_close(given[real], expected[real], atol=1e-12, rtol=0)
    assert torch.isfinite(given).all()


@pytest.mark.usefixtures("block_elements", "tiles")
@pytest.mark.parametrize("reach", REACHES, ids=str)
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_the_backward_pass_is_the_derivative_of_the_forward_pass(masked: bool, dropout: float, reach: Reach) -> None:
    rows, mask = random_block(longest=5)
    # Nobody reads what padding finds, so that no gradient ever comes from there.
    read = mask[:, 0, 0] if masked else torch.ones(5, 5, dtype=torch.bool)

    def attend(x: Tensor) -> Tensor:
        torch.manual_seed(3)  # The same weights are dropped at every call.
        return blocked_attention(x, mask if masked else None, dropout, reach)[read]

    assert torch.autograd.gradcheck(attend, rows.requires_grad_(), fast_mode=True)


@pytest.mark.parametrize("reach", [Reach(), Reach(causal=True), Reach(half_window=64)], ids=str)
def test_a_long_sequence_in_tiles_gives_what_the_book_gives_both_ways(
    reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_reach, "_LARGEST_TILE", 2 * 300 * 64)
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(2, 300, 3, 2, 4, generator=generator, dtype=torch.float64)
    mask = (torch.arange(300) < torch.tensor([300, 231])[:, None])[:, None, None]
    assert len(list(reach.tiles(300, 2))) > 2
    gradients = []
    for attend in (lambda x: blocked_attention(x, mask, 0.0, reach), lambda x: by_the_book(x, mask, reach)):
        leaf = rows.clone().requires_grad_()
        context = attend(leaf)[mask[:, 0, 0]]
        (context * torch.linspace(-1, 2, 4, dtype=torch.float64)).pow(2).sum().backward()
        gradients.append((context.detach(), leaf.grad))
    for given, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(given, expected, atol=1e-11, rtol=0)


@pytest.mark.usefixtures("block_elements", "tiles")
@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_dropout_drops_its_share_of_the_weights_and_raises_the_others(reach: Reach) -> None:
    # Values are the unit vectors, so that what comes out are the weights themselves.
    longest, rate = 6, 0.3
    rows = torch.randn(300, longest, 3, 1, longest, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    rows[:, :, 2] = torch.eye(longest, dtype=torch.float64)[:, None]
    whole = by_the_book(rows, None, reach)
    torch.manual_seed(0)
    given = blocked_attention(rows, None, rate, reach)
    kept = given != 0
    torch.testing.assert_close(given, whole * kept / (1 - rate), atol=1e-12, rtol=0)
    assert kept[whole > 0].double().mean().item() == pytest.approx(1 - rate, abs=0.02)


@pytest.mark.usefixtures("block_elements")
def test_padding_gets_no_gradient_and_gives_none() -> None:
    rows, mask = random_block()
    rows.requires_grad_()
    real = mask[:, 0, 0]
    blocked_attention(rows, mask, 0.0, Reach())[real].pow(2).sum().backward()
    assert rows.grad is not None
    assert not rows.grad[~real].any()
    assert rows.grad[real].any()


@pytest.mark.usefixtures("block_elements")
def test_dropout_keeps_the_mean_and_drops_its_share() -> None:
    # All weights are one fourth and all values one, so that the output counts the weights that stayed.
    rows = torch.zeros(2000, 4, 3, 1, 1, dtype=torch.float64)
    rows[:, :, 2] = 1.0
    torch.manual_seed(0)
    stayed = blocked_attention(rows, None, 0.3, Reach()).flatten() * 4 * 0.7
    assert torch.allclose(stayed, stayed.round())
    assert stayed.mean().item() / 4 == pytest.approx(0.7, abs=0.01)
    assert set(stayed.round().int().tolist()) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_lower_precision_stays_finite_and_near(dtype: torch.dtype) -> None:
    rows, mask = random_block(dtype)
    rows.requires_grad_()
    context = blocked_attention(rows, mask, 0.0, Reach())
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
