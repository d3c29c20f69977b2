"""Weights on disk: safetensors, whole or in shards, and old PyTorch files that are never unpickled freely."""

import errno
import json
import os
import pickle
import re
import zipfile
from pathlib import Path, PureWindowsPath

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import sha256

WEIGHTS = "model.safetensors"
HEADS = "bertsmith_heads.safetensors"
_OLD_WEIGHTS = "pytorch_model.bin"
_WINDOWS_DISK_FULL = 112


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write tensors on the CPU as a safetensors file.

    Raises:
        OSError: if the disk is full or anything else keeps the file from being written.
    """
    try:
        save_file(tensors, path, metadata={"format": "pt"})
        # The library lets nobody but the owner read; a model is read by whom the person's own settings say.
        mask = os.umask(0)
        os.umask(mask)
        path.chmod(0o666 & ~mask)
    except SafetensorError as error:
        # The library tells the system's error in words alone.
        found = re.search(r"\(os error (\d+)\)", str(error))
        if found is None:
            raise
        number = errno.ENOSPC if os.name == "nt" and int(found[1]) == _WINDOWS_DISK_FULL else int(found[1])
        raise OSError(number, os.strerror(number), str(path)) from error


# What the reader of old files raises, by where the damage is.
_DAMAGE = (RuntimeError, EOFError, ValueError, KeyError, IndexError, TypeError, AttributeError)


def has_tensors(folder: Path) -> bool:
    """Whether a folder holds weights, whole or in shards."""
    names = (WEIGHTS, _OLD_WEIGHTS)
    return any((folder / name).is_file() or (folder / f"{name}.index.json").is_file() for name in names)


def read_tensors(folder: Path, *, shapes_only: bool = False) -> dict[str, Tensor]:
    """All weights of a model folder, by the names they have there.

    Args:
        folder: the folder.
        shapes_only: give tensors without memory, on torch's device `meta`, and leave the values unread.

    Raises:
        InputError: if there are none, or a file is damaged, or an old one holds more than tensors.
    """
    merged: dict[str, Tensor] = {}
    for name in weight_files(folder):
        merged |= read_tensor_file(folder / name, shapes_only=shapes_only)
    return merged


def weight_files(folder: Path) -> list[str]:
    """Names of the files that hold a model folder's weights: one, or its shards.

    Raises:
        InputError: if there are none, or the index of shards is damaged.
    """
    for name in (WEIGHTS, _OLD_WEIGHTS):
        if (folder / name).is_file():
            return [name]
        if (index := folder / f"{name}.index.json").is_file():
            return shards_of(index)
    raise InputError(
        f"A model folder holds {WEIGHTS}",
        f"{folder} without weights",
        "Give the folder that holds config.json and the weights.",
    )


def weight_sums(folder: Path) -> dict[str, str]:
    """SHA-256 of every file that holds weights of a model folder, those of `HEADS` too, by its name.

    The files are read for it: a manifest tells what was once written, and other weights may lie there since.

    Raises:
        InputError: if there are none.
    """
    names = [*weight_files(folder), *([HEADS] if (folder / HEADS).is_file() else [])]
    return {name: sha256(folder / name) for name in names}


def shards_of(index: Path) -> list[str]:
    """Names of the files that an index of shards leads to.

    Raises:
        InputError: if it is damaged, or names a file outside its own folder.
    """
    try:
        shards = sorted({str(shard) for shard in json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(
            f"{index.name} must name the shard of each weight", f"{index}, which does not", "Fetch the folder anew."
        ) from None
    for shard in shards:
        if shard in ("", "..") or Path(shard).name != shard or PureWindowsPath(shard).name != shard:
            raise InputError(
                "A shard must lie in the folder of its index", f"{shard!r} in {index}", "Do not use this folder."
            )
    return shards


def read_tensor_file(path: Path, *, shapes_only: bool = False) -> dict[str, Tensor]:
    """The weights in one file, or tensors of their shapes and types.

    Raises:
        InputError: if it is missing or damaged, or an old one holds more than tensors.
    """
    try:
        if path.suffix == ".safetensors":
            tensors = load_file(path)
        else:
            # A file from before 2020 is no archive and cannot be mapped.
            loaded = torch.load(
                path, map_location="cpu", weights_only=True, mmap=shapes_only and zipfile.is_zipfile(path)
            )
            tensors = {name: value for name, value in loaded.items() if isinstance(value, Tensor)}
        # Files are mapped, so values that nobody looks at stay on disk.
        return {name: value.to("meta") for name, value in tensors.items()} if shapes_only else tensors
    except FileNotFoundError:
        raise InputError(
            "Every shard that the index names must be there", f"no {path}", "Fetch the folder anew."
        ) from None
    except (SafetensorError, pickle.UnpicklingError, *_DAMAGE) as error:
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            "A weight file must be whole and hold tensors only", f"{path} ({first_line})", "Fetch the file anew."
        ) from None
