"""Weights on disk: safetensors, whole or in shards, and old PyTorch files that are never unpickled freely."""

import json
import pickle
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from bertsmith.foundation.errors import InputError

WEIGHTS = "model.safetensors"
HEADS = "bertsmith_heads.safetensors"
_OLD_WEIGHTS = "pytorch_model.bin"


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All weights of a model folder, by the names they have there.

    Raises:
        InputError: if there are none, or a file is damaged, or an old one holds more than tensors.
    """
    for name in (WEIGHTS, _OLD_WEIGHTS):
        if (folder / name).is_file():
            return _read(folder / name)
        if (index := folder / f"{name}.index.json").is_file():
            shards = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
            merged: dict[str, Tensor] = {}
            for shard in shards:
                # A shard's name is only ever a name: an index must not reach outside its folder.
                merged |= _read(folder / Path(shard).name)
            return merged
    raise InputError(
        f"A model folder holds {WEIGHTS}",
        f"{folder} without weights",
        "Give the folder that holds config.json and the weights.",
    )


def _read(path: Path) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(
            "Every shard that the index names must be there", f"no {path}", "Fetch the folder anew."
        ) from None
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError) as error:
        first_line = str(error).strip().splitlines()[0]
        raise InputError(
            "A weight file must be whole and hold tensors only", f"{path} ({first_line})", "Fetch the file anew."
        ) from None
    return {name: value for name, value in loaded.items() if isinstance(value, Tensor)}
