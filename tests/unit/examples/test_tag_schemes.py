"""Schemes of entity labels: told, turned into one another, and broken."""

import pytest

from bertsmith.examples.tag_schemes import (
    Scheme,
    Span,
    entity_spans,
    labels_of_spans,
    odd_labels,
    scheme_breaks,
    scheme_of_labels,
    scheme_of_sentences,
)

SPANS = [Span(1, 3, "PER"), Span(3, 4, "PER"), Span(4, 5, "LOC"), Span(6, 9, "creative-work")]
WRITTEN: dict[Scheme, str] = {
    "BIO": "O B-PER I-PER B-PER B-LOC O B-creative-work I-creative-work I-creative-work",
    "IOB1": "O I-PER I-PER B-PER I-LOC O I-creative-work I-creative-work I-creative-work",
    "IOBES": "O B-PER E-PER S-PER S-LOC O B-creative-work I-creative-work E-creative-work",
    "BILOU": "O B-PER L-PER U-PER U-LOC O B-creative-work I-creative-work L-creative-work",
}


@pytest.mark.parametrize("scheme", WRITTEN)
def test_entities_are_written_and_read_in_every_scheme(scheme: Scheme) -> None:
    labels = WRITTEN[scheme].split()
    assert labels_of_spans(SPANS, 9, scheme) == labels
    assert entity_spans(labels) == SPANS
    assert scheme_of_sentences([labels]) == scheme
    assert scheme_breaks(labels, scheme) == []
    if scheme != "IOB1":
        assert entity_spans(labels, strict=scheme) == SPANS
        assert scheme_of_labels(labels) == scheme


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        ("O B I", "BIO"),
        ("B-X I-X", "BIO"),
        ("O B-X B-Y OO IO", None),
        ("O B-X B-Y B-Z OO IO", "BIO"),
        ("NOUN VERB", None),
        ("O NOUN B-X", None),
        ("B I", None),
        ("O", None),
        ("O S-X", "IOBES"),
        ("O U-X", "BILOU"),
        ("1 2 3", None),
    ],
)
def test_the_scheme_is_told_from_the_labels(labels: str, scheme: Scheme | None) -> None:
    assert scheme_of_labels(labels.split()) == scheme


def test_a_few_slips_do_not_hide_the_scheme_of_sentences() -> None:
    good = ["I-X", "I-X", "O"]
    slip = ["O", "B-X", "O"]
    assert scheme_of_sentences([good] * 20 + [slip]) == "IOB1"
    assert scheme_of_sentences([good] * 19 + [slip]) == "BIO"
    assert scheme_of_sentences([slip] * 20 + [good]) == "BIO"
    assert scheme_breaks(slip, "IOB1") == [1]


@pytest.mark.parametrize(
    ("labels", "spans"),
    [
        ("I-X I-X O", [Span(0, 2, "X")]),
        ("B-X I-Y I-Y", [Span(0, 1, "X"), Span(1, 3, "Y")]),
        ("B-X O I-X", [Span(0, 1, "X"), Span(2, 3, "X")]),
        ("B-X I-X B-X", [Span(0, 2, "X"), Span(2, 3, "X")]),
        ("E-X E-X", [Span(0, 1, "X"), Span(1, 2, "X")]),
        ("B I O B", [Span(0, 2, "_"), Span(3, 4, "_")]),
        ("B-X OO I-X", [Span(0, 1, "X"), Span(2, 3, "X")]),
        ("O O", []),
    ],
)
def test_broken_labels_are_read_leniently(labels: str, spans: list[Span]) -> None:
    assert entity_spans(labels.split()) == spans


@pytest.mark.parametrize(
    ("labels", "scheme", "spans"),
    [
        ("I-X I-X B-X I-Y I-X", "BIO", [Span(2, 3, "X")]),
        ("B-X I-X O", "IOBES", []),
        ("B-X B-X I-X E-X E-X", "IOBES", [Span(1, 4, "X")]),
        ("I-X S-X E-X", "IOBES", [Span(1, 2, "X")]),
        ("B-X L-X B-Y U-Y", "BILOU", [Span(0, 2, "X"), Span(3, 4, "Y")]),
    ],
)
def test_strictly_only_what_is_written_properly_counts(labels: str, scheme: Scheme, spans: list[Span]) -> None:
    assert entity_spans(labels.split(), strict=scheme) == spans


@pytest.mark.parametrize(
    ("labels", "scheme", "broken"),
    [
        ("I-X I-X B-X I-Y I-Y", "BIO", [0, 3]),
        ("B-X I-X O I-X", "BIO", [3]),
        ("B-X I-X B-X B-Y", "IOB1", [0, 3]),
        ("B-X O S-Y I-Y E-Y B-Z", "IOBES", [0, 3, 5]),
        ("B-X I-X S-X", "IOBES", [1]),
        ("B-X L-Y U-X", "BILOU", [0, 1]),
    ],
)
def test_broken_words_are_found(labels: str, scheme: Scheme, broken: list[int]) -> None:
    assert scheme_breaks(labels.split(), scheme) == broken


def test_labels_of_no_entity_are_odd() -> None:
    assert odd_labels(["O", "B-X", "OO", "IO", "I--ORG", "X-Y", "OO"]) == ["IO", "OO", "X-Y"]
