"""How far probabilities may be taken at their word (Guo et al. 2017; Brier 1950)."""

import math

import numpy as np
from jaxtyping import Bool, Float, Int

from bertsmith.objectives.softmax import softmax

NUM_BINS = 15
_LOWEST_TEMPERATURE, _HIGHEST_TEMPERATURE = 0.01, 100.0
_HALVINGS = 50
_SMALLEST = 1e-300
"""Stands for a probability of 0, whose logarithm is infinite."""


def expected_calibration_error(
    confidence: Float[np.ndarray, " predictions"],
    right: Bool[np.ndarray, " predictions"],
    *,
    num_bins: int = NUM_BINS,
) -> float:
    """Mean distance between how sure predictions are and how often they are right (Guo et al. 2017, equation 3).

    Args:
        confidence: probability that each was given.
        right: whether it was right.
        num_bins: bins of equal width, open at their lower end and closed at their upper one. In each, the mean
            confidence is compared with the share that is right; bins weigh by their predictions.

    Returns:
        0 for perfect calibration, also of no predictions; 1 at worst.
    """
    if not len(confidence):
        return 0.0
    bins = np.clip(np.ceil(confidence.astype(np.float64) * num_bins).astype(int) - 1, 0, num_bins - 1)
    surplus = np.bincount(bins, weights=confidence - right, minlength=num_bins)
    return float(np.abs(surplus).sum() / len(confidence))


def top_label_calibration_error(
    probabilities: Float[np.ndarray, "rows labels"], truth: Int[np.ndarray, " rows"]
) -> float:
    """`expected_calibration_error` of the likeliest label of each row."""
    return expected_calibration_error(probabilities.max(1), probabilities.argmax(1) == truth)


def calibration(probabilities: Float[np.ndarray, "rows labels"], truth: Int[np.ndarray, " rows"]) -> dict[str, float]:
    """What an evaluation tells of calibration beside the error itself; nothing of it is applied to the model.

    Returns:
        ``brier_score``; ``temperature``, the one with the lowest loss; ``loss_at_temperature``, in nats.
    """
    temperature, loss = best_temperature(probabilities, truth)
    return {
        "brier_score": brier_score(probabilities, truth),
        "temperature": temperature,
        "loss_at_temperature": loss,
    }


def brier_score(probabilities: Float[np.ndarray, "rows labels"], truth: Int[np.ndarray, " rows"]) -> float:
    """Mean over rows of the squared distance between probabilities and truth, summed over labels (Brier 1950).

    Returns:
        0 for certainty that is right, 2 for certainty that is wrong.
    """
    return float(np.square(probabilities - np.eye(probabilities.shape[1])[truth]).sum(1).mean())


def best_temperature(
    probabilities: Float[np.ndarray, "rows labels"], truth: Int[np.ndarray, " rows"]
) -> tuple[float, float]:
    """The temperature by which scores would have to be divided for the lowest loss (Guo et al. 2017, section 4.2).

    Args:
        probabilities: as the model gives them.
        truth: the true label of each row.

    Returns:
        the temperature, above 1 for a model that is too sure of itself, between 0.01 and 100, the bounds included; and
        the mean loss in nats with it.
    """
    logits = np.log(np.maximum(probabilities.astype(np.float64), _SMALLEST))
    rows = np.arange(len(truth))
    if np.ptp(logits, axis=1).max() == 0:  # Every temperature is as good.
        return 1.0, math.log(logits.shape[1])
    # The loss is convex in one over the temperature, and lowest where its slope changes sign.
    low, high = 1 / _HIGHEST_TEMPERATURE, 1 / _LOWEST_TEMPERATURE
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        expected = (softmax(middle * logits) * logits).sum(1)
        # Where everything is right, the slope of a high one is 0 in floating point.
        falls = (expected - logits[rows, truth]).mean() <= 0
        low, high = (middle, high) if falls else (low, middle)
    loss = -np.log(np.maximum(softmax(low * logits)[rows, truth], _SMALLEST)).mean()
    return 1 / low, float(loss)
