"""Long texts in pieces of bounded length."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

_MAX_CHUNK_CHARACTERS = 100_000
_SEARCHED_CHARACTERS = 1000
_MAX_COUNTED_CHARACTERS = 4_000_000
_SPACE = re.compile(r"\s")


def chunks(texts: Iterable[str]) -> Iterator[str]:
    """The same words in texts of bounded length: cut at whitespace, or anywhere where there is none for too long."""
    for text in texts:
        start = 0
        while start < len(text):
            end = min(start + _MAX_CHUNK_CHARACTERS, len(text))
            if end < len(text):
                end = _last_space(text, start, end)
            yield text[start:end]
            start = end


def counted_words(texts: Iterable[str]) -> Iterator[Counter[str]]:
    """Words parted by whitespace and how often each came, for one long stretch of text after the other.

    What is done once for each word is far less than the text.
    """
    words: Counter[str] = Counter()
    num_characters = 0
    for text in chunks(texts):
        words.update(text.split())
        num_characters += len(text)
        if num_characters >= _MAX_COUNTED_CHARACTERS:
            yield words
            words, num_characters = Counter(), 0
    yield words


def _last_space(text: str, start: int, end: int) -> int:
    # Searched only near the end, so that the time stays in proportion to the text.
    first = max(start, end - _SEARCHED_CHARACTERS)
    spaces = [found.end() for found in _SPACE.finditer(text, first, end)]
    return spaces[-1] if spaces else end
