"""Muon: momentum made orthogonal, so that all directions of a matrix learn at the same speed."""

# pyright: reportPrivateImportUsage=false
# torch has no public name for its operations on lists of tensors.

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from bertsmith.training.stacked import NUM_STACKED, apart
from bertsmith.training.uncompiled import UncompiledOptimizer

_MOMENTUM = 0.95
ITERATIONS = 5
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_SMALLEST_NORM = 1e-7


class Muon(UncompiledOptimizer):
    """Muon for matrices inside an encoder's layers, with Nesterov momentum and decay apart from the gradient.

    Where a weight holds several matrices one above the other (query, key and value; a gated feed-forward's value and
    gate), each is made orthogonal by itself: together, the one with the largest gradient would take the directions of
    the others. A step is as long either way, since an update is scaled by ``sqrt(max(1, rows / columns))``.

    Source: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/, whose numbers these are.
    """

    def __init__(self, groups: list[dict[str, Any]]) -> None:
        super().__init__(groups, {})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Update every weight that has a gradient."""
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if weights:
                self._update(weights, group)

    def _update(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        for weight in weights:
            if not self.state[weight]:
                self.state[weight] = {"momentum_buffer": torch.zeros_like(weight)}
        buffers = [self.state[weight]["momentum_buffer"] for weight in weights]
        torch._foreach_lerp_(buffers, gradients, 1.0 - _MOMENTUM)
        updates = torch._foreach_lerp(gradients, buffers, _MOMENTUM)
        torch._foreach_mul_(weights, 1.0 - group["lr"] * group["weight_decay"])
        # Matrices of one shape go through the iteration together: many small products cost more than one large one.
        by_shape: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}
        for pair in zip(apart(weights, group[NUM_STACKED]), apart(updates, group[NUM_STACKED]), strict=True):
            by_shape.setdefault(pair[0].shape, []).append(pair)
        for (rows, columns), pairs in by_shape.items():
            matrices, directions = zip(*pairs, strict=True)
            steps = orthogonal(torch.stack(directions)).to(matrices[0].dtype)
            torch._foreach_add_(matrices, steps.unbind(), alpha=-group["lr"] * math.sqrt(max(1.0, rows / columns)))


def orthogonal(
    matrices: Float[Tensor, "matrices rows columns"],
) -> Float[Tensor, "matrices rows columns"]:
    """Each matrix with its singular values brought near 1 (between about 0.7 and 1.2), in bf16.

    Five Newton-Schulz iterations of an odd polynomial of fifth degree, which does not converge to 1 but gets small
    values up quickly.
    """
    tall = matrices.shape[1] > matrices.shape[2]
    wide = matrices.mT if tall else matrices
    norms = torch.linalg.matrix_norm(wide, keepdim=True)
    wide = (wide / norms.clamp(min=_SMALLEST_NORM)).bfloat16()
    first, third, fifth = _COEFFICIENTS
    for _ in range(ITERATIONS):
        gram = wide @ wide.mT
        wide = torch.baddbmm(wide, torch.baddbmm(gram, gram, gram, beta=third, alpha=fifth), wide, beta=first)
    return wide.mT if tall else wide
