"""Optimizers that divide a running mean of gradients by the root of a running mean of their squares, after Adam.

The heavy part, both means and their quotient, is torch's fused kernel in all of them: it reads and writes everything
once. What sets them apart is done on its result.
"""

# pyright: reportPrivateImportUsage=false
# torch has no public name for its operations on lists of tensors.

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from bertsmith.training.stacked import NUM_STACKED, apart
from bertsmith.training.uncompiled import UncompiledOptimizer


class _MomentOptimizer(UncompiledOptimizer, ABC):
    """Keeps the two means of each weight under the names that torch's AdamW has for them."""

    def __init__(self, groups: list[dict[str, Any]], *, betas: tuple[float, float], eps: float) -> None:
        super().__init__(groups, {"betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Update every weight that has a gradient."""
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            for weight in weights:
                if not self.state[weight]:
                    self.state[weight] = self._new_state(weight)
            if weights:
                self._update(weights, group)

    def _new_state(self, weight: Tensor) -> dict[str, Tensor]:
        return {"exp_avg": torch.zeros_like(weight), "exp_avg_sq": torch.zeros_like(weight)}

    @abstractmethod
    def _update(self, weights: list[Tensor], group: dict[str, Any]) -> None: ...

    def _steps(self, weights: list[Tensor]) -> list[Tensor]:
        # Adam's bias correction divides by 1 - beta ** steps. After endless steps that is 1: no correction.
        return [torch.full((), math.inf, device=weights[0].device)] * len(weights)

    def _adam(
        self,
        targets: list[Tensor],
        weights: list[Tensor],
        group: dict[str, Any],
        *,
        rate: float,
        weight_decay: float,
        divisor: Tensor | None = None,
    ) -> None:
        """Bring the means of `weights` up to date and move `targets` by what they say; gradients count divided."""
        beta1, beta2 = group["betas"]
        adamw(
            targets,
            [weight.grad for weight in weights if weight.grad is not None],
            [self.state[weight]["exp_avg"] for weight in weights],
            [self.state[weight]["exp_avg_sq"] for weight in weights],
            [],
            self._steps(weights),
            fused=True,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=rate,
            weight_decay=weight_decay,
            eps=group["eps"],
            maximize=False,
            grad_scale=divisor,
            found_inf=None if divisor is None else torch.zeros_like(divisor),
        )

    def _directions(self, weights: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
        """Where each weight is to go at a rate of 1, its decay included."""
        directions = [torch.zeros_like(weight) for weight in weights]
        self._adam(directions, weights, group, rate=1.0, weight_decay=0.0)
        if group["weight_decay"]:
            torch._foreach_add_(directions, weights, alpha=-group["weight_decay"])
        return directions


class _CorrectedOptimizer(_MomentOptimizer):
    """Counts steps too, for Adam's bias correction."""

    def _new_state(self, weight: Tensor) -> dict[str, Tensor]:
        return super()._new_state(weight) | {"step": torch.zeros((), device=weight.device)}

    def _steps(self, weights: list[Tensor]) -> list[Tensor]:
        return [self.state[weight]["step"] for weight in weights]


class AdamW(_CorrectedOptimizer):
    """Adam with decay apart from the gradient.

    Source: Loshchilov and Hutter 2019, algorithm 2.
    """

    _divisor: Tensor | None = None

    def step_with_share(self, share: float) -> None:
        """Take a step by gradients that are a share of those that are there.

        The update divides them on its way, which saves a pass over all of them.
        """
        weight = self.param_groups[0]["params"][0]
        self._divisor = torch.full((), 1.0 / share, device=weight.device)
        try:
            self.step()
        finally:
            self._divisor = None

    def _update(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        decay = group["weight_decay"]
        self._adam(weights, weights, group, rate=group["lr"], weight_decay=decay, divisor=self._divisor)


class PublishedAdam(_MomentOptimizer):
    """Adam as BERT was published with it: without bias correction, and with decay apart from the gradient.

    ``weight -= rate * (mean / (sqrt(mean of squares) + eps) + decay * weight)``. Both means begin at 0 and stay too
    small at first, the second by more; so early steps are larger than AdamW's, and need their warm-up.

    Source: Devlin et al. 2019, appendix A.2, and the `optimization.py` published with it; Kingma and Ba 2015 without
    its section 3.
    """

    def _update(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        self._adam(weights, weights, group, rate=group["lr"], weight_decay=group["weight_decay"])


class Lamb(_MomentOptimizer):
    """Steps as long as the weight they change is large, times the rate, in the form that ALBERT was trained with.

    A matrix moves along `PublishedAdam`'s direction, decay included, scaled to the matrix's own norm (the trust ratio;
    1 where one of the norms is 0). Biases and norms move as in `PublishedAdam`. Query, key and value have a ratio each,
    as they had where they were weights of their own.

    Source: You et al. 2020, algorithm 2, without the bias correction and with the identity for its function of the
    norm, as in the code published with Lan et al. 2020.
    """

    def _update(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        vectors = [weight for weight in weights if weight.ndim < 2]
        if vectors:
            self._adam(vectors, vectors, group, rate=group["lr"], weight_decay=group["weight_decay"])
        whole = [weight for weight in weights if weight.ndim >= 2]
        if not whole:
            return
        directions = apart(self._directions(whole, group), group[NUM_STACKED])
        matrices = apart(whole, group[NUM_STACKED])
        sizes, lengths = torch.stack(torch._foreach_norm(matrices)), torch.stack(torch._foreach_norm(directions))
        ratios = torch.where((sizes > 0) & (lengths > 0), sizes / lengths, 1.0)
        torch._foreach_addcmul_(matrices, directions, (group["lr"] * ratios).unbind())


class StableAdamW(_CorrectedOptimizer):
    """AdamW that takes a shorter step with a weight whose gradients have just become larger than their mean says.

    The rate of a weight, its decay's too, is divided by ``max(1, RMS)``, the root of the mean over the weight of
    ``gradient ** 2 / max(mean of squares, eps ** 2)``. It is meant instead of clipping all gradients together.

    Source: Wortsman et al. 2023, algorithm 2; its corrected betas are Adam's bias correction in other words. ModernBERT
    was trained with it (Warner et al. 2024, section 2.2.2).
    """

    def _update(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        directions = self._directions(weights, group)
        rates = group["lr"] / self._excess(weights, group).clamp(min=1.0)
        torch._foreach_addcmul_(weights, directions, rates.unbind())

    def _excess(self, weights: list[Tensor], group: dict[str, Any]) -> Tensor:
        """RMS of each weight, after its means are up to date."""
        # The mean of squares is stored uncorrected; its correction is put on the result, and on eps.
        steps = torch.stack(self._steps(weights)).tolist()
        corrections = [math.sqrt(1.0 - group["betas"][1] ** step) for step in steps]
        roots = torch._foreach_sqrt([self.state[weight]["exp_avg_sq"] for weight in weights])
        torch._foreach_clamp_min_(roots, [group["eps"] * correction for correction in corrections])
        quotients = torch._foreach_div([weight.grad for weight in weights if weight.grad is not None], roots)
        norms = torch.stack(torch._foreach_norm(quotients))
        scales = [
            correction / math.sqrt(weight.numel()) for correction, weight in zip(corrections, weights, strict=True)
        ]
        return norms * norms.new_tensor(scales)
