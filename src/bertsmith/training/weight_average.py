"""The mean of a model's weights over the last part of a run: what is validated, and what the run leaves."""

# pyright: reportPrivateImportUsage=false
# torch has no public name for its operations on lists of tensors.

import contextlib
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from bertsmith.training.config import LoopConfig

_SUFFIX = "/average"
_POINTS = 100
"""At which the weights are looked at within what the mean looks back over: more would cost time and change nothing."""
_LONG = 1000
"""Steps of a run whose share counts in full. In a shorter one weights travel further with each step, and a mean that
looked back as far would lie behind; docs/lab-notes.md has the trials."""


class WeightAverage:
    """An exponential mean of the weights that are trained (Polyak and Juditsky 1992).

    It begins as a plain mean of what there is, so that the first weights have no more say than later ones.

    Args:
        model: whose weights.
        share: of the whole run's steps, over which the mean looks back; of a run of fewer than 1,000 steps less, in
            proportion to its steps.
    """

    def __init__(self, model: nn.Module, share: float) -> None:
        self._weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self._share = share
        self._means: dict[str, Tensor] = {}

    @torch.no_grad()
    def update(self, step: int, total_steps: int) -> None:
        """Take in the weights as they are, where it is time to.

        Args:
            step: steps taken so far.
            total_steps: steps of the whole run, as far as is known.
        """
        span = self._share * total_steps * min(1.0, total_steps / _LONG)
        every = max(1, int(span / _POINTS))
        if step % every:
            return
        if not self._means:
            self._means = {name: weight.detach().clone() for name, weight in self._weights.items()}
        points = min(span, step) / every
        torch._foreach_lerp_(list(self._means.values()), self._values, 1 / max(1.0, points))

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Within the block the model has the mean, and after it its own weights again, to the bit."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def settle(self) -> None:
        """Give the model the mean for good."""
        if self._means:
            torch._foreach_copy_(self._values, list(self._means.values()))

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The means as ``<weight>/average``."""
        return {f"{name}{_SUFFIX}": mean for name, mean in self._means.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `tensors` gave; what else is among them is left alone."""
        self._means = {
            name: tensors[f"{name}{_SUFFIX}"].to(weight.device)
            for name, weight in self._weights.items()
            if f"{name}{_SUFFIX}" in tensors
        }

    @property
    def _values(self) -> list[Tensor]:
        return [self._weights[name].detach() for name in self._means]

    @torch.no_grad()
    def _exchange(self) -> None:
        for weight, mean in zip(self._values, self._means.values(), strict=True):
            kept = weight.clone()
            weight.copy_(mean)
            mean.copy_(kept)


def is_average(name: str) -> bool:
    """Whether a tensor of a training state is a mean, and none of the optimizer's."""
    return name.endswith(_SUFFIX)


def new_average(model: nn.Module, config: LoopConfig) -> WeightAverage | None:
    """The mean that a run keeps of its model's weights, if it keeps one."""
    return WeightAverage(model, config.average_share) if config.average_share else None
