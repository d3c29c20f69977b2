"""The length of many tensors taken as one vector."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from bertsmith.kernels.library import call, usable

_PART = 4096


def total_norm(tensors: Sequence[Tensor]) -> float:
    """Root of the sum of all squares. Not finite where a number is not."""
    if not tensors or not all(usable(values) and values.dtype == torch.float32 for values in tensors):
        return float(torch.nn.utils.get_total_norm(tensors))
    counts = [-(-values.numel() // _PART) for values in tensors]
    parts = torch.empty(sum(counts), dtype=torch.float64)
    for values, own in zip(tensors, parts.split(counts), strict=True):
        call("sums_of_squares", values.contiguous(), values.numel(), _PART, own)
    return math.sqrt(float(parts.sum()))
