"""Words that are too long for a tokenizer are counted."""

from bertsmith.tokenization.long_words import long_word_counts
from made_corpora import made_tokenizer


def test_a_word_counts_from_one_character_past_the_limit() -> None:
    tokenizer = made_tokenizer()
    limit = tokenizer.max_word_characters
    assert limit is not None
    texts = ["a" * limit, "a" * (limit + 1), f"{'a' * (limit + 1)}, {'b' * (limit + 9)} boat", ""]
    assert long_word_counts(tokenizer, texts) == [0, 1, 2, 0]


def test_long_stretches_of_several_words_are_none() -> None:
    tokenizer = made_tokenizer()
    limit = tokenizer.max_word_characters or 0
    # Punctuation parts words, and what is unknown for another reason is short.
    assert long_word_counts(tokenizer, ["boat-" * limit, "猫" * (2 * limit), "\U0001f6a3 " * limit]) == [0, 0, 0]


def test_a_tokenizer_without_a_limit_has_none() -> None:
    assert long_word_counts(made_tokenizer("bpe"), ["a" * 5000]) == [0]
