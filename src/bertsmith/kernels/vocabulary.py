"""Sums over a block of scores of the vocabulary, and the gradients of the logarithm of such sums.

A block is ``[tokens of the vocabulary, rows of the batch]``, the way round in which most of the matrix products around
it read their operands as they lie in memory.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from bertsmith.kernels.library import call, usable


def add_exponential_sums(
    scores: Float[Tensor, "block rows"], weights: Float[Tensor, " block"], sums: Float[Tensor, " rows"]
) -> None:
    """Add ``sum_j exp(score_ji) * weight_j`` to each row's sum."""
    if usable(scores) and sums.dtype == torch.float32:
        call("exponential_sums", scores.dtype == torch.bfloat16, scores, weights, sums, *scores.shape)
    else:
        sums += weights @ scores.to(sums.dtype).exp()


def to_exponential_gradients(
    scores: Float[Tensor, "block rows"], weights: Float[Tensor, " block"], row_weights: Float[Tensor, " rows"]
) -> Float[Tensor, " block"]:
    """Overwrite scores with ``exp(score_ji) * weight_j * row_weight_i``.

    Returns:
        the sum over each token's rows.
    """
    if usable(scores) and weights.dtype == torch.float32:
        totals = torch.empty_like(weights)
        call(
            "exponential_gradients", scores.dtype == torch.bfloat16, scores, weights, row_weights, totals, *scores.shape
        )
        return totals
    scores.exp_().mul_(weights[:, None]).mul_(row_weights)
    return scores.sum(1, dtype=weights.dtype)
