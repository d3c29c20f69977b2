"""How well a classifier does on labelled rows: scores, each class, and the worst errors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from bertsmith.objectives.classification import class_details, classification_scores
from bertsmith.recipes.finetuning.data import LabelledRows

_MOST_ERRORS = 20


def classification_evaluation(
    log_probabilities: Float[np.ndarray, "rows labels"], data: LabelledRows, labels: Sequence[str]
) -> dict[str, Any]:
    """Everything that is found about predictions for some rows, as plain values.

    Returns:
        ``rows``, the scores of `classification_scores`, ``per_class``, ``labels``, ``confusion`` (true class by
        predicted one), and ``worst_errors``: wrong rows, those first whose wrong label is the most certain.
    """
    predicted = log_probabilities.argmax(1)
    return {
        "rows": len(data.rows),
        **classification_scores(log_probabilities, data.ids),
        **class_details(predicted, data.ids, labels),
        "labels": list(labels),
        "worst_errors": _worst_errors(log_probabilities, data, labels),
    }


def _worst_errors(
    log_probabilities: Float[np.ndarray, "rows labels"], data: LabelledRows, labels: Sequence[str]
) -> list[dict[str, Any]]:
    predicted: np.ndarray = log_probabilities.argmax(1)
    wrong = np.flatnonzero(predicted != data.ids)
    certainty = log_probabilities[wrong, predicted[wrong]]
    worst = wrong[np.argsort(-certainty, kind="stable")[:_MOST_ERRORS]]
    errors: list[dict[str, Any]] = []
    for number in worst.tolist():
        row = data.rows[number]
        pair = {} if row.pair is None else {"pair": row.pair}
        errors.append(
            {
                "place": row.place,
                "text": row.text,
                **pair,
                "label": labels[int(data.ids[number])],
                "predicted": labels[int(predicted[number])],
                "score": float(np.exp(log_probabilities[number, predicted[number]])),
            }
        )
    return errors
