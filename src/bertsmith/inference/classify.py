"""Classifying texts and pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from bertsmith.inference.predictor import TextPredictor, TextRequest, text_values
from bertsmith.objectives.classification import best_class
from bertsmith.objectives.softmax import softmax


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

    @property
    def values(self) -> dict[str, Any]:
        """Plain values, as ``--json`` prints them."""
        found = {"label": self.label, "score": self.score, "scores": self.scores, "cut": self.cut}
        return text_values(self.text, self.pair) | found


class ClassifyPredictor(TextPredictor[ClassPrediction]):
    """Tells the class of texts or pairs."""

    task = "classify"

    def decode(self, request: TextRequest, outputs: Sequence[Float[np.ndarray, " labels"]]) -> ClassPrediction:
        """A text's class; the scores of its windows are averaged."""
        probabilities = softmax(np.mean(outputs, axis=0))
        label, scores = best_class(probabilities, self.labels)
        return ClassPrediction(request.text, request.pair, label, scores[label], scores, request.cut)
