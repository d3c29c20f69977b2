"""What an objective reports of a batch: sums and counts, so that parts of a batch add up to the whole."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertsmith.batches.batch import Batch
from bertsmith.model.heads import Model

Counts = dict[str, int]


@dataclass(frozen=True)
class LossReport:
    """Sums over the predictions of a batch, by the name of the term.

    The loss of any number of parts together is the sum, over the terms, of the parts' totals over the parts' counts.
    """

    totals: dict[str, Float[Tensor, ""]]
    """Sum of the losses in nats; carries the gradient."""
    counts: Counts
    """Number of predictions."""
    hits: dict[str, Int[Tensor, ""]]
    """Number of right predictions; empty where metrics were not asked for."""

    def loss(self, counts: Counts) -> Float[Tensor, ""]:
        """This report's share of the loss of a batch that has `counts` predictions in all its parts."""
        shares = [total / max(counts[name], 1) for name, total in self.totals.items()]
        return torch.stack(shares).sum()

    def detached(self) -> "LossReport":
        """The same sums without their gradient."""
        totals = {name: total.detach() for name, total in self.totals.items()}
        return type(self)(totals, self.counts, self.hits)


def add_counts(counts: Iterable[Counts]) -> Counts:
    """Counts of parts together."""
    total: Counts = {}
    for part in counts:
        for name, count in part.items():
            total[name] = total.get(name, 0) + count
    return total


@runtime_checkable
class Objective(Protocol):
    """What a model is trained to do."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the parts of the loss."""
        ...

    def counts(self, batch: Batch) -> Counts:
        """Number of predictions that a batch asks for, by term."""
        ...

    def report(self, model: Model, batch: Batch, *, with_hits: bool) -> LossReport:
        """Run a model on a batch."""
        ...
