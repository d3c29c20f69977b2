"""Whether answers are right, as the official scorers of SQuAD 1.1 and 2.0 count it, and that of MLQA where asked for.

An answer is exact where it equals one that a person gave after both are normalised, and its F1 is that of the words
that both have, the best over all given answers (Rajpurkar et al. 2016, section 6.1). A question that has no answer is
right where none is given (Rajpurkar et al. 2018). Of a given answer that is nothing after normalising, no account is
taken.

SQuAD's scorer lowers case, removes the punctuation of ASCII, the words a, an and the, and surplus white space, whatever
the language. ARCD's and XQuAD's scorers are the same, so for Arabic: its own punctuation (، ؛ ؟ « »), the article ال,
vowel marks, tatweel and the forms of alef all stay and must agree.

MLQA's scorer (Lewis et al. 2020) removes the punctuation of all scripts, and the articles of the language: for Arabic
each ال wherever it stands, also inside a word, for which it puts a space. Vowel marks and tatweel stay there too.
Chinese characters count as words of their own.
"""

import re
import string
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Bool, Float

from bertsmith.foundation.errors import unknown_name
from bertsmith.objectives.thresholds import HALF, middle_between

_MLQA_ARTICLES: dict[str, str | None] = {
    "ar": "ال",
    "de": r"\b(?:ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "en": r"\b(?:a|an|the)\b",
    "es": r"\b(?:un|una|unos|unas|el|la|los|las)\b",
    "hi": None,
    "vi": r"\b(?:của|là|cái|chiếc|những)\b",
    "zh": None,
}
_CHINESE = re.compile("([\u4e00-\u9fa5])")


@dataclass(frozen=True)
class AnswerScores:
    """How right an answer is, for each question."""

    exact: Float[np.ndarray, " questions"]
    """1 where it equals a given answer, else 0."""
    f1: Float[np.ndarray, " questions"]

    @classmethod
    def of(cls, answers: Sequence[str], golds: Sequence[Sequence[str]], scorer: str = "squad") -> "AnswerScores":
        """Score answers.

        Args:
            answers: one a question; an empty text where none is given.
            golds: what people gave; nothing where there is no answer.
            scorer: whose way it is counted in, a `Scorer`.

        Raises:
            InputError: if there is no such scorer.
        """
        normal = normalizer(scorer)
        found = np.zeros((2, len(answers)))
        for number, (answer, given) in enumerate(zip(answers, golds, strict=True)):
            words = normal(answer)
            right = [gold for gold in map(normal, given) if gold] or [[]]
            found[0, number] = float(words in right)
            found[1, number] = max(_f1(words, gold) for gold in right)
        return cls(found[0], found[1])


def answer_metrics(
    answered: AnswerScores,
    has_answer: Bool[np.ndarray, " questions"],
    no_answer: Float[np.ndarray, " questions"],
    *,
    threshold: float | None,
) -> dict[str, float]:
    """Scores over questions, as shares of 1.

    Args:
        answered: of the best spans, as if every question had an answer.
        has_answer: whether each question has one.
        no_answer: probability that it has none.
        threshold: above which no answer is given; None where one always is.

    Returns:
        ``exact_match`` and ``f1``. Where some question has no answer, or may be given none, also ``has_answer_exact``,
        ``has_answer_f1`` and ``no_answer_exact``, of the two kinds apart, each where there are such questions; and
        ``best_exact`` and ``best_f1``, which the best threshold would give, with that threshold. All of them are NaN
        where a probability is.
    """
    silent = np.zeros(len(has_answer), np.bool_) if threshold is None else no_answer > threshold
    none_right = (~has_answer).astype(np.float64)
    exact, f1 = (
        np.where(np.isnan(no_answer), np.nan, np.where(silent, none_right, scores))
        for scores in (answered.exact, answered.f1)
    )
    found = {"exact_match": _mean(exact), "f1": _mean(f1)}
    if has_answer.all() and threshold is None:
        return found
    if has_answer.any():
        found |= {"has_answer_exact": _mean(exact[has_answer]), "has_answer_f1": _mean(f1[has_answer])}
    if not has_answer.all():
        found["no_answer_exact"] = _mean(exact[~has_answer])
    for name, scores in (("exact", answered.exact), ("f1", answered.f1)):
        found[f"best_{name}"], found[f"best_{name}_threshold"] = best_threshold(scores, has_answer, no_answer)
    return found


