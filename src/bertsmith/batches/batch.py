"""A batch: packed tokens with what must be found in them."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from bertsmith.model.packed import PackedTokens


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
    labels: Shaped[Tensor, "..."] | None = None
    """What a downstream task must find: of each sequence, of each group of them, or of each packed token, with
    `IGNORED` where a token has nothing to tell."""
    group_starts: Int[Tensor, " groups_plus_one"] | None = None
    """First sequence of each group, and at the end their number, where sequences belong together."""

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on `device`."""
        pair_labels, labels, group_starts = self.pair_labels, self.labels, self.group_starts
        return replace(
            self,
            packed=self.packed.to(device),
            target_positions=self.target_positions.to(device, non_blocking=True),
            target_ids=self.target_ids.to(device, non_blocking=True),
            pair_labels=None if pair_labels is None else pair_labels.to(device, non_blocking=True),
            labels=None if labels is None else labels.to(device, non_blocking=True),
            group_starts=None if group_starts is None else group_starts.to(device, non_blocking=True),
        )
