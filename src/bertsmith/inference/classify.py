"""Classifying texts and pairs, in three phases: prepare the windows, run the model, decode the scores."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bertsmith.engine.device import Device
from bertsmith.examples.task_examples import kept_tokens
from bertsmith.foundation.errors import InputError
from bertsmith.inference.running import TokenWindow
from bertsmith.inference.sequence_outputs import window_log_probabilities
from bertsmith.model.heads import Model
from bertsmith.objectives.classification import best_class
from bertsmith.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class ClassPrediction:
    """What a text was taken for."""

    text: str
    pair: str | None
    label: str
    """The likeliest class."""
    score: float
    """Its probability."""
    scores: dict[str, float]
    """Probability of each class, the likeliest first."""
    cut: bool
    """Whether the text is longer than the model sees, so that only its beginning (or end, as in training) counted."""


@dataclass(frozen=True)
class ClassRequest:
    """A text as the model sees it."""

    text: str
    pair: str | None
    window: TokenWindow
    cut: bool


class ClassifyPredictor:
    """Tells the class of texts or pairs.

    Args:
        model: a model with a classifier.
        tokenizer: the one it was trained with. Its ``model_max_length`` says how much of a text is seen, and its
            ``truncation_side`` which part of a longer one.
        device: where and how it runs.

    Raises:
        InputError: if the model has no classifier.
    """

    def __init__(self, model: Model, tokenizer: Tokenizer, device: Device) -> None:
        if model.classifier is None:
            raise InputError(
                "classify needs a model that was trained to classify",
                "an encoder without a trained classifier",
                "Train one: bertsmith finetune classify TRAIN --model DIR --out DIR.",
            )
        self._model = model
        self._tokenizer = tokenizer
        self._device = device
        positions = model.config.encoder.num_positions
        self.max_length = min(positions, tokenizer.model_max_length or positions)
        """Most tokens of a sequence."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Every class."""
        return self._model.config.heads.labels

    def __call__(self, texts: Sequence[str | tuple[str, str]]) -> list[ClassPrediction]:
        """Classify texts, or pairs of texts, in order.

        A prediction does not depend on what stands beside the text, beyond rounding (1e-5 in fp32).

        Raises:
            InputError: for no texts, or a blank one.
        """
        if isinstance(texts, str):  # A string is a sequence too, of letters.
            texts = [texts]
        if not len(texts):
            raise InputError("There must be a text to classify", "none", "Give one text or more.")
        requests = self.prepare(texts)
        rows = self.run([request.window for request in requests])
        return [self.decode(request, row) for request, row in zip(requests, rows, strict=True)]

    def prepare(self, texts: Sequence[str | tuple[str, str]]) -> list[ClassRequest]:
        """Texts as tokens, cut where they are too long.

        Raises:
            InputError: for a blank text.
        """
        for number, item in enumerate(texts, 1):
            for part in (item,) if isinstance(item, str) else item:
                if not part.strip():
                    raise InputError("A text must not be blank", f"text {number}: “{part}”", "Give it some text.")
        requests: list[ClassRequest] = []
        for item, encoding in zip(texts, self._tokenizer.encode_batch(texts), strict=True):
            kept = kept_tokens(encoding, self.max_length, self._tokenizer.long_texts)
            window = TokenWindow(encoding.token_ids[kept], encoding.segment_ids[kept])
            text, pair = (item, None) if isinstance(item, str) else item
            requests.append(ClassRequest(text, pair, window, len(kept) < len(encoding)))
        return requests

    def run(self, windows: Sequence[TokenWindow]) -> Float[np.ndarray, "windows labels"]:
        """Probability of each class for each window."""
        return np.exp(window_log_probabilities(self._model, windows, self._device))

    def decode(self, request: ClassRequest, probabilities: Float[np.ndarray, " labels"]) -> ClassPrediction:
        """A text's class out of its probabilities."""
        label, scores = best_class(probabilities, self.labels)
        return ClassPrediction(request.text, request.pair, label, scores[label], scores, request.cut)