def best_threshold(
    answered: Float[np.ndarray, " questions"],
    has_answer: Bool[np.ndarray, " questions"],
    no_answer: Float[np.ndarray, " questions"],
) -> tuple[float, float]:
    """The best mean score over all thresholds, and the least threshold that gives it.

    As SQuAD 2.0's scorer finds it, but for questions of equal probability, which no threshold tells apart. It is a
    figure to report: it is the probability of a question, whose answer would hang on rounding; a model is given a
    `settled_threshold`. Both are NaN where a probability is.

    Args:
        answered: score of each question where it is answered.
        has_answer: whether it has an answer; one that has none scores 1 where it is not answered, and one that has 0.
        no_answer: probability that it has none. No answer is given where it is above the threshold.
    """
    if np.isnan(no_answer).any():
        return float("nan"), float("nan")
    sums, thresholds = _sums_by_threshold(answered, has_answer, no_answer)
    best = int(np.argmax(sums))
    return float(sums[best] / len(no_answer)), float(thresholds[best])


def settled_threshold(
    answered: Float[np.ndarray, " questions"],
    has_answer: Bool[np.ndarray, " questions"],
    no_answer: Float[np.ndarray, " questions"],
) -> float:
    """A threshold that gives the best mean score, in the middle of the gap between two probabilities.

    So no question's answer hangs on the rounding of its probability. Of several that are as good, the one nearest to
    0.5 is taken, and 0.5 itself where it lies in such a gap. Below the least probability lies 0, above the highest 1.

    Args:
        answered: as `best_threshold` has it.
        has_answer: as there.
        no_answer: as there; all numbers.
    """
    sums, lows = _sums_by_threshold(answered, has_answer, no_answer)
    # Where no threshold tells questions apart the gap is empty, and its sum the least of all.
    highs = np.concatenate([np.sort(no_answer), [1.0]])
    best = np.flatnonzero(sums >= sums.max() - 1e-9)
    choices = [_between(float(lows[place]), float(highs[place])) for place in best]
    return min(choices, key=lambda threshold: abs(threshold - HALF))


def normalizer(scorer: str) -> Callable[[str], list[str]]:
    """A scorer's way from an answer to the words that are compared.

    Raises:
        InputError: if there is no such scorer.
    """
    if scorer == "squad":
        return _squad_words
    languages = {f"mlqa-{language}": language for language in _MLQA_ARTICLES}
    if scorer not in languages:
        raise unknown_name("answer.scorer", scorer, ["squad", *languages])
    language = languages[scorer]
    return lambda text: _mlqa_words(text, language)


def _sums_by_threshold(
    answered: Float[np.ndarray, " questions"],
    has_answer: Bool[np.ndarray, " questions"],
    no_answer: Float[np.ndarray, " questions"],
) -> tuple[Float[np.ndarray, " thresholds"], Float[np.ndarray, " thresholds"]]:
    """The sum of scores at 0 and at each probability in ascending order, and these thresholds themselves.

    The sum is -inf where the next probability is the same: only the last question of a probability stands for it.
    """
    order = np.argsort(no_answer, kind="stable")
    silent = (~has_answer).astype(np.float64)
    sums = silent.sum() + np.concatenate([[0.0], np.cumsum((answered - silent)[order])])
    thresholds = np.concatenate([[0.0], no_answer[order]])
    # The threshold 0 answers those whose probability it is.
    tells = np.append(thresholds[1:] > thresholds[:-1], True)
    return np.where(tells, sums, -np.inf), thresholds


def _between(low: float, high: float) -> float:
    """A threshold that is not below `low` and below `high`: 0.5 if it lies between the two, else the middle."""
    return HALF if low < HALF < high else middle_between(low, high, end=low)


def _squad_words(text: str) -> list[str]:
    bare = text.lower().translate(_ascii_punctuation())
    return re.sub(r"\b(?:a|an|the)\b", " ", bare).split()


def _mlqa_words(text: str, language: str) -> list[str]:
    bare = text.lower().translate(_all_punctuation())
    articles = _MLQA_ARTICLES[language]
    if articles is not None:
        bare = re.sub(articles, " ", bare)
    if language == "zh":
        bare = _CHINESE.sub(r" \1 ", bare)
    return bare.split()


@cache
def _ascii_punctuation() -> dict[int, None]:
    return dict.fromkeys(map(ord, string.punctuation))


@cache
def _all_punctuation() -> dict[int, None]:
    """Every character of Unicode's punctuation, and what of ASCII counts as some."""
    everywhere = (place for place in range(sys.maxunicode + 1) if unicodedata.category(chr(place)).startswith("P"))
    return dict.fromkeys([*everywhere, *_ascii_punctuation()])


def _f1(words: Sequence[str], gold: Sequence[str]) -> float:
    """Twice the words in common over all words of both; 1 where both have none."""
    if not words or not gold:
        return float(len(words) == len(gold))
    common = sum((Counter(words) & Counter(gold)).values())
    return 2 * common / (len(words) + len(gold))


def _mean(scores: Float[np.ndarray, " questions"]) -> float:
    return float(scores.mean()) if len(scores) else 0.0
