"""A number for a text or a pair of texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from bertsmith.inference.predictor import TextPredictor, TextRequest, text_values


@dataclass(frozen=True)
class ValuePrediction:
    """The value of a text."""

    text: str
    pair: str | None
    value: float
    """In the units of the training rows."""
    cut: bool
    """Whether something of the text was not seen, being longer than the model takes."""

    @property
    def values(self) -> dict[str, Any]:
        """Plain values, as ``--json`` prints them."""
        return text_values(self.text, self.pair) | {"value": self.value, "cut": self.cut}


class RegressPredictor(TextPredictor[ValuePrediction]):
    """Tells the value of texts or pairs."""

    task = "regress"

    def decode(self, request: TextRequest, outputs: Sequence[Float[np.ndarray, " one"]]) -> ValuePrediction:
        """A text's value; those of its windows are averaged."""
        return ValuePrediction(request.text, request.pair, float(np.mean(outputs, dtype=np.float64)), request.cut)
