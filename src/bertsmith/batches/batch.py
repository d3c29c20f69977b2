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
    """The true tokens there; `IGNORED` in entries that only fill up the shape, which stand at the end."""
    num_targets: int
    """Entries that count."""
    next_sentence_labels: Int[Tensor, " sequences"] | None = None

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on `device`."""
        labels = self.next_sentence_labels
        return replace(
            self,
            packed=self.packed.to(device),
            target_positions=self.target_positions.to(device, non_blocking=True),
            target_ids=self.target_ids.to(device, non_blocking=True),
            next_sentence_labels=None if labels is None else labels.to(device, non_blocking=True),
        )
