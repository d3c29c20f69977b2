"""Correlation coefficients: equal values, infinite ones, and what is no number."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import spearmanr

from bertsmith.objectives.correlation import pearson, ranks, spearman
from bertsmith.objectives.embedding import pair_cosines


def test_spearman_is_the_reference_implementations_ties_included() -> None:
    stream = np.random.default_rng(0)
    for _ in range(20):
        first, second = stream.integers(0, 6, 30).astype(float), stream.normal(size=30)
        assert spearman(first, second) == pytest.approx(spearmanr(first, second)[0], abs=1e-12)
    assert spearman(np.ones(5), np.arange(5.0)) == 0.0


def test_equal_numbers_share_the_mean_of_their_ranks() -> None:
    assert ranks(np.array([0.5, 0.1, 0.5, 0.9])).tolist() == [2.5, 1.0, 2.5, 4.0]


@pytest.mark.parametrize("measure", [pearson, spearman])
def test_what_is_no_number_has_no_correlation(measure: Callable[[np.ndarray, np.ndarray], float]) -> None:
    broken, whole = np.array([np.nan, np.nan, 2.0]), np.array([1.0, 2.0, 3.0])
    assert np.isnan([measure(broken, whole), measure(whole, broken), measure(broken, np.ones(3))]).all()
    cosines = pair_cosines(np.array([[np.nan, 0], [1, 0], [1, 1], [1, 0]], np.float32), np.array([0, 2]))
    assert np.isnan(measure(cosines, np.array([1.0, 2.0])))


def test_an_infinite_number_has_a_rank_and_no_distance() -> None:
    first, second = np.array([np.inf, 1.0, 2.0]), np.array([3.0, 1.0, 2.0])
    assert spearman(first, second) == pytest.approx(1.0)
    assert np.isnan(pearson(first, second))
