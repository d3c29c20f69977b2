"""The texts of an item, whatever its task."""

from collections.abc import Sequence
from typing import Any

from bertsmith.examples.choice_tables import ChoiceItem


def item_texts(item: Any) -> Sequence[str]:
    """Its texts, each once; none of what is no item.

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
