"""Embedding texts: a vector for each, near for texts that are alike."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from bertsmith.examples.task_examples import LongTexts
from bertsmith.foundation.errors import InputError
from bertsmith.inference.predictor import TextPredictor, TextRequest, listed


@dataclass(frozen=True, eq=False)
class Embedding:
    """What a text became."""

    text: str
    embedding: Float[np.ndarray, " size"]
    cut: bool
    """Whether the text is longer than the model sees, so that only its beginning (or end, as in training) counted."""

    @property
    def values(self) -> dict[str, Any]:
        """Plain values, as ``--json`` prints them."""
        return {"text": self.text, "embedding": self.embedding.tolist(), "cut": self.cut}


class EmbedPredictor(TextPredictor[Embedding]):
    """Embeds texts, pooled as the model was saved with.

    Any encoder can do it, and `notes` says where it was not trained for it: its embeddings are then the mean of its
    tokens, as sentence-transformers makes them of such a model.

    A text that is too long is cut, never read in windows: so every program that opens the folder gives the same vector.
    """

    task = "embed"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of these embeddings, a line each."""
        known = self._engine.config.heads.task
        if known == self.task:
            return ()
        trained = "trained as an encoder alone" if known is None else f"trained to {known}"
        return (
            f"this model was {trained}, and not to embed: a text's embedding is the mean of its tokens. "
            "bertsmith finetune embed makes better ones",
        )

    @property
    def long_texts(self) -> LongTexts:
        """Which end of a text that is too long is kept."""
        return self._tokenizer.long_texts

    @property
    def size(self) -> int:
        """Numbers of a vector."""
        return self._engine.config.encoder.hidden_size

    def vectors(self, texts: str | Iterable[str]) -> Float[np.ndarray, "texts size"]:
        """The embeddings of texts as the rows of a matrix in fp32, of shape (0, size) for none; raises as a call."""
        requests = self.prepare(listed(texts))
        rows = self.run([request.windows[0] for request in requests])
        return np.stack(rows) if rows else np.empty((0, self.size), np.float32)

    def prepare(self, items: Sequence[Any], *, first: int = 1) -> list[TextRequest]:
        """Texts as tokens, cut where they are too long.

        Raises:
            InputError: for a blank text, one without a token, or a pair.
        """
        items = self.plain(items, first)
        for number, item in enumerate(items, first):
            if isinstance(item, tuple | list):
                raise InputError(
                    "embed takes texts that stand alone", f"text {number}, a pair", "Give its texts in a list."
                )
        requests = super().prepare(items, first=first)
        for number, request in enumerate(requests, first):
            if not len(request.windows[0].token_ids):
                raise InputError(
                    "A text must have tokens", f"none in text {number}: “{request.text:.60}”", "Leave it out."
                )
        return requests

    def decode(self, request: TextRequest, outputs: Sequence[Float[np.ndarray, " size"]]) -> Embedding:
        """A text's vector, as the model gave it."""
        return Embedding(request.text, outputs[0], request.cut)
