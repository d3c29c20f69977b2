"""What a person named as the source of a model: a folder of one of two kinds, or a name on the Hub."""

import re
from dataclasses import dataclass
from pathlib import Path

from bertsmith.folders.model_folder import CONFIG, OLD_CONFIGS
from bertsmith.folders.tensors import has_tensors
from bertsmith.foundation.errors import InputError

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".7z", ".rar")
_INDEX = ".index"


@dataclass(frozen=True)
class HubName:
    """A model on the Hub, as `owner/name` or, for the oldest, `name`."""

    name: str


@dataclass(frozen=True)
class HuggingFaceFolder:
    """A folder with `config.json`, perhaps under its old name, and safetensors or PyTorch weights."""

    path: Path


@dataclass(frozen=True)
class TensorFlowFolder:
    """An original checkpoint of Google's BERT or ALBERT.

    Attributes:
        path: the folder.
        prefix: what the names of the checkpoint's files begin with, such as `bert_model.ckpt`.
        config: `bert_config.json` or `albert_config.json`.
    """

    path: Path
    prefix: str
    config: Path


Source = HubName | HuggingFaceFolder | TensorFlowFolder


def find_source(source: str) -> Source:
    """Tell what a source is. A path that exists is a path, anything else a name on the Hub.

    Raises:
        InputError: if it can be neither, is an archive or another file, or a checkpoint lacks a part.
    """
    path = from_home(source)
    if path.is_dir() and source:
        return _folder(path)
    if source.lower().endswith(_ARCHIVES):
        raise InputError(
            "import takes a folder and unpacks no archive",
            source,
            "Unpack it where you trust it, then give the folder in it that holds config.json or bert_config.json.",
        )
    if path.is_file():
        raise InputError("import takes a folder", f"{source}, a file", f"Give its folder: {path.parent}")
    if "://" in source:
        owner_and_name = "/".join(source.rstrip("/").split("/")[3:5])
        raise InputError("A model on the Hub is named owner/name", source, f"Give it so: {owner_and_name or 'NAME'}")
    if _HUB_NAME.fullmatch(source) is None:
        raise InputError(
            "SOURCE must be a folder that exists, or a name on the Hub as owner/name",
            f"{source!r}, which is neither",
            "Check the path.",
        )
    return HubName(source)


def import_command(name: str) -> str | None:
    """The command that fetches a model, where a name that is no path can be one on the Hub; None where it can't.

    ``owner/name`` whose owner is a folder here is a path that was misspelled.
    """
    if _HUB_NAME.fullmatch(name) is None or ("/" in name and Path(name).parent.exists()):
        return None
    return f"bertsmith import {name} --out {name.rpartition('/')[2]}"


def from_home(given: str | Path) -> Path:
    """A path in which `~` has been replaced by the home folder that it means.

    Raises:
        InputError: if there is no such home folder.
    """
    try:
        return Path(given).expanduser()
    except RuntimeError:
        raise InputError(
            "A path that begins with ~ must lead to a home folder", given, "Give the path without ~."
        ) from None


def _folder(path: Path) -> HuggingFaceFolder | TensorFlowFolder:
    original = next((path / name for name in OLD_CONFIGS if (path / name).is_file()), None)
    checkpoints = sorted(found.name.removesuffix(_INDEX) for found in path.glob(f"*{_INDEX}"))
    if has_tensors(path) and ((path / CONFIG).is_file() or not checkpoints):
        return HuggingFaceFolder(path)
    if original is None and not checkpoints:
        return HuggingFaceFolder(path)
    if original is None or not checkpoints:
        there = original.name if original is not None else f"{checkpoints[0]}{_INDEX}"
        lacking = f"NAME.ckpt{_INDEX}" if original is not None else " or ".join(OLD_CONFIGS)
        raise InputError(
            "An original TensorFlow checkpoint holds its config and its weights",
            f"{path} with {there} and without {lacking}",
            "Fetch the missing file into the folder.",
        )
    if len(checkpoints) > 1:
        raise InputError(
            "A folder must hold one checkpoint",
            f"{len(checkpoints)} in {path}: {', '.join(checkpoints)}",
            "Move the files of the others elsewhere.",
        )
    return TensorFlowFolder(path, checkpoints[0], original)
