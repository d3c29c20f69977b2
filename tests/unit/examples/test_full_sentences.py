"""Whole sentences, gathered across documents."""

import numpy as np
import pytest

from bertsmith.examples.pretraining import PretrainingExamples, full_sentences
from bertsmith.foundation.errors import InputError
from made_corpora import made_split


def _ranges(examples: PretrainingExamples) -> list[tuple[int, int]]:
    return list(zip(examples.first_starts.tolist(), examples.first_ends.tolist(), strict=True))


def test_a_sequence_goes_on_with_the_next_document() -> None:
    examples = full_sentences(made_split([[2, 2], [3], [4, 4]]), 100)
    assert _ranges(examples) == [(0, 15)]
    assert examples.inner_bounds is not None
    assert examples.inner_bounds.tolist() == [4, 7]
    assert examples.pair_labels is None


def test_the_separator_between_documents_takes_its_place_in_the_room() -> None:
    # Four and three tokens and a separator between them: eight.
    documents = [[2, 2], [3], [4, 4]]
    assert _ranges(full_sentences(made_split(documents), 8)) == [(0, 7), (7, 15)]
    assert _ranges(full_sentences(made_split(documents), 7)) == [(0, 4), (4, 7), (7, 11), (11, 15)]
    # One more document is one more separator: 4 + 1 + 3 + 1 + 4.
    assert _ranges(full_sentences(made_split(documents), 13)) == [(0, 11), (11, 15)]
    assert _ranges(full_sentences(made_split(documents), 12)) == [(0, 7), (7, 15)]


def test_in_one_document_they_are_its_document_sentences() -> None:
    examples = full_sentences(made_split([[4, 3, 3, 5, 5, 1]]), 10)
    assert _ranges(examples) == [(0, 10), (10, 20), (20, 21)]
    assert examples.inner_bounds is not None
    assert len(examples.inner_bounds) == 0


def test_a_long_sentence_is_cut_and_its_rest_is_joined_by_the_next_document() -> None:
    assert _ranges(full_sentences(made_split([[25], [4], [2]]), 10)) == [(0, 10), (10, 20), (20, 29), (29, 31)]
    assert _ranges(full_sentences(made_split([[25], [4]]), 10)) == [(0, 10), (10, 20), (20, 29)]
    assert _ranges(full_sentences(made_split([[26], [4]]), 10)) == [(0, 10), (10, 20), (20, 26), (26, 30)]


def test_no_token_is_refused() -> None:
    with pytest.raises(InputError, match="at least one token"):
        full_sentences(made_split([]), 10)


def test_many_short_documents_waste_little_room() -> None:
    stream = np.random.Generator(np.random.Philox(key=0))
    documents = [stream.integers(2, 9, size=stream.integers(1, 4)).tolist() for _ in range(3000)]
    examples = full_sentences(made_split(documents), 126)
    assert examples.inner_bounds is not None
    inner = np.searchsorted(examples.inner_bounds, examples.first_ends) - np.searchsorted(
        examples.inner_bounds, examples.first_starts, side="right"
    )
    filled = examples.text_lengths + inner
    assert filled.max() == 126
    assert filled[:-1].min() > 126 - 9
