"""Calibration: bins by hand, bounds, the temperature that makes the loss lowest."""

import math

import numpy as np
import pytest

from bertsmith.objectives.calibration import (
    best_temperature,
    brier_score,
    calibration,
    expected_calibration_error,
    top_label_calibration_error,
)


def _softmax(scores: np.ndarray) -> np.ndarray:
    exponentials = np.exp(scores - scores.max(1, keepdims=True))
    return exponentials / exponentials.sum(1, keepdims=True)


def test_bins_by_hand() -> None:
    # Two bins: (0, 0.5] holds 0.2 and 0.5, (0.5, 1] holds 0.6, 0.8 and 1.0.
    confidence = np.array([0.2, 0.5, 0.6, 0.8, 1.0])
    right = np.array([False, True, True, False, True])
    first, second = abs(0.7 / 2 - 1 / 2), abs(2.4 / 3 - 2 / 3)
    assert expected_calibration_error(confidence, right, num_bins=2) == pytest.approx(2 / 5 * first + 3 / 5 * second)


def test_there_are_fifteen_bins_of_equal_width() -> None:
    middles = (np.arange(15) + 0.5) / 15
    right = np.arange(15) % 2 == 0
    expected = np.abs(middles - right).mean()
    assert expected_calibration_error(middles, right) == pytest.approx(expected)


def test_perfect_and_worst() -> None:
    sure = np.ones(4)
    assert expected_calibration_error(sure, np.ones(4, bool)) == 0.0
    assert expected_calibration_error(sure, np.zeros(4, bool)) == 1.0
    assert expected_calibration_error(np.zeros(4), np.zeros(4, bool)) == 0.0
    assert expected_calibration_error(np.empty(0), np.empty(0, bool)) == 0.0
    stream = np.random.default_rng(0)
    confidence = stream.uniform(0, 1, 200_000)
    assert expected_calibration_error(confidence, stream.uniform(0, 1, 200_000) < confidence) < 0.01


def test_the_likeliest_label_is_what_counts() -> None:
    probabilities = np.array([[0.1, 0.6, 0.3], [0.5, 0.25, 0.25]])
    assert top_label_calibration_error(probabilities, np.array([1, 2])) == pytest.approx((0.4 + 0.5) / 2)


def test_brier_by_hand() -> None:
    probabilities = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    assert brier_score(probabilities, np.array([0, 0, 0])) == pytest.approx((0.5 + 0.0 + 2.0) / 3)


@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
def test_the_temperature_undoes_what_scores_were_multiplied_by(factor: float) -> None:
    stream = np.random.default_rng(1)
    scores = stream.normal(0, 2, (20_000, 4))
    truth = (np.cumsum(_softmax(scores), 1) < stream.uniform(0, 1, (20_000, 1))).sum(1)
    temperature, loss = best_temperature(_softmax(factor * scores), truth)
    assert temperature == pytest.approx(factor, rel=0.05)
    assert loss == pytest.approx(-np.log(_softmax(scores)[np.arange(20_000), truth]).mean(), abs=0.01)


def test_no_other_temperature_has_a_lower_loss() -> None:
    stream = np.random.default_rng(2)
    scores, truth = stream.normal(0, 3, (200, 3)), stream.integers(0, 3, 200)
    temperature, loss = best_temperature(_softmax(scores), truth)

    def at(one: float) -> float:
        return float(-np.log(np.maximum(_softmax(scores / one)[np.arange(200), truth], 1e-300)).mean())

    assert loss == pytest.approx(at(temperature), rel=1e-9)
    assert all(loss <= at(one) + 1e-12 for one in np.geomspace(0.01, 100, 200))


def test_where_sharper_is_always_better_the_bound_is_given() -> None:
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8]])
    assert best_temperature(probabilities, np.array([0, 1]))[0] == pytest.approx(0.01)
    assert best_temperature(probabilities, np.array([1, 0]))[0] == pytest.approx(100)
    assert best_temperature(np.full((3, 2), 0.5), np.array([0, 1, 1])) == (1.0, math.log(2))
    certain = np.array([[1.0, 0.0], [1.0, 0.0]])
    found = calibration(certain, np.array([0, 1]))
    assert all(math.isfinite(value) for value in found.values())
    assert set(found) == {"brier_score", "temperature", "loss_at_temperature"}
