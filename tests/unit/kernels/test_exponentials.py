"""Sums and gradients of exponentials over a block of scores, against float64."""

import pytest
import torch
from exact_results import TYPES, assert_rounded, random
from torch import Tensor

from bertsmith.kernels.vocabulary import add_exponential_sums, to_exponential_gradients

SHAPES = [(1, 1), (7, 3), (33, 17), (257, 65), (101, 301), (0, 5), (5, 0)]
"""Tokens of the vocabulary and rows of the batch; the largest takes several threads."""
LARGEST_CARED_FOR = 1e35
"""A sum beyond it tells the loss that exponentials leave fp32's range."""


def made_block(tokens: int, rows: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, a weight for each token and one for each row."""
    scores = (2 * random(tokens, rows)).to(dtype)
    return scores, random(tokens, seed=1).exp(), random(rows, seed=2).exp() / max(1, tokens)


def roundings(way: str) -> int:
    """How often a bf16 number is rounded on its way: torch keeps what lies between two operations."""
    return 1 if way == "kernels" else 4


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_are_added_to_those_of_earlier_blocks(way: str, shape: tuple[int, int], dtype: torch.dtype) -> None:
    scores, weights, _ = made_block(*shape, dtype)
    earlier = random(shape[1], seed=3).exp()
    sums, before = earlier.clone(), scores.clone()
    add_exponential_sums(scores, weights, sums)
    expected = earlier.double() + weights.double() @ scores.double().exp()
    torch.testing.assert_close(sums.double(), expected, rtol=2e-6, atol=0)
    assert torch.equal(scores, before)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_scores_become_their_gradients_and_each_token_gets_its_sum(
    way: str, shape: tuple[int, int], dtype: torch.dtype
) -> None:
    scores, weights, row_weights = made_block(*shape, dtype)
    exact = scores.double().exp() * weights.double()[:, None] * row_weights.double()
    totals = to_exponential_gradients(scores, weights, row_weights)
    slack = 2e-6 * float(exact.max()) if exact.numel() else 0.0
    assert_rounded(scores, exact, within=slack, roundings=roundings(way))
    rough = dtype == torch.bfloat16 and way == "torch"
    torch.testing.assert_close(totals.double(), exact.sum(1), rtol=1e-2 if rough else 2e-6, atol=0)


@pytest.mark.usefixtures("way")
def test_float64_is_exact() -> None:
    scores, weights, row_weights = (part.double() for part in made_block(33, 17, torch.float32))
    exact = scores.exp() * weights[:, None]
    sums = torch.ones(17, dtype=torch.float64)
    add_exponential_sums(scores, weights, sums)
    torch.testing.assert_close(sums, 1 + exact.sum(0), rtol=1e-14, atol=0)
    totals = to_exponential_gradients(scores, weights, row_weights)
    torch.testing.assert_close(scores, exact * row_weights, rtol=1e-14, atol=0)
    torch.testing.assert_close(totals, scores.sum(1), rtol=1e-14, atol=0)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("score", [89.0, 1e3, 1e30, torch.inf], ids=str)
def test_a_large_score_gives_a_finite_number_that_the_loss_does_not_trust(score: float, dtype: torch.dtype) -> None:
    scores, sums = torch.full((1, 35), score, dtype=dtype), torch.zeros(35)
    add_exponential_sums(scores, torch.ones(1), sums)
    assert sums.isfinite().all()
    assert (sums > LARGEST_CARED_FOR).all()
    totals = to_exponential_gradients(scores, torch.ones(1), torch.full((35,), 1e-3))
    assert scores.isfinite().all()
    assert totals.isfinite().all()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("score", [-89.0, -1e3, -1e30, -torch.inf], ids=str)
def test_a_score_far_below_adds_nothing_that_is_seen(score: float, dtype: torch.dtype) -> None:
    scores, sums = torch.full((9, 35), score, dtype=dtype), torch.full((35,), 1e-25)
    add_exponential_sums(scores, torch.ones(9), sums)
    assert torch.equal(sums, torch.full((35,), 1e-25))
    totals = to_exponential_gradients(scores, torch.ones(9), torch.ones(35))
    assert (scores.abs() < 1e-37).all()
    assert (totals.abs() < 1e-35).all()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_score_that_is_no_number_shows_in_its_own_sum_alone(dtype: torch.dtype) -> None:
    scores, weights, row_weights = made_block(20, 35, dtype)
    scores[3, 30] = torch.nan
    sums = torch.zeros(35)
    add_exponential_sums(scores, weights, sums)
    assert sums.isnan().nonzero().tolist() == [[30]]
    totals = to_exponential_gradients(scores, weights, row_weights)
    assert scores.isnan().nonzero().tolist() == [[3, 30]]
    assert totals.isnan().nonzero().tolist() == [[3]]
