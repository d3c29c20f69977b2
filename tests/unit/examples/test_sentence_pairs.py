"""Sentence pairs, compared with slow by-the-book ones."""

import random

import numpy as np
import pytest

from bertsmith.examples.pretraining import PretrainingExamples
from bertsmith.examples.sentence_pairs import _truncate, sentence_pairs
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.random_streams import random_stream
from made_corpora import made_split


def _natural_documents(count: int, seed: int = 0) -> list[list[int]]:
    """Sentence lengths as news text has them: mostly 10 to 40 tokens, a few much longer, 1 to 60 sentences."""
    stream = random.Random(seed)
    return [
        [max(2, round(stream.lognormvariate(3.0, 0.6))) for _ in range(stream.randint(1, 60))] for _ in range(count)
    ]


def _pairs(documents: list[list[int]], room: int, seed: int = 0) -> PretrainingExamples:
    return sentence_pairs(made_split(documents), room, random_stream(seed, "pairs"))


def _labels(pairs: PretrainingExamples) -> np.ndarray:
    assert pairs.pair_labels is not None
    return pairs.pair_labels


def test_about_half_of_the_pairs_are_random() -> None:
    labels = _labels(_pairs(_natural_documents(400), 125))
    assert len(labels) > 2000
    assert 0.48 < labels.mean() < 0.58


def test_a_document_of_one_sentence_gives_a_random_pair() -> None:
    assert _labels(_pairs([[5], [6], [7]], 50)).tolist() == [1, 1, 1]


def test_one_document_is_refused_and_the_way_out_is_told() -> None:
    with pytest.raises(InputError, match=r"at least two documents.*Received: 1 in the made part.*--objective mlm"):
        _pairs([[5, 6, 7, 8]], 50)


def test_every_sentence_is_shown_in_its_own_document_once() -> None:
    documents = _natural_documents(60, seed=1)
    split = made_split(documents)
    # Room for a whole document, so that nothing is cut to length.
    pairs = sentence_pairs(split, 10_000, random_stream(3, "pairs"))
    labels = _labels(pairs)
    shown = np.zeros(split.num_tokens, int)
    for number, label in enumerate(labels):
        shown[pairs.first_starts[number] : pairs.first_ends[number]] += 1
        if label == 0:
            shown[pairs.second_starts[number] : pairs.second_ends[number]] += 1
            assert pairs.second_starts[number] == pairs.first_ends[number]
    assert (shown == 1).all()


def test_every_other_document_and_sentence_can_be_the_random_one() -> None:
    documents = [[3, 4], [5, 6, 2], [7]]
    split = made_split(documents)
    chosen: dict[int, set[int]] = {0: set(), 1: set(), 2: set()}
    bounds = split.sentence_starts[split.document_starts]
    for seed in range(200):
        pairs = sentence_pairs(split, 10, random_stream(seed, "pairs"))
        for number in np.flatnonzero(_labels(pairs) == 1):
            own = int(np.searchsorted(bounds, pairs.first_starts[number], side="right")) - 1
            sentence = int(np.searchsorted(split.sentence_starts, pairs.second_starts[number], side="right")) - 1
            chosen[own].add(sentence)
    assert chosen == {0: {2, 3, 4, 5}, 1: {0, 1, 5}, 2: {0, 1, 2, 3, 4}}


def test_one_target_in_ten_is_short_and_evenly_spread() -> None:
    # Sentences of one token, so that a true pair is exactly as long as its target.
    documents = [[1] * 4000 for _ in range(40)]
    pairs = _pairs(documents, 100)
    follows = _labels(pairs) == 0
    lengths = pairs.text_lengths[follows]
    inner = lengths[lengths >= 2]
    assert len(inner) > 1000
    short = inner[inner < 100]
    # 98 of the 99 short targets are below the room; a document's end is rarely met.
    expected = 0.1 * 98 / 99
    assert len(short) / len(inner) == pytest.approx(expected, abs=5 * np.sqrt(expected / len(inner)))
    assert short.mean() == pytest.approx(np.arange(2, 100).mean(), abs=5 * 28.3 / np.sqrt(len(short)))
    assert short.min() <= 10


def test_the_cut_between_the_segments_is_evenly_spread() -> None:
    documents = [[1] * 4000 for _ in range(40)]
    pairs = _pairs(documents, 11)
    firsts = (pairs.first_ends - pairs.first_starts)[pairs.text_lengths == 11]
    shares = np.bincount(firsts, minlength=12)[1:11] / len(firsts)
    assert shares == pytest.approx(np.full(10, 0.1), abs=0.02)


def _lengths_token_at_a_time(first: int, second: int, most: int) -> tuple[int, int]:
    while first + second > most:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


def test_truncation_takes_from_the_longer_segment_as_one_token_at_a_time_would() -> None:
    lengths = np.array([(first, second) for first in range(1, 25) for second in range(1, 25)])
    starts = np.cumsum(lengths[:, 0]) - lengths[:, 0]
    second_starts = 10_000 + np.cumsum(lengths[:, 1]) - lengths[:, 1]
    for most in (2, 3, 10, 11, 30, 60):
        a, b, c, d = _truncate(
            (starts, starts + lengths[:, 0]),
            (second_starts, second_starts + lengths[:, 1]),
            most,
            random_stream(0, most),
        )
        expected = [_lengths_token_at_a_time(first, second, most) for first, second in lengths.tolist()]
        assert list(zip((b - a).tolist(), (d - c).tolist(), strict=True)) == expected
        assert (a >= starts).all()
        assert (b <= starts + lengths[:, 0]).all()
        assert (c >= second_starts).all()
        assert (d <= second_starts + lengths[:, 1]).all()


def test_each_dropped_token_is_from_the_front_or_the_back_with_equal_chance() -> None:
    rows = 20_000
    starts = np.zeros(rows, np.int64)
    a, _, c, d = _truncate((starts, starts + 30), (starts, starts + 10), 20, random_stream(0, "cut"))
    assert (c == 0).all()
    assert (d == 10).all()
    # 20 tokens go from the first segment; how many of them from its front is binomial (20, 1/2).
    assert a.mean() == pytest.approx(10, abs=5 * np.sqrt(5 / rows))
    assert a.var() == pytest.approx(5, rel=0.06)
    assert a.min() >= 0
    assert a.max() <= 20
