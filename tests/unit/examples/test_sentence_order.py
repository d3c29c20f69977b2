"""Sentence order: neighbouring segments, as they stand or swapped."""

import random

import numpy as np
import pytest

from bertsmith.examples.pretraining import PretrainingExamples
from bertsmith.examples.sentence_pairs import _some_swapped, sentence_order_pairs
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.random_streams import random_stream
from made_corpora import made_split


def _pairs(documents: list[list[int]], room: int, seed: int = 0) -> PretrainingExamples:
    return sentence_order_pairs(made_split(documents), room, random_stream(seed, "pairs"))


def _labels(pairs: PretrainingExamples) -> np.ndarray:
    assert pairs.pair_labels is not None
    return pairs.pair_labels


def test_half_of_a_million_pairs_is_swapped() -> None:
    rows = np.arange(5)[:, None] * np.ones((1, 1_000_000), np.int64)
    found = _some_swapped(rows, random_stream(0, "pairs"))
    assert found[4].mean() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(1e6))
    assert np.unique(found, axis=1).T.tolist() == [[0, 1, 2, 3, 0], [2, 3, 0, 1, 1]]
    # Two sentences of a token, which no target parts, so that each document is one pair.
    labels = _labels(_pairs([[1, 1]] * 10_000, 50))
    assert len(labels) == 10_000
    assert labels.mean() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(1e4))


def test_a_swapped_pair_is_two_neighbours_in_the_other_order() -> None:
    stream = random.Random(0)
    documents = [[stream.randint(1, 30) for _ in range(stream.randint(2, 40))] for _ in range(200)]
    # Room for a whole document, so that nothing is cut to length.
    pairs = _pairs(documents, 10_000)
    labels = _labels(pairs)
    assert set(labels.tolist()) == {0, 1}
    in_order, swapped = labels == 0, labels == 1
    assert np.array_equal(pairs.first_ends[in_order], pairs.second_starts[in_order])
    assert np.array_equal(pairs.second_ends[swapped], pairs.first_starts[swapped])


def test_single_sentences_are_left_out_and_counted_and_never_paired_with_another_document() -> None:
    split = made_split([[5], [6], [1, 1], [7]])
    for seed in range(50):
        pairs = sentence_order_pairs(split, 50, random_stream(seed, "pairs"))
        assert (len(pairs), pairs.num_left_out) == (1, 3)
        assert sorted([int(pairs.first_starts[0]), int(pairs.second_starts[0])]) == [11, 12]


def test_a_sentence_that_fills_its_target_alone_is_left_out() -> None:
    pairs = _pairs([[60, 1, 1]], 50)
    assert pairs.num_left_out == 1
    assert min(pairs.first_starts[0], pairs.second_starts[0]) >= 60


def test_text_without_a_pair_is_refused_and_the_way_out_is_told() -> None:
    with pytest.raises(InputError, match=r"two sentences side by side.*Received: 3 single sentences.*--objective mlm"):
        _pairs([[5], [6], [7]], 50)
    with pytest.raises(InputError, match="two sentences side by side"):
        _pairs([], 50)


def test_one_document_is_enough() -> None:
    assert len(_pairs([[5, 6, 7, 8] * 20], 50)) > 5


def test_every_sentence_is_shown_once() -> None:
    stream = random.Random(1)
    documents = [[stream.randint(1, 30) for _ in range(stream.randint(2, 60))] for _ in range(100)]
    split = made_split(documents)
    pairs = sentence_order_pairs(split, 10_000, random_stream(0, "pairs"))
    shown = np.zeros(split.num_tokens, int)
    for starts, ends in ((pairs.first_starts, pairs.first_ends), (pairs.second_starts, pairs.second_ends)):
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            shown[start:end] += 1
    assert shown.max() == 1
    # What is not shown are the single sentences at the ends of documents.
    assert (shown == 0).sum() <= 30 * pairs.num_left_out


def test_the_cut_between_the_segments_is_evenly_spread() -> None:
    pairs = _pairs([[1] * 4000 for _ in range(40)], 11)
    firsts = np.where(
        _labels(pairs) == 0, pairs.first_ends - pairs.first_starts, pairs.second_ends - pairs.second_starts
    )
    full = pairs.text_lengths == 11
    shares = np.bincount(firsts[full], minlength=12)[1:11] / full.sum()
    assert shares == pytest.approx(np.full(10, 0.1), abs=5 * np.sqrt(0.09 / full.sum()))
