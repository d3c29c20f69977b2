"""Whole sentences, gathered inside a document."""

import pytest

from bertsmith.examples.pretraining import PretrainingExamples, document_sentences
from bertsmith.foundation.errors import InputError
from made_corpora import made_split


def _ranges(examples: PretrainingExamples) -> list[tuple[int, int]]:
    return list(zip(examples.first_starts.tolist(), examples.first_ends.tolist(), strict=True))


def test_sentences_are_gathered_until_the_next_does_not_fit() -> None:
    assert _ranges(document_sentences(made_split([[4, 3, 3, 5, 5, 1]]), 10)) == [(0, 10), (10, 20), (20, 21)]


def test_a_sequence_ends_with_its_document() -> None:
    assert _ranges(document_sentences(made_split([[2, 2], [3], [4, 4]]), 100)) == [(0, 4), (4, 7), (7, 15)]


def test_a_long_sentence_is_cut_and_its_rest_is_joined_by_the_next() -> None:
    assert _ranges(document_sentences(made_split([[3, 25, 4, 2]]), 10)) == [
        (0, 3),
        (3, 13),
        (13, 23),
        (23, 32),
        (32, 34),
    ]


def test_a_sentence_as_long_as_the_room_stays_whole() -> None:
    assert _ranges(document_sentences(made_split([[10, 10], [1]]), 10)) == [(0, 10), (10, 20), (20, 21)]


def test_fifty_tokens_in_a_room_of_128_are_one_short_sequence() -> None:
    assert _ranges(document_sentences(made_split([[50]]), 128)) == [(0, 50)]
    assert _ranges(document_sentences(made_split([[300]]), 128)) == [(0, 128), (128, 256), (256, 300)]


def test_no_token_is_refused() -> None:
    with pytest.raises(InputError, match="at least one token"):
        document_sentences(made_split([]), 10)
