"""Text as training takes it: its words normalised and cut, each but once."""

from collections.abc import Iterable, Iterator

from bertsmith.tokenization.chunks import chunks
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.pipeline import build_normalizer, build_pre_tokenizer

_MAX_WORDS = 1 << 18
_MAX_CHARACTERS = 1 << 23


class CutWords(dict[str, str]):
    """What normaliser and pre-tokenizer make of a word without whitespace: its parts, with a space between them.

    Parts hold no space, and nothing that either does reaches from one word into the next, so a text of them parted at
    spaces counts as the text itself does. What is kept has a bound.

    Args:
        config: of the tokenizer.
    """

    def __init__(self, config: TokenizerConfig) -> None:
        super().__init__()
        self._normalize = build_normalizer(config).normalize_str
        self._cut = build_pre_tokenizer(config.algorithm).pre_tokenize_str
        self._num_characters = 0

    def __missing__(self, word: str) -> str:
        if len(self) >= _MAX_WORDS or self._num_characters > _MAX_CHARACTERS:
            self.clear()
            self._num_characters = 0
        parts = self[word] = " ".join(part for part, _ in self._cut(self._normalize(word)))
        self._num_characters += len(word)
        return parts

    def texts(self, texts: Iterable[str]) -> Iterator[str]:
        """Texts in pieces of bounded length, with their words cut."""
        return (" ".join(map(self.__getitem__, text.split())) for text in chunks(texts))
