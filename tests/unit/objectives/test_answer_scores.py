"""When an answer is right: normalising, the better of several answers, thresholds."""

import numpy as np
import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.objectives.answer_scores import (
    AnswerScores,
    answer_metrics,
    best_threshold,
    normalizer,
    settled_threshold,
)


@pytest.mark.parametrize(
    ("scorer", "text", "words"),
    [
        ("squad", "The U.S. Army's  «best»", ["us", "armys", "«best»"]),
        ("squad", "a An THE then", ["then"]),
        ("squad", "theatre-goer", ["theatregoer"]),
        ("squad", "الكتابُ، العربيّ؟", ["الكتابُ،", "العربيّ؟"]),
        ("squad", "die Stadt", ["die", "stadt"]),
        ("mlqa-ar", "الكتابُ، العربيّ؟ كـتاب", ["كتابُ", "عربيّ", "كـتاب"]),
        ("mlqa-ar", "سال الماء", ["س", "ماء"]),
        ("mlqa-ar", "The boat", ["the", "boat"]),
        ("mlqa-de", "die Stadt „Bonn“", ["stadt", "bonn"]),
        ("mlqa-en", "The «best»", ["best"]),
        ("mlqa-es", "Las casas", ["casas"]),
        ("mlqa-hi", "राम का", ["राम", "का"]),
        ("mlqa-vi", "những con thuyền", ["con", "thuyền"]),
        ("mlqa-zh", "北京 (Beijing) 大学。", ["北", "京", "beijing", "大", "学"]),
    ],
)
def test_what_is_compared_of_an_answer(scorer: str, text: str, words: list[str]) -> None:
    assert normalizer(scorer)(text) == words


def test_an_unknown_scorer_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"mlqa-ar.*squad.*Did you mean mlqa-ar"):
        normalizer("mlqa-arabic")


def test_the_best_of_several_answers_counts() -> None:
    found = AnswerScores.of(["old wooden boat"], [["ship", "the wooden boat", "a boat"]])
    assert found.exact.tolist() == [0.0]
    assert found.f1.tolist() == [pytest.approx(2 * 2 / (3 + 2))]


def test_words_in_common_are_counted_as_often_as_both_have_them() -> None:
    found = AnswerScores.of(["rain rain rain"], [["rain rain snow wind"]])
    assert found.f1.tolist() == [pytest.approx(2 * 2 / (3 + 4))]


@pytest.mark.parametrize(
    ("answer", "golds", "right"),
    [
        ("", [], 1.0),
        ("boat", [], 0.0),
        ("", ["boat"], 0.0),
        ("the", [], 1.0),
        ("", ["The", "..."], 1.0),
        ("boat", ["The", "boat"], 1.0),
    ],
)
def test_no_answer_is_right_where_there_is_none(answer: str, golds: list[str], right: float) -> None:
    found = AnswerScores.of([answer], [golds])
    assert (found.exact.tolist(), found.f1.tolist()) == ([right], [right])


HAS = np.array([True, False, True, False])
NONE = np.array([0.1, 0.4, 0.6, 0.9])
ANSWERED = AnswerScores(np.array([1.0, 0.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.5, 0.0]))


def test_questions_with_and_without_an_answer_are_scored_apart() -> None:
    found = answer_metrics(ANSWERED, HAS, NONE, threshold=0.5)
    assert found == pytest.approx(
        {
            "exact_match": 2 / 4,
            "f1": 2 / 4,
            "has_answer_exact": 1 / 2,
            "has_answer_f1": 1 / 2,
            "no_answer_exact": 1 / 2,
            "best_exact": 3 / 4,
            "best_exact_threshold": 0.1,
            "best_f1": 3 / 4,
            "best_f1_threshold": 0.1,
        }
    )


def test_a_model_that_always_answers_is_never_silent() -> None:
    found = answer_metrics(ANSWERED, HAS, NONE, threshold=None)
    assert (found["exact_match"], found["f1"], found["no_answer_exact"]) == (1 / 4, 1.5 / 4, 0.0)
    answerable = AnswerScores(ANSWERED.exact[HAS], ANSWERED.f1[HAS])
    assert answer_metrics(answerable, HAS[HAS], NONE[HAS], threshold=None) == {"exact_match": 0.5, "f1": 0.75}
    silent = answer_metrics(answerable, HAS[HAS], NONE[HAS], threshold=0.5)
    assert silent["f1"] == 0.5
    assert "no_answer_exact" not in silent
    assert silent["best_f1"] == 0.75


