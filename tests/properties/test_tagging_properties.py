"""Words, schemes and windows of tagging, over random ones."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.examples.tag_schemes import (
    Scheme,
    Span,
    entity_spans,
    labels_of_spans,
    scheme_breaks,
)
from bertsmith.examples.tagging import WordCutter, word_ranges
from bertsmith.text.sentences import has_visible
from bertsmith.text.words import word_spans
from made_corpora import WORDS, made_tokenizer

MARKS = " \t\n.,;:!?'\u2019-_/@&()\u060c\u061f\u200b\u200c\u200d\u200f\ufe0f\u0301\u064e\u0640😊👍🏽🇩🇪東aZ9٣ي"
TEXTS = st.one_of(st.text(max_size=40), st.text(st.sampled_from(MARKS), max_size=40))
LABELS = st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y", "E-X", "S-Y"])


@given(TEXTS)
@settings(deadline=None)
def test_words_stand_in_order_without_space_and_leave_nothing_visible_out(text: str) -> None:
    spans = word_spans(text)
    end = 0
    for start, stop in spans:
        assert end <= start < stop
        assert not any(character.isspace() for character in text[start:stop])
        assert not has_visible(text[end:start])
        end = stop
    assert not has_visible(text[end:])


@given(st.text(st.sampled_from("كتبودلرسم\u064e\u0651\u0640"), min_size=1, max_size=12).filter(str.isalpha))
def test_an_arabic_word_is_never_parted(word: str) -> None:
    assert word_spans(f"{word} {word}.") == [
        (0, len(word)),
        (len(word) + 1, 2 * len(word) + 1),
        (2 * len(word) + 1, 2 * len(word) + 2),
    ]


@pytest.mark.parametrize("scheme", ["BIO", "IOB1", "IOBES", "BILOU"])
@given(labels=st.lists(LABELS, max_size=15))
def test_entities_survive_being_written_in_a_scheme(scheme: Scheme, labels: list[str]) -> None:
    spans = entity_spans(labels)
    written = labels_of_spans(spans, len(labels), scheme)
    assert entity_spans(written) == spans
    assert scheme_breaks(written, scheme) == []
    if scheme != "IOB1":
        assert entity_spans(written, strict=scheme) == spans


@given(st.lists(LABELS, max_size=15), st.sampled_from(["BIO", "IOBES"]))
def test_strict_entities_are_some_of_the_lenient_ones_where_nothing_is_broken(
    labels: list[str], scheme: Scheme
) -> None:
    strict = entity_spans(labels, strict=scheme)
    assert all(isinstance(span, Span) and 0 <= span.start < span.end <= len(labels) for span in strict)
    assert all(before.end <= span.start for before, span in pairwise(strict))
    if not scheme_breaks(labels, "IOBES"):
        assert entity_spans(labels, strict="IOBES") == entity_spans(labels)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(1, 20), st.integers(0, 19))
@settings(max_examples=300)
def test_windows_read_every_word_once_and_never_hold_too_much(sizes: list[int], room: int, overlap: int) -> None:
    capped = np.minimum(np.array(sizes), room)
    ranges = word_ranges(capped, room, min(overlap, room - 1))
    read = [word for _, (first, end) in ranges for word in range(first, end)]
    assert read == list(range(len(sizes)))
    for (first, end), (from_, to) in ranges:
        assert first <= from_ <= to <= end
        assert capped[first:end].sum() <= room
    starts = [first for (first, _), _ in ranges]
    assert starts == sorted(set(starts))


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
@given(
    words=st.lists(
        st.one_of(
            st.sampled_from(WORDS), st.sampled_from(["", "\n", "\u200b", "x" * 40, "[SEP]"]), st.text(max_size=6)
        ),
        min_size=1,
        max_size=40,
    ),
    max_length=st.integers(5, 40),
)
@settings(max_examples=60, deadline=None)
def test_every_word_with_a_piece_is_read_at_its_first_piece(algorithm: str, words: list[str], max_length: int) -> None:
    cutter = WordCutter(made_tokenizer(algorithm), max_length)
    pieces = cutter.pieces(words)
    windows, _ = cutter.windows(words)
    read = [
        (word, window.token_ids[place]) for window in windows for place, word in enumerate(window.words) if word >= 0
    ]
    assert read == [(number, ids[0]) for number, ids in enumerate(pieces) if len(ids)]
    assert all(len(window.token_ids) <= max_length for window in windows)
