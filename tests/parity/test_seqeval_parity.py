"""Entity scores against seqeval, in its default reading and in its strict one."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from seqeval import metrics, scheme
from seqeval.metrics.sequence_labeling import get_entities

from bertsmith.examples.tag_schemes import Scheme, entity_spans
from bertsmith.objectives.classification import label_scores
from bertsmith.objectives.tagging import count_entities, entity_details, entity_scores

TYPES = ("PER", "LOC", "creative-work")
SCHEMES: dict[Scheme, tuple[str, Any]] = {
    "BIO": ("BI", scheme.IOB2),
    "IOBES": ("BIES", scheme.IOBES),
    "BILOU": ("BILU", scheme.BILOU),
}


def _labels(letters: str) -> st.SearchStrategy[str]:
    entity = st.builds(lambda letter, kind: f"{letter}-{kind}", st.sampled_from(letters), st.sampled_from(TYPES))
    return st.one_of(st.just("O"), entity)


def _pairs(letters: str) -> st.SearchStrategy[list[tuple[list[str], list[str]]]]:
    """Sentences of any labels, each with others that agree in many places."""
    word = _labels(letters).flatmap(
        lambda label: st.tuples(st.just(label), st.one_of(st.just(label), _labels(letters)))
    )
    sentence = st.lists(word, min_size=1, max_size=12).map(
        lambda words: ([true for true, _ in words], [predicted for _, predicted in words])
    )
    return st.lists(sentence, min_size=1, max_size=5)


def _theirs(truth: list[list[str]], predicted: list[list[str]], **options: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = metrics.classification_report(truth, predicted, output_dict=True, **options)
    assert isinstance(report, dict)
    return report


def _assert_equal(ours: dict[str, Any], counts: Any, theirs: dict[str, Any]) -> None:
    assert ours["f1"] == pytest.approx(theirs["micro avg"]["f1-score"], abs=1e-12)
    assert ours["macro_f1"] == pytest.approx(theirs["macro avg"]["f1-score"], abs=1e-12)
    for average in ("micro", "macro"):
        for name in ("precision", "recall"):
            assert ours[f"{average}_{name}"] == pytest.approx(theirs[f"{average} avg"][name], abs=1e-12)
    details = entity_details(counts)
    assert set(details) == {name for name in theirs if not name.endswith(" avg")}
    for name, one in details.items():
        found = theirs[name]
        assert [one["precision"], one["recall"], one["f1"], one["rows"]] == pytest.approx(
            [found["precision"], found["recall"], found["f1-score"], found["support"]], abs=1e-12
        )


@given(_pairs("BIES"))
@settings(max_examples=100, deadline=None)
def test_scores_are_those_of_the_default_reading(pairs: list[tuple[list[str], list[str]]]) -> None:
    truth, predicted = [one for one, _ in pairs], [other for _, other in pairs]
    counts = count_entities(truth, predicted)
    assume(counts)  # It has no scores where there is no entity.
    _assert_equal(entity_scores(counts), counts, _theirs(truth, predicted))
    words = {label for sentence in (*truth, *predicted) for label in sentence}
    ids = {label: number for number, label in enumerate(sorted(words))}
    flat = [np.array([ids[label] for sentence in part for label in sentence]) for part in (predicted, truth)]
    assert label_scores(*flat)["accuracy"] == pytest.approx(metrics.accuracy_score(truth, predicted))


@pytest.mark.parametrize("name", SCHEMES)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_scores_are_those_of_the_strict_reading(name: Scheme, data: st.DataObject) -> None:
    letters, theirs = SCHEMES[name]
    pairs = data.draw(_pairs(letters))
    truth, predicted = [one for one, _ in pairs], [other for _, other in pairs]
    counts = count_entities(truth, predicted, strict=name)
    assume(counts)
    _assert_equal(entity_scores(counts), counts, _theirs(truth, predicted, mode="strict", scheme=theirs))


@given(st.lists(_labels("BIES"), max_size=15))
@settings(deadline=None)
def test_spans_are_those_of_the_default_reading(labels: list[str]) -> None:
    theirs = [(kind, start, end + 1) for kind, start, end in get_entities(labels)]
    assert [(span.label, span.start, span.end) for span in entity_spans(labels)] == theirs