def test_where_no_question_has_an_answer_only_silence_scores() -> None:
    nothing = AnswerScores(np.zeros(2), np.zeros(2))
    found = answer_metrics(nothing, np.zeros(2, np.bool_), np.array([0.3, 0.8]), threshold=0.5)
    assert (found["exact_match"], found["no_answer_exact"], found["best_f1"]) == (0.5, 0.5, 1.0)
    assert found["best_f1_threshold"] == 0.0
    assert "has_answer_f1" not in found


def test_a_threshold_does_not_part_questions_of_equal_probability() -> None:
    has, equal = np.array([True, False]), np.array([0.5, 0.5])
    assert best_threshold(np.array([1.0, 0.0]), has, equal) == (0.5, 0.0)
    assert best_threshold(np.array([1.0, 0.0]), has, np.array([0.0, 0.5])) == (1.0, 0.0)
    assert best_threshold(np.array([0.0, 0.0]), has, np.array([0.0, 0.0])) == (0.0, 0.0)


def test_the_best_threshold_gives_what_it_says() -> None:
    stream = np.random.default_rng(0)
    for _ in range(50):
        size = int(stream.integers(1, 12))
        has = stream.random(size) < 0.6
        none = stream.integers(0, 6, size) / 5
        answered = np.where(has, stream.integers(0, 3, size) / 2, 0.0)
        best, threshold = best_threshold(answered, has, none)

        def score(at: float, answered: np.ndarray = answered, has: np.ndarray = has, none: np.ndarray = none) -> float:
            return float(np.where(none > at, (~has).astype(float), answered).mean())

        assert score(threshold) == pytest.approx(best)
        assert best == pytest.approx(max(score(at) for at in [0.0, *none.tolist()]))
        settled = settled_threshold(answered, has, none)
        assert score(settled) == pytest.approx(best)
        assert 0.0 <= settled <= 1.0
        assert all(abs(settled - value) > 0.05 for value in none.tolist() if 0.0 < value < 1.0)


@pytest.mark.parametrize(
    ("answered", "has", "none", "expected"),
    [
        ([1.0, 0.0], [True, False], [0.1, 0.3], 0.2),
        ([1.0, 0.0], [True, False], [0.3, 0.9], 0.5),
        ([1.0, 1.0], [True, True], [0.7, 0.8], 0.9),
        ([0.0, 0.0], [False, False], [0.2, 0.4], 0.1),
        ([1.0, 0.0], [True, False], [0.0, 0.4], 0.2),
        ([1.0, 0.0], [True, False], [0.4, 1.0], 0.5),
        ([1.0, 1.0], [True, True], [1.0, 1.0], 1.0),
        ([1.0, 0.0, 0.0], [True, True, False], [0.1, 0.3, 0.4], 0.35),
        ([1.0, 0.0], [True, False], [0.2, np.nextafter(0.2, 1.0)], 0.2),
    ],
)
def test_the_settled_threshold_lies_in_the_middle_of_a_gap(
    answered: list[float], has: list[bool], none: list[float], expected: float
) -> None:
    found = settled_threshold(np.array(answered), np.array(has), np.array(none))
    assert found == pytest.approx(expected)
    silent = np.array(none) > found
    score = np.where(silent, ~np.array(has), answered).mean()
    assert score == pytest.approx(best_threshold(np.array(answered), np.array(has), np.array(none))[0])


def test_the_decision_of_no_question_hangs_on_rounding() -> None:
    stream = np.random.default_rng(1)
    has, none = stream.random(40) < 0.5, stream.permutation(40) / 50
    answered = np.where(has, 1.0, 0.0)
    threshold = settled_threshold(answered, has, none)
    for shift in (-1e-5, 1e-5):
        assert ((none + shift > threshold) == (none > threshold)).all()
    _, reported = best_threshold(answered, has, none)
    assert reported in none


def test_a_model_that_says_no_number_has_no_scores() -> None:
    broken = np.array([0.1, np.nan, 0.6, 0.9])
    for threshold in (0.5, None):
        found = answer_metrics(ANSWERED, HAS, broken, threshold=threshold)
        assert np.isnan([found[name] for name in ("exact_match", "f1", "best_f1", "best_f1_threshold")]).all()
    assert np.isnan(answer_metrics(ANSWERED, HAS[[0, 0, 0, 0]], broken, threshold=None)["f1"])
