"""Probabilities out of scores."""

import numpy as np
from jaxtyping import Float


def softmax(scores: Float[np.ndarray, "*rows outputs"]) -> Float[np.ndarray, "*rows outputs"]:
    """Probability of each output of a row, in double precision."""
    exponentials = np.exp(scores.astype(np.float64) - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)
