"""The texts of an item, whatever its task, and what is too long in them."""

from collections.abc import Sequence
from typing import Any

from bertsmith.examples.choice_tables import ChoiceItem
from bertsmith.tokenization.long_words import long_word_counts
from bertsmith.tokenization.tokenizer import Tokenizer


def item_texts(item: Any) -> Sequence[str]:
    """Its texts, a context that several choices share once; none of what is no item.

    Args:
        item: a text, a pair of texts, the words of a sentence, or a context with choices.
    """
    match item:
        case str():
            return [item]
        case list() | tuple():
            return [text for text in item if isinstance(text, str)]
        case ChoiceItem():
            return list(dict.fromkeys(text for pair in item.pairs for text in pair))
        case _:
            return []


def long_words_by_item(tokenizer: Tokenizer, items: Sequence[Any]) -> list[int]:
    """How many words of each item became unknown because they are longer than the tokenizer allows."""
    texts = [item_texts(item) for item in items]
    counts = iter(long_word_counts(tokenizer, [text for of_item in texts for text in of_item]))
    return [sum(next(counts) for _ in of_item) for of_item in texts]
