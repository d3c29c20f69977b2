"""What counts as agreement, for each job."""

from typing import Any

import numpy as np
import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.inference.agreement import Agreement, agreement, least_agreement, refuse_agreement
from bertsmith.inference.engine import Job


def _label(label: str, score: float) -> dict[str, Any]:
    return {"label": label, "scores": {"a": score, "b": 1 - score}}


CASES: dict[Job, tuple[list[dict[str, Any]], list[dict[str, Any]], Agreement]] = {
    "classify": (
        [_label("a", 0.9), _label("a", 0.6)],
        [_label("a", 0.8), _label("b", 0.4)],
        Agreement("equal labels", 0.5, 0.15, 2),
    ),
    "multilabel": (
        [{"labels": ["a"], "scores": {"a": 0.9, "b": 0.2}}],
        [{"labels": ["a", "b"], "scores": {"b": 0.6, "a": 0.9}}],
        Agreement("equal labels", 0.5, 0.2, 2),
    ),
    "tag": (
        [{"words": [{"label": "O", "score": 0.9}] * 3}, {"words": [{"label": "X", "score": 0.9}]}],
        [{"words": [{"label": "O", "score": 0.8}] * 3}, {"words": [{"label": "O", "score": 0.8}]}],
        Agreement("equal words", 0.75, 0.1, 4),
    ),
    "answer": (
        [{"start": 1, "end": 4, "score": 0.5}, {"start": 0, "end": 0, "score": 0.5}],
        [{"start": 1, "end": 4, "score": 0.7}, {"start": 0, "end": 2, "score": 0.5}],
        Agreement("equal answers", 0.5, 0.1, 2),
    ),
    "choose": (
        [{"index": 0, "scores": [0.6, 0.4]}],
        [{"index": 1, "scores": [0.4, 0.6]}],
        Agreement("equal choices", 0.0, 0.2, 1),
    ),
    "fill": (
        [{"piece": 7, "score": 0.5}, {"piece": 8, "score": 0.5}],
        [{"piece": 7, "score": 0.4}, {"piece": 9, "score": 0.4}],
        Agreement("equal pieces", 0.5, 0.1, 2),
    ),
    "embed": (
        [{"embedding": [3.0, 4.0]}, {"embedding": [1.0, 0.0]}],
        [{"embedding": [3.0, 4.0]}, {"embedding": [0.0, 1.0]}],
        Agreement("cosine", 0.5, 0.5, 2),
    ),
    "regress": (
        [{"value": 1.0}, {"value": 2.0}, {"value": 3.0}],
        [{"value": 1.5}, {"value": 2.5}, {"value": 3.5}],
        Agreement("correlation", 1.0, 0.5, 3),
    ),
}


@pytest.mark.parametrize("job", CASES)
def test_agreement_counts_what_people_read(job: Job) -> None:
    exact, other, expected = CASES[job]
    found = agreement(job, exact, other)
    assert (found.measure, found.compared) == (expected.measure, expected.compared)
    assert (found.value, found.mean_difference) == pytest.approx((expected.value, expected.mean_difference))
    itself = agreement(job, exact, exact)
    assert (itself.value, itself.mean_difference) == pytest.approx((1.0, 0.0))


def test_values_that_are_all_the_same_agree_only_where_both_are() -> None:
    same = [{"value": 2.0}] * 3
    assert agreement("regress", same, same).value == 1.0
    assert agreement("regress", same, [{"value": 2.5}] * 3).value == 0.0


def test_too_little_agreement_is_refused_with_its_figure() -> None:
    refuse_agreement(Agreement("cosine", 0.98, 0.01, 9), 0.98, do="Ask less.")
    with pytest.raises(InputError, match=r"cosine of 0\.98.*0\.97124 over 1,200.*Ask less"):
        refuse_agreement(Agreement("cosine", 0.97124, 0.01, 1200), 0.98, do="Ask less.")
    with pytest.raises(InputError, match="nan"):
        refuse_agreement(Agreement("cosine", float(np.nan), 0.01, 9), 0.0, do="Ask less.")


def test_vectors_are_asked_for_more_than_choices() -> None:
    assert (least_agreement("embed"), least_agreement("classify")) == (0.98, 0.97)
