"""Words and runs of words, and how they fill a budget, compared with slow by-the-book ways."""

import numpy as np
import pytest

from bertsmith.examples.mask_units import Words, drawn_run_lengths, random_order, runs_within, words_within
from bertsmith.foundation.random_streams import random_stream

ELIGIBLE = np.array([0, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1], bool)
CONTINUES = np.array([1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0], bool)
STARTS = np.array([0, 8, 11, 13])


def made_words(lengths_by_sequence: list[list[int]]) -> Words:
    """Words of these lengths, between a special token before and one behind each sequence."""
    starts: list[int] = []
    place = 0
    for lengths in lengths_by_sequence:
        starts += (place + 1 + np.cumsum([0, *lengths[:-1]])).tolist() if lengths else []
        place += sum(lengths) + 2
    flat = np.array([length for lengths in lengths_by_sequence for length in lengths], np.int64)
    numbers = np.repeat(np.arange(len(lengths_by_sequence)), [len(lengths) for lengths in lengths_by_sequence])
    return Words(np.array(starts, np.int64), flat, numbers, len(lengths_by_sequence))


def test_a_word_crosses_neither_a_special_token_nor_a_sequence() -> None:
    words = Words.of(ELIGIBLE, STARTS, CONTINUES)
    # Place 5 says that it goes on, after a special token; places 9 to 11 run over the sequence that begins at 11.
    assert words.starts.tolist() == [1, 3, 5, 6, 9, 11, 12]
    assert words.lengths.tolist() == [2, 1, 1, 1, 2, 1, 1]
    assert words.sequences.tolist() == [0, 0, 0, 0, 1, 2, 2]
    assert words.counts.tolist() == [4, 1, 2]
    assert words.token_counts.tolist() == [5, 2, 2]


def test_without_words_each_eligible_token_is_one() -> None:
    words = Words.of(ELIGIBLE, STARTS, None)
    assert words.starts.tolist() == np.flatnonzero(ELIGIBLE).tolist()
    assert set(words.lengths.tolist()) == {1}


def test_a_sequence_without_a_token_of_text_has_no_word() -> None:
    words = Words.of(np.array([0, 0, 0, 1], bool), np.array([0, 2, 4]), np.zeros(4, bool))
    assert (words.starts.tolist(), words.sequences.tolist(), words.counts.tolist()) == ([3], [1], [0, 1])
    nothing = Words.of(np.zeros(2, bool), np.array([0, 2]), np.zeros(2, bool))
    assert len(nothing.starts) == len(nothing.to_end_of_stretch()) == 0


def test_a_stretch_ends_at_a_special_token_or_with_its_sequence() -> None:
    assert Words.of(ELIGIBLE, STARTS, CONTINUES).to_end_of_stretch().tolist() == [2, 1, 2, 1, 1, 2, 1]


def _natural_words(seed: int) -> tuple[Words, np.ndarray, np.ndarray]:
    stream = random_stream(seed, "words")
    words = made_words([stream.geometric(0.6, size=stream.integers(0, 80)).clip(max=9).tolist() for _ in range(20)])
    order = random_order(words, stream.random(len(words.starts)))
    return words, order, stream.integers(0, 40, size=20)


@pytest.mark.parametrize("seed", range(8))
def test_words_are_taken_as_one_after_the_other_would_be(seed: int) -> None:
    words, order, budgets = _natural_words(seed)
    left = budgets.tolist()
    expected = set()
    for word in order.tolist():
        if words.lengths[word] <= left[words.sequences[word]]:
            left[words.sequences[word]] -= words.lengths[word]
            expected.add(word)
    taken = words_within(words, order, budgets)
    assert set(np.flatnonzero(taken >= 0).tolist()) == expected
    assert (taken[taken >= 0] == np.flatnonzero(taken >= 0)).all()
    assert budgets.min() >= 0  # They are not what is counted down.


@pytest.mark.parametrize("seed", range(8))
def test_runs_neither_meet_nor_pass_a_budget_nor_a_sequence(seed: int) -> None:
    words, order, budgets = _natural_words(seed)
    lengths = drawn_run_lengths(
        random_stream(seed, "runs").random(len(order)), words.to_end_of_stretch(), 0.8 ** np.arange(10)
    )
    taken = runs_within(words, order, lengths, budgets)
    covered = np.flatnonzero(taken >= 0)
    spent = np.bincount(words.sequences[covered], weights=words.lengths[covered], minlength=20)
    assert (spent <= budgets).all()
    firsts, counts = np.unique(taken[covered], return_counts=True)
    assert (counts <= lengths[firsts]).all()
    for first, count in zip(firsts.tolist(), counts.tolist(), strict=True):
        assert (taken[first : first + count] == first).all()
        assert len(set(words.sequences[first : first + count].tolist())) == 1


def test_a_run_that_does_not_fit_is_shortened_and_one_that_meets_another_is_skipped() -> None:
    words = made_words([[1, 2, 1, 3, 1, 1]])

    def taken(order: list[int], lengths: list[int], budget: int) -> list[int]:
        return runs_within(words, np.array(order), np.array(lengths), np.array([budget])).tolist()

    # Word 4 is in a run already, and the run from word 0 finds three pieces left where it wants four.
    assert taken([3, 4, 0, 1, 2, 5], [3, 1, 1, 2, 1, 1], 7) == [0, 0, -1, 3, 3, -1]
    # The run from word 2 fits and reaches into the first one.
    assert taken([3, 2, 1, 0, 4, 5], [1, 1, 2, 2, 1, 1], 8) == [0, 1, -1, 3, 3, 5]
    # Word 3 alone passes this budget.
    assert taken([3, 0, 4, 1, 2, 5], [3, 1, 1, 2, 1, 1], 2) == [0, -1, -1, -1, 4, -1]


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        (1 / np.arange(1, 4), [6 / 11, 3 / 11, 2 / 11]),
        (0.2 * 0.8 ** np.arange(10), [0.2 * 0.8**k / (1 - 0.8**10) for k in range(10)]),
    ],
    ids=["ngram", "span"],
)
def test_lengths_of_a_million_runs_have_their_shares(weights: np.ndarray, shares: list[float]) -> None:
    count = 1_000_000
    lengths = drawn_run_lengths(random_stream(0, "runs").random(count), np.full(count, 50), weights)
    found = np.bincount(lengths, minlength=len(shares) + 1)[1:] / count
    expected = np.array(shares)
    assert found.sum() == pytest.approx(1)
    # Five standard deviations of a share of a million draws.
    assert (np.abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / count)).all()


def test_near_the_end_lengths_are_drawn_among_those_that_fit() -> None:
    count = 100_000
    draws = random_stream(0, "runs").random(count)
    lengths = drawn_run_lengths(draws, np.full(count, 2), 1 / np.arange(1, 4))
    assert (lengths == 1).mean() == pytest.approx(2 / 3, abs=5 * np.sqrt(2 / 9 / count))
    assert set(lengths.tolist()) == {1, 2}
    assert (drawn_run_lengths(draws, np.ones(count, np.int64), 1 / np.arange(1, 4)) == 1).all()
