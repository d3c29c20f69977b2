"""Any number of labels for a text: loss, thresholds, decoding and metrics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch.nn import functional

from bertsmith.batches.batch import Batch
from bertsmith.model.heads import Model
from bertsmith.objectives.calibration import expected_calibration_error
from bertsmith.objectives.classification import class_logits
from bertsmith.objectives.report import Counts, LossReport
from bertsmith.objectives.thresholds import HALF, middle_between

TERM = "multilabel"


@dataclass(frozen=True)
class Multilabelling:
    """Binary cross-entropy in nats, the mean over labels and rows."""

    label_weights: tuple[tuple[float, ...], ...] = ()
    """For each label, its weight in the loss where a row lacks it and where a row has it; all 1 where none are given.
    The mean is over rows and labels, whatever their weights, so that parts of a batch add up."""

    @property
    def terms(self) -> tuple[str, ...]:
        """One term."""
        return (TERM,)

    def counts(self, batch: Batch) -> Counts:
        """Number of sequences."""
        return {TERM: batch.packed.num_sequences}

    def report(self, model: Model, batch: Batch, *, with_hits: bool) -> LossReport:
        """Loss of a batch; a hit is a sequence for which every label is told rightly at 0.5."""
        if model.classifier is None or batch.labels is None:
            raise ValueError(
                "Multilabelling needs a classifier and labels. Received: a model or batch without them. "
                'Build the model with heads.task="multilabel" and heads.labels=(…), and the batch from labelled '
                "sequences."
            )
        logits = class_logits(model, batch.packed)
        wanted = batch.labels.to(logits.dtype)  # Integers are cast.
        weights = None
        if self.label_weights:
            lacking, having = logits.new_tensor(self.label_weights).T
            weights = torch.where(wanted > HALF, having, lacking)
        total = functional.binary_cross_entropy_with_logits(logits, wanted, weight=weights, reduction="sum")
        hits = {TERM: ((logits >= 0) == (wanted > HALF)).all(-1).sum()} if with_hits else {}
        return LossReport({TERM: total / wanted.shape[1]}, {TERM: len(wanted)}, hits)


def label_probabilities(logits: Float[np.ndarray, "*rows labels"]) -> Float[np.ndarray, "*rows labels"]:
    """Probability of each label by itself, in double precision."""
    # The larger of the two exponents is never positive, so that neither overflows.
    shrunk = np.exp(-np.abs(logits.astype(np.float64)))
    return np.where(logits >= 0, 1.0, shrunk) / (1.0 + shrunk)


def tuned_thresholds(
    probabilities: Float[np.ndarray, "rows labels"], truth: Bool[np.ndarray, "rows labels"]
) -> tuple[float, ...]:
    """For each label the threshold with the best F1 on some rows; a label counts as given from it on.

    0.5 stays where none is better, and for a label that no row has. Of several that are as good, the one nearest to 0.5
    is taken, and it lies in the middle of the gap between two scores.
    """
    return tuple(_threshold(probabilities[:, label], truth[:, label]) for label in range(truth.shape[1]))


def given_labels(
    probabilities: Float[np.ndarray, "*rows labels"], thresholds: Sequence[float]
) -> Bool[np.ndarray, "*rows labels"]:
    """Which labels count as given; at 0.5 where there are no thresholds."""
    return probabilities >= (np.array(thresholds) if len(thresholds) else HALF)


def multilabel_scores(
    probabilities: Float[np.ndarray, "rows labels"],
    truth: Bool[np.ndarray, "rows labels"],
    thresholds: Sequence[float] = (),
) -> dict[str, float]:
    """How well labels were told.

    Returns:
        ``loss``, the mean binary cross-entropy over rows and labels, in nats; ``micro_f1``, over all decisions;
        ``macro_f1``, the mean over the labels that stand in the truth or were given; ``subset_accuracy``, the share of
        rows with every label right; ``hamming_loss``, the share of wrong decisions, these at 0.5; with thresholds the
        same four at them as ``tuned_…``; ``label_ranking_average_precision``; and ``calibration_error`` over all
        decisions.
    """
    from sklearn import metrics  # It takes a second to load, and only this needs it.

    of_truth = np.where(truth, probabilities, 1 - probabilities)
    scores = {
        "loss": float(-np.log(np.maximum(of_truth, np.finfo(np.float64).tiny)).mean()),
        **_set_scores(given_labels(probabilities, ()), truth),
    }
    if len(thresholds):
        tuned = _set_scores(given_labels(probabilities, thresholds), truth)
        scores |= {f"tuned_{name}": score for name, score in tuned.items()}
    ranking = metrics.label_ranking_average_precision_score(truth.astype(int), probabilities)
    return scores | {
        "label_ranking_average_precision": float(ranking),
        "calibration_error": expected_calibration_error(probabilities.ravel(), truth.ravel()),
    }


def label_details(
    given: Bool[np.ndarray, "rows labels"], truth: Bool[np.ndarray, "rows labels"], labels: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Precision, recall, F1 and rows of each label, as plain values; 0 where one is not defined."""
    right, precision, recall = (given & truth).sum(0), given.sum(0), truth.sum(0)
    return {
        name: {
            "precision": float(right[place] / max(precision[place], 1)),
            "recall": float(right[place] / max(recall[place], 1)),
            "f1": float(2 * right[place] / max(precision[place] + recall[place], 1)),
            "rows": int(recall[place]),
        }
        for place, name in enumerate(labels)
    }


def decoded_labels(
    probabilities: Float[np.ndarray, " labels"], labels: Sequence[str], thresholds: Sequence[float]
) -> tuple[list[str], dict[str, float]]:
    """The labels that are given, and the probability of each, the likeliest first in both."""
    order: list[int] = np.argsort(-probabilities, kind="stable").tolist()
    given = given_labels(probabilities, thresholds)
    chosen = [labels[place] for place in order if given[place]]
    return chosen, {labels[place]: float(probabilities[place]) for place in order}


def _set_scores(given: Bool[np.ndarray, "rows labels"], truth: Bool[np.ndarray, "rows labels"]) -> dict[str, float]:
    right, told = (given & truth).sum(0), given.sum(0) + truth.sum(0)
    occurring = told > 0
    each = 2 * right[occurring] / told[occurring]
    return {
        "micro_f1": float(2 * right.sum() / max(told.sum(), 1)),
        "macro_f1": float(each.mean()) if len(each) else 0.0,
        "subset_accuracy": float((given == truth).all(1).mean()),
        "hamming_loss": float((given != truth).mean()),
    }


def _threshold(probabilities: Float[np.ndarray, " rows"], truth: Bool[np.ndarray, " rows"]) -> float:
    having = int(truth.sum())
    if not having:
        return HALF
    order = np.argsort(-probabilities, kind="stable")
    scores, right = probabilities[order], np.cumsum(truth[order])
    counts = np.arange(1, len(scores) + 1)
    # Rows of equal score are given the label together.
    below = np.append(scores[1:], 0.0)
    places = np.flatnonzero(scores > below)
    f1 = 2 * right[places] / (counts[places] + having)
    if not f1.any():
        return HALF
    best = places[f1 >= f1.max() * (1 - 1e-12)]
    choices = [_between(float(below[place]), float(scores[place])) for place in best]
    return min(choices, key=lambda threshold: abs(threshold - HALF))


def _between(low: float, high: float) -> float:
    """A threshold above `low` and not above `high`: 0.5 if it lies there, else the middle."""
    return HALF if low < HALF <= high else middle_between(low, high, end=high)
