"""Which words of a domain are worth pieces of their own."""

from collections.abc import Iterator

import pytest
from small_tokenizers import SENTENCES

from bertsmith.foundation import errors
from bertsmith.tokenization import Tokenizer, domain_words

TEXTS = [
    "overwrite overwrites (overwrite), overwrite-overwrite overwrite_x walk walk walk walk walk walk",
    "zzz zzz zzz zzz zzz zzz",
    "كتابنا وكتابنا كتابنا كتابنا كتابنا كتابنا",
    "The fox, the dog. 東京 Overwrite overwrite.",
]


def test_the_words_that_save_most_come_first_and_whole_words_alone_count(tokenizer: Tokenizer) -> None:
    words = domain_words(tokenizer, TEXTS, 10)
    pieces = {word: len(ids) for word, ids in zip(words, tokenizer.word_pieces(words), strict=True)}
    times = {"overwrite": 5, "zzz": 6, "كتابنا": 5}
    assert set(words) == {word for word in times if len(tokenizer.word_pieces([word])[0]) > 1}
    saved = [times[word] * (pieces[word] - 1) for word in words]
    assert saved == sorted(saved, reverse=True)
    assert domain_words(tokenizer, TEXTS, 1) == words[:1]
    assert domain_words(tokenizer, TEXTS, 10, min_occurrences=7) == []


def test_adding_the_chosen_words_saves_what_was_counted(tokenizer: Tokenizer) -> None:
    texts = [*TEXTS * 2, *SENTENCES]
    before = sum(map(len, tokenizer.piece_ids(texts)))
    words = domain_words(tokenizer, texts, 20)
    after = sum(map(len, tokenizer.with_words(words).piece_ids(texts)))
    assert after < before
    again = [word for word in domain_words(tokenizer.with_words(words), texts, 20) if word in words]
    assert again == []


def test_ties_and_order_rest_on_the_words_alone(tokenizer: Tokenizer) -> None:
    texts = ["qqxxjj jjxxqq xxjjqq"] * 6
    words = domain_words(tokenizer, texts, 3)
    assert words == domain_words(tokenizer, [" ".join(reversed(text.split())) for text in texts], 3)
    saved = {word: len(ids) for word, ids in zip(words, tokenizer.word_pieces(words), strict=True)}
    assert words == sorted(words, key=lambda word: (-saved[word], word))


def test_words_are_counted_as_the_normaliser_has_them() -> None:
    from small_tokenizers import trained

    tokenizer = trained("wordpiece", lowercase=True, strip_vowel_marks=True)
    texts = ["Overwrite OVERWRITE overwrite overWrite overwritE كِتَابُنَا"]
    assert domain_words(tokenizer, texts, 5) == ["overwrite"]


def test_texts_are_streamed_and_the_rarest_are_forgotten_past_the_limit(tokenizer: Tokenizer) -> None:
    def texts() -> Iterator[str]:
        for number in range(3):
            yield " ".join(f"unique{'abcdefghij'[i % 10]}{i}q{number}" for i in range(500)) + " overwrite" * 20

    assert domain_words(tokenizer, texts(), 1, min_occurrences=5, max_words=50) == ["overwrite"]


@pytest.mark.parametrize("wrong", [{"count": 0}, {"count": 1, "min_occurrences": 0}, {"count": 1, "max_words": -1}])
def test_numbers_below_one_are_refused(tokenizer: Tokenizer, wrong: dict[str, int]) -> None:
    with pytest.raises(errors.InputError, match="must be 1 or more"):
        domain_words(tokenizer, TEXTS, **wrong)
