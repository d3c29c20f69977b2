"""Scores of regression, labels and choices are those of scikit-learn and scipy."""

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn import metrics

from bertsmith.objectives.calibration import (
    best_temperature,
    brier_score,
    expected_calibration_error,
    top_label_calibration_error,
)
from bertsmith.objectives.choice import choice_metrics
from bertsmith.objectives.correlation import pearson, spearman
from bertsmith.objectives.multilabel import label_details, multilabel_scores
from bertsmith.objectives.regression import regression_scores
from bertsmith.objectives.softmax import softmax

SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
def test_regression(seed: int) -> None:
    stream = np.random.default_rng(seed)
    # Rounded, so that there are equal values, whose ranks are shared.
    truth = stream.normal(3, 2, 80).round(seed % 3)
    found = (truth + stream.normal(0, 1, 80)).round(seed % 3)
    scores = regression_scores(found, truth)
    assert scores["mse"] == pytest.approx(metrics.mean_squared_error(truth, found))
    assert scores["mae"] == pytest.approx(metrics.mean_absolute_error(truth, found))
    assert scores["r2"] == pytest.approx(metrics.r2_score(truth, found))
    assert scores["pearson"] == pytest.approx(stats.pearsonr(found, truth).statistic)
    assert scores["spearman"] == pytest.approx(stats.spearmanr(found, truth).statistic)
    assert pearson(-found, truth) == pytest.approx(stats.pearsonr(-found, truth).statistic)
    assert spearman(-found, truth) == pytest.approx(stats.spearmanr(-found, truth).statistic)


@pytest.mark.parametrize("seed", SEEDS)
def test_labels(seed: int) -> None:
    stream = np.random.default_rng(seed)
    truth = stream.uniform(0, 1, (60, 5)) < 0.3
    truth[0] = True  # Each label stands somewhere, as scikit-learn's mean takes all of them.
    truth[1] = False
    probabilities = np.clip(0.4 * truth + stream.uniform(0, 0.6, (60, 5)), 1e-6, 1 - 1e-6)
    thresholds = stream.uniform(0.2, 0.8, 5)
    scores = multilabel_scores(probabilities, truth, thresholds.tolist())
    for prefix, given in (("", probabilities >= 0.5), ("tuned_", probabilities >= thresholds)):
        assert scores[f"{prefix}micro_f1"] == pytest.approx(metrics.f1_score(truth, given, average="micro"))
        assert scores[f"{prefix}macro_f1"] == pytest.approx(metrics.f1_score(truth, given, average="macro"))
        assert scores[f"{prefix}subset_accuracy"] == pytest.approx(metrics.accuracy_score(truth, given))
        assert scores[f"{prefix}hamming_loss"] == pytest.approx(metrics.hamming_loss(truth, given))
        expected = metrics.precision_recall_fscore_support(truth, given, zero_division=0)
        for place, found in enumerate(label_details(given, truth, tuple("abcde")).values()):
            assert list(found.values()) == pytest.approx([float(np.asarray(score)[place]) for score in expected])
    ranking = metrics.label_ranking_average_precision_score(truth, probabilities)
    assert scores["label_ranking_average_precision"] == pytest.approx(ranking)
    losses = [metrics.log_loss(truth[:, label], probabilities[:, label]) for label in range(5)]
    assert scores["loss"] == pytest.approx(np.mean(losses))


@pytest.mark.parametrize("seed", SEEDS)
def test_choices(seed: int) -> None:
    stream = np.random.default_rng(seed)
    logits, right = stream.normal(0, 2, (40, 4)), stream.integers(0, 4, 40)
    probabilities = [softmax(row) for row in logits]
    scores = choice_metrics(probabilities, right)
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(right, logits.argmax(1)))
    assert scores["loss"] == pytest.approx(metrics.log_loss(right, np.stack(probabilities), labels=range(4)))


@pytest.mark.parametrize("seed", SEEDS)
def test_calibration(seed: int) -> None:
    stream = np.random.default_rng(seed)
    scores = stream.normal(0, 2, (500, 3))
    probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    truth = stream.integers(0, 3, 500)
    confidence, right = probabilities.max(1), probabilities.argmax(1) == truth
    edges = np.linspace(0, 1, 16)
    means, _, _ = stats.binned_statistic(confidence, confidence, bins=edges)
    shares, _, _ = stats.binned_statistic(confidence, right, bins=edges)
    counts, _, _ = stats.binned_statistic(confidence, right, statistic="count", bins=edges)
    filled = counts > 0
    expected = (counts * np.abs(means - shares))[filled].sum() / len(truth)
    assert top_label_calibration_error(probabilities, truth) == pytest.approx(expected)
    assert expected_calibration_error(confidence, right) == pytest.approx(expected)
    one_hot = np.eye(3)[truth]
    parts = [metrics.brier_score_loss(one_hot[:, label], probabilities[:, label]) for label in range(3)]
    assert brier_score(probabilities, truth) == pytest.approx(sum(parts))

    def loss(temperature: float) -> float:
        sharpened = np.exp(scores / temperature)
        return metrics.log_loss(truth, sharpened / sharpened.sum(1, keepdims=True), labels=range(3))

    found = optimize.minimize_scalar(loss, bounds=(0.01, 100), method="bounded", options={"xatol": 1e-8})
    temperature, lowest = best_temperature(probabilities, truth)
    assert lowest == pytest.approx(found.fun, abs=1e-9)
    assert temperature == pytest.approx(found.x, rel=1e-2)
