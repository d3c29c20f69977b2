"""A batch: packed tokens with what must be found in them."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from bertsmith.model.packed import PackedTokens

IGNORED = -100
"""A target id that asks for nothing, the number that torch's losses know."""


@dataclass(frozen=True)
class Batch:
    """What one forward pass takes."""

    packed: PackedTokens
    target_positions: Int[Tensor, " targets"]
    """Positions, among the packed tokens, of those that must be predicted."""
    target_ids: Int[Tensor, " targets"]
    """What must be found there; `IGNORED` in entries that only fill up the shape, which stand at the end."""
    num_targets: int
    """Entries that count."""
    pair_labels: Int[Tensor, " sequences"] | None = None
    """For sentence pairs: 0 where the second segment follows the first, 1 where it does not."""
    labels: Int[Tensor, " sequences"] | None = None
    """The class of each sequence, where sequences are classified."""

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on `device`."""
        pair_labels, labels = self.pair_labels, self.labels
        return replace(
            self,
            packed=self.packed.to(device),
            target_positions=self.target_positions.to(device, non_blocking=True),
            target_ids=self.target_ids.to(device, non_blocking=True),
            pair_labels=None if pair_labels is None else pair_labels.to(device, non_blocking=True),
            labels=None if labels is None else labels.to(device, non_blocking=True),
        )
