"""Checkpoints: a model folder plus the training state, whole or absent, never a pickle."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from bertsmith.folders.model_folder import ReadModel, read_model, write_model
from bertsmith.folders.tensors import write_tensors
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import MANIFEST, folder_faults, new_folder, remove_leftovers, write_json
from bertsmith.model.heads import Model
from bertsmith.tokenization.tokenizer import Tokenizer

_STATE = "training_state.json"
_TENSORS = "training_state.safetensors"
_PREFIX = "step-"


@dataclass(frozen=True)
class TrainingState:
    """What must be known, beside the model, to go on as if nothing had happened."""

    step: int
    """Steps that have been taken."""
    values: dict[str, Any]
    """Plain JSON values of the loop's own."""
    tensors: dict[str, Tensor]
    """The optimizer's tensors, by name."""


@dataclass(frozen=True)
class Checkpoint:
    """A whole checkpoint on disk."""

    folder: Path
    step: int

    def read(self) -> tuple[ReadModel, TrainingState]:
        """The model and the training state.

        Raises:
            InputError: if it cannot be read.
        """
        values = json.loads((self.folder / _STATE).read_text(encoding="utf-8"))
        return read_model(self.folder), TrainingState(self.step, values, load_file(self.folder / _TENSORS))


class CheckpointStore:
    """The checkpoints of one run: ``root/step-00001234``.

    The newest `keep` stay, and the one with the best validation, whatever that is judged by. An interrupted write
    leaves nothing that is ever taken for a checkpoint.
    """

    def __init__(self, root: Path, *, keep: int = 2) -> None:
        self.root = root
        self._keep = keep

    def write(self, model: Model, tokenizer: Tokenizer, state: TrainingState, *, best_step: int | None) -> Checkpoint:
        """Write a checkpoint, then remove those that are no longer kept.

        Args:
            model: the model as it is now.
            tokenizer: written along, so that a checkpoint is a model folder that works.
            state: the training state.
            best_step: step of the checkpoint that is protected, if any.

        Raises:
            InputError: if the disk is full; earlier checkpoints are untouched.
        """
        folder = self._folder(state.step)
        seal = {"kind": "checkpoint", "step": state.step}
        with new_folder(folder, seal=seal) as temporary:
            write_model(temporary, model, tokenizer)
            tensors = {name: tensor.detach().to("cpu").contiguous() for name, tensor in state.tensors.items()}
            write_tensors(temporary / _TENSORS, tensors)
            write_json(temporary / _STATE, state.values)
        self._prune(state.step, best_step)
        return Checkpoint(folder, state.step)

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint that is whole; damaged ones are passed over."""
        remove_leftovers(self.root)
        for folder in reversed(self._folders()):
            try:
                damaged = folder_faults(folder)
            except InputError:
                continue
            if not damaged:
                return Checkpoint(folder, _step(folder))
        return None

    def at(self, step: int) -> Checkpoint | None:
        """The checkpoint of a step, if it is there and whole."""
        folder = self._folder(step)
        try:
            return None if folder_faults(folder) else Checkpoint(folder, step)
        except InputError:
            return None

    def _folder(self, step: int) -> Path:
        return self.root / f"{_PREFIX}{step:08d}"

    def _folders(self) -> list[Path]:
        """Folders of checkpoints, the oldest first; a copy that a person made under another name is left alone."""
        named = (path for path in self.root.glob(f"{_PREFIX}*") if path.name.removeprefix(_PREFIX).isdecimal())
        return sorted((path for path in named if path.is_dir()), key=_step)

    def _prune(self, written_step: int, best_step: int | None) -> None:
        # The run went on from before a later checkpoint because that one is damaged: it must not count as kept.
        later = [folder for folder in self._folders() if _step(folder) > written_step]
        older = [folder for folder in self._folders() if _step(folder) <= written_step][: -self._keep]
        for folder in later + older:
            if _step(folder) != best_step:
                _remove(folder)


def _step(folder: Path) -> int:
    return int(folder.name.removeprefix(_PREFIX))


def _remove(folder: Path) -> None:
    """Remove a checkpoint so that an interruption leaves nothing that looks like one: the manifest goes first."""
    (folder / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(folder)
