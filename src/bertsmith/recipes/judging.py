"""Judging a model in int8 by what its model predicts on a person's own texts."""

from collections.abc import Sequence
from typing import Any

from bertsmith.foundation.errors import InputError
from bertsmith.inference.agreement import Agreement, Values, agreement, least_agreement, refuse_agreement
from bertsmith.inference.engine import Job
from bertsmith.inference.fill import FillPredictor
from bertsmith.inference.predictor import Predictor

AnyPredictor = FillPredictor | Predictor[Any, Any, Any]
MOST_JUDGED = 256
"""Texts by which a model is judged before it predicts: enough to tell a share of 0.97, in a second or two."""


def judge(exact: AnyPredictor, other: AnyPredictor, items: Sequence[Any]) -> Agreement:
    """How far a model in int8 predicts what its model predicts.

    Args:
        exact: predicts by the model itself.
        other: by the one that is judged.
        items: texts, or whatever the predictors take, of which the first ones that can be used are.

    Raises:
        InputError: if no item can be used, or they agree too little.
    """
    usable = usable_items(exact, items[:MOST_JUDGED])
    if not usable:
        raise InputError(
            "A model in int8 must be judged by texts that it is used on",
            "none",
            "Give some, in Python as judge_on=[…], or take another precision.",
        )
    job: Job = "fill" if isinstance(exact, FillPredictor) else exact.task
    found = agreement(job, predicted(exact, usable), predicted(other, usable))
    refuse_agreement(found, least_agreement(job), do="Use --precision bf16 or fp32 on these texts.")
    return found


def predicted(predictor: AnyPredictor, items: Sequence[Any]) -> list[Values]:
    """Predictions as plain values; of a mask its likeliest piece."""
    if not isinstance(predictor, FillPredictor):
        return [prediction.values for prediction in predictor(list(items))]
    best = [mask.predictions[0] for mask in predictor(items, top_k=1)]
    return [{"piece": one.token_id, "score": one.score} for one in best]


def usable_items(predictor: AnyPredictor, items: Sequence[Any]) -> list[Any]:
    """The items that a predictor takes; a row here and there may be blank.

    Raises:
        InputError: the last reason, if it takes none.
    """
    usable: list[Any] = []
    fault: InputError | None = None
    for item in items:
        try:
            if isinstance(predictor, FillPredictor):
                predictor.prepare(item)
            else:
                predictor.prepare([item])
            usable.append(item)
        except InputError as error:
            fault = error
    if not usable and fault is not None:
        raise fault
    return usable
