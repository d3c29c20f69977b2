"""The hundred cloze lines: their form, their honesty, and how little a guess by frequency is worth."""

import re
from collections import Counter

import pytest

from bertsmith.recipes.demonstration.corpus import ClozeLine, load_cloze, python_documentation

_MASK = "[MASK]"


def _flat(text: str) -> str:
    return " ".join(text.lower().split())


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


@pytest.fixture(scope="module")
def cloze() -> tuple[ClozeLine, ...]:
    return load_cloze()


@pytest.fixture(scope="module")
def corpus() -> str:
    return "\n".join(document.text for document in python_documentation())


@pytest.fixture(scope="module")
def word_counts(corpus: str) -> Counter[str]:
    return Counter(_words(corpus))


def test_there_are_a_hundred_different_lines_with_one_mask_each(cloze: tuple[ClozeLine, ...]) -> None:
    assert len({line.text for line in cloze}) == len(cloze) == 100
    assert [line.text for line in cloze if line.text.count(_MASK) != 1] == []


def test_every_answer_is_one_lower_case_word(cloze: tuple[ClozeLine, ...]) -> None:
    assert [line.answer for line in cloze if not re.fullmatch("[a-z]+", line.answer)] == []


def test_at_least_sixty_answers_differ(cloze: tuple[ClozeLine, ...]) -> None:
    assert len({line.answer for line in cloze}) >= 60


def test_every_answer_occurs_often_in_the_corpus(cloze: tuple[ClozeLine, ...], word_counts: Counter[str]) -> None:
    assert {line.answer: word_counts[line.answer] for line in cloze if word_counts[line.answer] < 50} == {}


def test_no_line_stands_word_for_word_in_the_corpus(cloze: tuple[ClozeLine, ...], corpus: str) -> None:
    # Compared as words alone, so that punctuation and line breaks cannot hide a copy.
    running_words = f" {' '.join(_words(_flat(corpus)))} "
    filled = [" ".join(_words(line.text.replace(_MASK, line.answer))) for line in cloze]
    assert [sentence for sentence in filled if f" {sentence} " in running_words] == []


def test_the_five_commonest_words_answer_at_most_a_tenth_of_the_lines(
    cloze: tuple[ClozeLine, ...], word_counts: Counter[str]
) -> None:
    commonest = {word for word, _ in word_counts.most_common(5)}
    assert len(commonest) == 5
    assert sum(line.answer in commonest for line in cloze) <= 0.10 * len(cloze)
