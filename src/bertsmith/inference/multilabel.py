"""Any number of labels for a text or a pair of texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from bertsmith.inference.predictor import TextPredictor, TextRequest, text_values
from bertsmith.objectives.multilabel import decoded_labels, label_probabilities


@dataclass(frozen=True)
class LabelsPrediction:
    """The labels of a text."""

    text: str
    pair: str | None
    labels: tuple[str, ...]
    """Those whose probability reaches the label's threshold, the likeliest first; there may be none."""
    scores: dict[str, float]
    """Probability of each label by itself, the likeliest first."""
    cut: bool
    """Whether something of the text was not seen, being longer than the model takes."""

    @property
    def values(self) -> dict[str, Any]:
        """Plain values, as ``--json`` prints them."""
        found = {"labels": list(self.labels), "scores": self.scores, "cut": self.cut}
        return text_values(self.text, self.pair) | found


class MultilabelPredictor(TextPredictor[LabelsPrediction]):
    """Tells the labels of texts or pairs."""

    task = "multilabel"

    @property
    def thresholds(self) -> tuple[float, ...]:
        """From which probability on each label is given, in the order of `labels`."""
        return self._engine.config.heads.thresholds or (0.5,) * len(self.labels)

    def decode(self, request: TextRequest, outputs: Sequence[Float[np.ndarray, " labels"]]) -> LabelsPrediction:
        """A text's labels; the scores of its windows are averaged."""
        probabilities = label_probabilities(np.mean(outputs, axis=0))
        given, scores = decoded_labels(probabilities, self.labels, self.thresholds)
        return LabelsPrediction(request.text, request.pair, tuple(given), scores, request.cut)
