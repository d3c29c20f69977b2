"""The weights that lie in a model folder, before anything is made of them."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from bertsmith.folders.formats import Format, Names
from bertsmith.folders.offer import lies_apart
from bertsmith.folders.tensors import HEADS, read_tensor_file, read_tensors
from bertsmith.model import ModelConfig

_OLD_ENDINGS = {".gamma": ".weight", ".beta": ".bias"}


@dataclass(frozen=True)
class StoredWeights:
    """The weights of a folder by the names that they have there, old ones made new.

    Attributes:
        folder: the folder.
        format: the family's.
        prefix: what stands before the names of the encoder's weights.
        tensors: the weights that every program reads.
        own_heads: those in bertsmith's own file, by our names.
        notes: how names were read.
        differences: what a folder that is written anew does not have, such as half precision.
    """

    folder: Path
    format: Format
    prefix: str
    tensors: dict[str, Tensor]
    own_heads: dict[str, Tensor]
    notes: tuple[str, ...]
    differences: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path, own: Format, *, shapes_only: bool = False) -> "StoredWeights":
        """Read the weights of a folder, or their names, shapes and types alone.

        Raises:
            InputError: if there are none, or a file is damaged.
        """
        found = read_tensors(folder, shapes_only=shapes_only)
        tensors = {_modern_name(name): value for name, value in found.items()}
        old = sum(name not in found for name in tensors)
        notes = (f"{old} weights have old names (gamma, beta): read as weight and bias",) if old else ()
        has_own = (folder / HEADS).is_file()
        own_heads = read_tensor_file(folder / HEADS, shapes_only=shapes_only) if has_own else {}
        prefix = own.prefix if f"{own.prefix}{own.token_embedding}" in tensors else ""
        return cls(folder, own, prefix, tensors, own_heads, notes, tuple(_differences(found)))

    def names(self, config: ModelConfig) -> Names:
        """Our names of a model's weights, and theirs in this folder."""
        return self.format.names(config, self.prefix)

    def published(self, ours: str, config: ModelConfig) -> Tensor | None:
        """A weight of a model among those that every program reads; None if it isn't there, or only parts of it."""
        names = self.names(config).get(ours, (ours,))
        if not all(name in self.tensors for name in names):
            return None
        return self.tensors[names[0]] if len(names) == 1 else torch.cat([self.tensors[name] for name in names])

    def find(self, ours: str, config: ModelConfig) -> Tensor | None:
        """A weight of a model where bertsmith puts it; None if it isn't there."""
        return self.own_heads.get(ours) if lies_apart(ours, config) else self.published(ours, config)


def _modern_name(name: str) -> str:
    """A weight's name as it is written today: norms were once called gamma and beta."""
    for old, new in _OLD_ENDINGS.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name


def _differences(tensors: dict[str, Tensor]) -> list[str]:
    found: list[str] = []
    if any(name.endswith("position_ids") for name in tensors):
        found.append("position_ids lay among the weights and were left out: they only count positions")
    floats = {value.dtype for value in tensors.values() if value.is_floating_point()}
    if other := sorted(str(kind).removeprefix("torch.") for kind in floats - {torch.float32}):
        found.append(f"weights of {', '.join(other)} are written as float32")
    return found
