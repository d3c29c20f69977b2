"""Dropout of the kernels: drawn from a number's place and a seed, so that nothing is kept for the backward pass."""

import torch


def drawn_seed() -> int:
    """A seed from torch's random state, which decides it."""
    return int(torch.randint(1 << 62, ()))
