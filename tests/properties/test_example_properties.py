"""Examples of any corpus: every token once, nothing across documents, nothing longer than its room."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.examples.pretraining import blocks, document_sentences, full_sentences
from bertsmith.examples.sentence_pairs import sentence_order_pairs, sentence_pairs
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.random_streams import random_stream
from made_corpora import made_split

_documents = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=12), min_size=1, max_size=8)
_several_documents = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=12), min_size=2, max_size=8)


def _greedy(documents: list[list[int]], room: int, *, across: bool = False) -> list[int]:
    """Lengths of the examples, made sentence by sentence; separators between documents included."""
    lengths: list[int] = []
    gathered = 0
    for number, document in enumerate(documents):
        if number and not across:
            lengths.append(gathered)
            gathered = 0
        separator = int(across)
        for sentence in document:
            parts = [room] * (sentence // room) + ([sentence % room] if sentence % room else [])
            for part in parts:
                between = separator if gathered else 0
                if gathered + between + part > room:
                    lengths.append(gathered)
                    gathered = between = 0
                gathered += between + part
                separator = 0
    return [*lengths, gathered]


@given(_documents, st.integers(1, 40))
def test_document_sentences_hold_every_token_once_and_in_order(documents: list[list[int]], room: int) -> None:
    split = made_split(documents)
    examples = document_sentences(split, room)
    assert examples.first_starts[0] == 0
    assert np.array_equal(examples.first_starts[1:], examples.first_ends[:-1])
    assert examples.first_ends[-1] == split.num_tokens
    assert np.array_equal(examples.second_starts, examples.second_ends)
    assert examples.pair_labels is None
    assert examples.text_lengths.min() >= 1
    assert examples.text_lengths.max() <= room


@given(_documents, st.integers(1, 40))
def test_document_sentences_are_greedy_and_stop_at_documents(documents: list[list[int]], room: int) -> None:
    examples = document_sentences(made_split(documents), room)
    assert examples.text_lengths.tolist() == _greedy(documents, room)


@given(_documents, st.integers(1, 60))
def test_full_sentences_hold_every_token_once_and_are_greedy_over_documents(
    documents: list[list[int]], room: int
) -> None:
    split = made_split(documents)
    examples = full_sentences(split, room)
    assert examples.first_starts[0] == 0
    assert np.array_equal(examples.first_starts[1:], examples.first_ends[:-1])
    assert examples.first_ends[-1] == split.num_tokens
    bounds = split.sentence_starts[split.document_starts]
    assert examples.inner_bounds is not None
    assert np.array_equal(examples.inner_bounds, bounds[1:-1])
    inner = [
        ((start < bounds) & (bounds < end)).sum()
        for start, end in zip(examples.first_starts, examples.first_ends, strict=True)
    ]
    lengths = examples.text_lengths + np.array(inner)
    assert lengths.max() <= room
    assert lengths.tolist() == _greedy(documents, room, across=True)


@given(_documents, st.integers(2, 60))
def test_blocks_are_the_text_in_a_row_cut_at_equal_places(documents: list[list[int]], room: int) -> None:
    split = made_split(documents)
    examples = blocks(split, room)
    # The text with a separator, None, between documents; cut; a separator at the edge of a part is left out.
    bounds = split.sentence_starts[split.document_starts].tolist()
    row: list[int | None] = []
    for start, end in pairwise(bounds):
        row += [*([None] if start else []), *range(start, end)]
    parts = [row[start : start + room] for start in range(0, len(row), room)]
    expected = [[token for token in part if token is not None] for part in parts]
    ranges = zip(examples.first_starts.tolist(), examples.first_ends.tolist(), strict=True)
    assert [list(range(*each)) for each in ranges] == expected
    assert examples.inner_bounds is not None
    assert np.array_equal(examples.inner_bounds, bounds[1:-1])


@given(_documents, st.integers(2, 60), st.integers(0, 2**63))
def test_sentence_order_pairs_are_neighbours_of_one_document(documents: list[list[int]], room: int, seed: int) -> None:
    split = made_split(documents)
    try:
        pairs = sentence_order_pairs(split, room, random_stream(seed, "pairs"))
    except InputError:
        assert all(max(document) >= 2 or len(document) == 1 for document in documents)
        return
    labels = pairs.pair_labels
    assert labels is not None
    assert pairs.text_lengths.max() <= room
    assert (pairs.first_ends > pairs.first_starts).all()
    assert (pairs.second_ends > pairs.second_starts).all()
    assert np.array_equal(labels == 1, pairs.second_starts < pairs.first_starts)
    bounds = split.sentence_starts[split.document_starts]
    first = np.searchsorted(bounds, pairs.first_starts, side="right")
    assert np.array_equal(first, np.searchsorted(bounds, pairs.second_ends, side="left"))
    # Between the two lies nothing but what was cut off to make them fit, and no pair meets another.
    begin = np.minimum(pairs.first_starts, pairs.second_starts)
    end = np.maximum(pairs.first_ends, pairs.second_ends)
    assert (begin[1:] >= end[:-1]).all()


@given(_several_documents, st.integers(2, 60), st.integers(0, 2**63))
def test_sentence_pairs_fit_and_their_labels_are_true(documents: list[list[int]], room: int, seed: int) -> None:
    split = made_split(documents)
    pairs = sentence_pairs(split, room, random_stream(seed, "pairs"))
    labels = pairs.pair_labels
    assert labels is not None
    assert set(labels.tolist()) <= {0, 1}
    assert (pairs.first_ends > pairs.first_starts).all()
    assert (pairs.second_ends > pairs.second_starts).all()
    assert pairs.text_lengths.max() <= room
    document_bounds = split.sentence_starts[split.document_starts]
    first = np.searchsorted(document_bounds, pairs.first_starts, side="right")
    second = np.searchsorted(document_bounds, pairs.second_starts, side="right")
    for starts, ends in ((pairs.first_starts, pairs.first_ends), (pairs.second_starts, pairs.second_ends)):
        # A segment ends in the document where it begins.
        assert np.array_equal(
            np.searchsorted(document_bounds, starts, side="right"),
            np.searchsorted(document_bounds, ends, side="left"),
        )
    assert np.array_equal(labels == 1, first != second)
    follows = labels == 0
    assert (pairs.second_starts[follows] >= pairs.first_ends[follows]).all()


@given(_several_documents, st.integers(2, 60), st.integers(0, 2**63))
def test_sentence_pairs_are_a_function_of_the_stream(documents: list[list[int]], room: int, seed: int) -> None:
    first, second = (sentence_pairs(made_split(documents), room, random_stream(seed, "pairs")) for _ in range(2))
    for name in ("first_starts", "first_ends", "second_starts", "second_ends", "pair_labels"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
