"""Classification of texts and pairs: loss, decoding and metrics (Devlin et al. 2019, section 4.1)."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from bertsmith.batches.batch import Batch
from bertsmith.model.heads import Model
from bertsmith.model.packed import PackedTokens
from bertsmith.objectives.calibration import top_label_calibration_error
from bertsmith.objectives.report import Counts, LossReport

TERM = "classify"
_SMALLEST = np.finfo(np.float64).tiny
_NOTHING: Any = 0
"""A score whose denominator is empty. (scikit-learn's annotations know only the words for it.)"""


@dataclass(frozen=True)
class Classification:
    """Mean negative log-probability of the true class, in nats."""

    class_weights: tuple[float, ...] = ()
    """Weight of each class in the loss; all 1 where none are given. The mean is over rows, whatever their weights, so
    that parts of a batch add up; weights should therefore be 1 on the average row."""

    @property
    def terms(self) -> tuple[str, ...]:
        """One term."""
        return (TERM,)

    def counts(self, batch: Batch) -> Counts:
        """Number of sequences."""
        return {TERM: batch.packed.num_sequences}

    def report(self, model: Model, batch: Batch, *, with_hits: bool) -> LossReport:
        """Loss and hits of a batch."""
        if model.classifier is None or batch.labels is None:
            raise ValueError(
                "Classification needs a classifier and labels. Received: a model or batch without them. "
                "Build the model with heads.labels=(…) and the batch from labelled sequences."
            )
        logits = class_logits(model, batch.packed)
        weights = logits.new_tensor(self.class_weights) if self.class_weights else None
        total = functional.cross_entropy(logits, batch.labels, weight=weights, reduction="sum")
        hits = {TERM: (logits.argmax(-1) == batch.labels).sum()} if with_hits else {}
        return LossReport({TERM: total}, {TERM: len(batch.labels)}, hits)


def class_logits(model: Model, packed: PackedTokens) -> Float[Tensor, "sequences labels"]:
    """Scores of each class before softmax, in fp32 at least."""
    logits = model.classify(model.encoder.packed(packed), packed)
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def classification_scores(
    probabilities: Float[np.ndarray, "rows labels"], truth: Int[np.ndarray, " rows"]
) -> dict[str, float]:
    """How well classes were told.

    Returns:
        ``loss`` in nats; ``accuracy``; ``macro_f1``, the mean over the classes that stand in the truth or were
        predicted; ``matthews``, Matthews' correlation coefficient, 0 where it is not defined; ``calibration_error``,
        how far the probability of the likeliest class is from how often it is right.
    """
    from sklearn import metrics  # It takes a second to load, and only this needs it.

    predicted = probabilities.argmax(1)
    with warnings.catch_warnings():
        # Where all rows are of one class and were taken for it, the coefficient is 0, and there is nothing to warn of.
        warnings.simplefilter("ignore", UserWarning)
        matthews = metrics.matthews_corrcoef(truth, predicted)
    return {
        "loss": label_loss(probabilities, truth),
        **label_scores(predicted, truth),
        "matthews": float(matthews),
        "calibration_error": top_label_calibration_error(probabilities, truth),
    }


def label_scores(predicted: Int[np.ndarray, " units"], truth: Int[np.ndarray, " units"]) -> dict[str, float]:
    """``accuracy`` over rows or words, and ``macro_f1``, the mean over the labels that stand in the truth or were
    predicted."""
    from sklearn import metrics

    return {
        "accuracy": float((predicted == truth).mean()),
        "macro_f1": float(metrics.f1_score(truth, predicted, average="macro", zero_division=_NOTHING)),
    }


def label_loss(probabilities: Float[np.ndarray, "units labels"], truth: Int[np.ndarray, " units"]) -> float:
    """Mean negative log-probability of the true labels, in nats."""
    of_truth = probabilities[np.arange(len(truth)), truth]
    return float(-np.log(np.maximum(of_truth, _SMALLEST)).mean())


def class_details(
    predicted: Int[np.ndarray, " rows"], truth: Int[np.ndarray, " rows"], labels: Sequence[str]
) -> dict[str, Any]:
    """Precision, recall, F1 and rows of each class under ``per_class``, and the counts of true class by predicted one.

    Returns:
        plain values; in ``confusion``, row i column j counts rows of class i that were taken for class j, in the order
        of the labels.
    """
    from sklearn import metrics

    places = list(range(len(labels)))
    found = metrics.precision_recall_fscore_support(truth, predicted, labels=places, zero_division=_NOTHING)
    precision, recall, f1, support = (np.asarray(score) for score in found)
    per_class = {
        name: {
            "precision": float(precision[place]),
            "recall": float(recall[place]),
            "f1": float(f1[place]),
            "rows": int(support[place]),
        }
        for place, name in enumerate(labels)
    }
    return {"per_class": per_class, "confusion": metrics.confusion_matrix(truth, predicted, labels=places).tolist()}


def best_class(probabilities: Float[np.ndarray, " labels"], labels: Sequence[str]) -> tuple[str, dict[str, float]]:
    """The likeliest label, and the probability of each, the likeliest first."""
    order = np.argsort(-probabilities, kind="stable")
    return labels[int(order[0])], {labels[int(place)]: float(probabilities[place]) for place in order}
