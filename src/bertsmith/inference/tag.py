"""Labelling the words of texts: entities, or parts of speech."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bertsmith.examples.tag_schemes import scheme_of_labels
from bertsmith.examples.tagging import WordCutter, label_without_pieces
from bertsmith.foundation.errors import InputError
from bertsmith.inference.engine import Engine
from bertsmith.inference.predictor import Predictor
from bertsmith.inference.running import TokenWindow
from bertsmith.objectives.softmax import softmax
from bertsmith.objectives.tagging import decoded_entities
from bertsmith.text.words import word_spans
from bertsmith.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class TaggedWord:
    """A word with what it was taken for."""

    word: str
    label: str
    score: float
    """The label's probability; 0 for a word that the tokenizer does not see, whose label is a stated one."""


@dataclass(frozen=True)
class Entity:
    """Words that belong together."""

    label: str
    """Its type."""
    text: str
    """As it stands in the text."""
    start: int
    end: int
    """The range ``[start, end)`` in the text, in code points."""
    score: float
    """Mean of its words' scores."""


@dataclass(frozen=True)
class TagPrediction:
    """The words of a text with their labels, and the entities that they make."""

    text: str
    """As given; words that were given as a list are joined by a space."""
    words: tuple[TaggedWord, ...]
    """Every word once, in order."""
    entities: tuple[Entity, ...]
    """None where the labels write no entities, as parts of speech do."""
    cut: bool
    """Whether a single word is longer than the model sees, so that only its beginning counted."""

    @property
    def values(self) -> dict[str, Any]:
        """Plain values, as ``--json`` prints them."""
        return asdict(self) | {"words": list(map(asdict, self.words)), "entities": list(map(asdict, self.entities))}


@dataclass(frozen=True)
class TagRequest:
    """A text as the model sees it."""

    text: str
    spans: tuple[tuple[int, int], ...]
    """Where each word stands in the text."""
    windows: tuple[TokenWindow, ...]
    words: tuple[Int[np.ndarray, " _"], ...]
    """For each window, the number of the word whose label is read at each token; -1 where none is."""
    cut: bool


class TagPredictor(Predictor[str | Sequence[str], TagRequest, TagPrediction]):
    """Labels every word of a text once.

    A text is cut into words by `text.words`; a list is taken as the words that it holds. A text that is too long is
    read in windows that overlap, each word in the one in which it has the most text around it.
    """

    task = "tag"

    def __init__(self, engine: Engine, tokenizer: Tokenizer) -> None:
        super().__init__(engine, tokenizer)
        self._writes_entities = scheme_of_labels(self.labels) is not None

    def prepare(self, items: Sequence[Any], *, first: int = 1) -> list[TagRequest]:
        """Texts and lists of words as windows.

        Raises:
            InputError: for a blank text, an empty list, or what is neither a text nor a list of words.
        """
        cutter = WordCutter(self._tokenizer, self.max_length)
        return [self._request(number, item, cutter) for number, item in enumerate(self.plain(items, first), first)]

    def decode(self, request: TagRequest, outputs: Sequence[Float[np.ndarray, "_ labels"]]) -> TagPrediction:
        """The label of every word, and the entities."""
        words = [request.text[start:end] for start, end in request.spans]
        ids = np.full(len(words), self.labels.index(label_without_pieces(self.labels)))
        scores = np.zeros(len(words))
        for numbers, logits in zip(request.words, outputs, strict=True):
            probabilities = softmax(logits[numbers >= 0])
            ids[numbers[numbers >= 0]] = probabilities.argmax(1)
            scores[numbers[numbers >= 0]] = probabilities.max(1)
        labels = [self.labels[number] for number in ids.tolist()]
        found = decoded_entities(labels, scores) if self._writes_entities else []
        entities: list[Entity] = []
        for span, score in found:
            start, end = request.spans[span.start][0], request.spans[span.end - 1][1]
            entities.append(Entity(span.label, request.text[start:end], start, end, score))
        tagged = tuple(TaggedWord(*one) for one in zip(words, labels, scores.tolist(), strict=True))
        return TagPrediction(request.text, tagged, tuple(entities), request.cut)

    def _request(self, number: int, item: Any, cutter: WordCutter) -> TagRequest:
        if isinstance(item, str):
            if not item.strip():
                raise InputError("A text must not be blank", f"text {number}: “{item}”", "Give it some text.")
            text, spans = item, word_spans(item)
            words = [text[start:end] for start, end in spans]
        else:
            words = _checked(number, item)
            text = " ".join(words)
            ends = np.cumsum([len(word) + 1 for word in words]) - 1
            spans = [(end - len(word), end) for word, end in zip(words, ends.tolist(), strict=True)]
        windows, cut = cutter.windows(words)
        seen = tuple(TokenWindow(one.token_ids, np.zeros(len(one.token_ids), np.int64)) for one in windows)
        return TagRequest(text, tuple(spans), seen, tuple(one.words for one in windows), cut)


def _checked(number: int, item: Any) -> list[str]:
    """The words of a list."""
    words = list(item) if isinstance(item, Iterable) else [item]
    if not words:
        raise InputError("A list of words must hold some", f"text {number}: none", "Give it words.")
    if not all(isinstance(word, str) for word in words):
        raise InputError(
            "tag takes texts, or lists of words", f"text {number}: {item!r:.60}", "Write each word as a string."
        )
    return words
