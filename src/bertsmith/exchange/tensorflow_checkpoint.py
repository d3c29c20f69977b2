"""Original TensorFlow checkpoints, written again as a folder in the Hugging Face layout."""

import importlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertsmith.exchange.source import TensorFlowFolder
from bertsmith.exchange.tensorflow_names import is_albert, is_slot, is_transposed, layout_name
from bertsmith.folders.model_folder import CONFIG
from bertsmith.folders.tensors import WEIGHTS, write_tensors
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import write_json

_TOKENIZER_FILES = ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
_SENTENCEPIECE = "spiece.model"
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "TF_ENABLE_ONEDNN_OPTS": "0"}
_MOST_SHOWN = 8


def write_as_layout(source: TensorFlowFolder, folder: Path) -> tuple[str, ...]:
    """Write a checkpoint's encoder, heads, config and vocabulary as a folder that the usual reader opens.

    Args:
        source: the checkpoint.
        folder: an existing, empty folder.

    Returns:
        notes on what was renamed, left out or concluded.

    Raises:
        InputError: if TensorFlow is not installed, the checkpoint is damaged, or it is no BERT and no ALBERT.
    """
    values = _config(source.config)
    reader = _open(source)
    variables = sorted(reader.get_variable_to_shape_map())
    kept = [variable for variable in variables if not is_slot(variable)]
    albert = is_albert(kept)
    names = {variable: layout_name(variable, albert=albert) for variable in kept}
    if not any(names.values()):
        raise _not_a_bert(source, kept)
    weights = {name: _weight(reader, source, variable) for variable, name in names.items() if name is not None}
    write_tensors(folder / WEIGHTS, weights)
    notes = [f"{len(weights)} TensorFlow variables were renamed, their kernels transposed"]
    if len(kept) < len(variables):
        notes.append(f"{len(variables) - len(kept)} variables of the optimizer were left out")
    if unknown := [variable for variable, name in names.items() if name is None]:
        notes.append(f"not used: {', '.join(unknown[:_MOST_SHOWN])}{' …' if len(unknown) > _MOST_SHOWN else ''}")
    if values.get("hidden_act") == "gelu":
        # Google's code for both computes gelu by tanh; BERT's computed it by erf when its first models were trained.
        if albert:
            values["hidden_act"] = "gelu_new"
            notes.append("gelu is computed by tanh, as in ALBERT's code: the config says gelu_new")
        else:
            notes.append(
                "gelu is computed by erf, as in BERT's copies in the Hugging Face layout; Google's later code "
                "computes it by tanh, which differs by less than 0.001"
            )
    write_json(folder / CONFIG, {**values, "model_type": "albert" if albert else "bert"})
    return (*notes, *_copy_tokenizer(source.path, folder))


def _config(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise InputError(f"{path.name} must be a JSON object", path, "Fetch the file anew.")
    return values


def _open(source: TensorFlowFolder) -> Any:
    # What it tells of the processor at its start is of no use to a reader of files.
    for setting, value in _QUIET.items():
        os.environ.setdefault(setting, value)
    try:
        # An extra that few need, so it is loaded here and nowhere else.
        tensorflow = importlib.import_module("tensorflow")
    except ImportError:
        raise InputError(
            "An original TensorFlow checkpoint is read by the tensorflow package",
            "an environment without it",
            'Install it: pip install "bertsmith[tensorflow]"',
        ) from None
    try:
        reader = tensorflow.train.load_checkpoint(str(source.path / source.prefix))
    except Exception as error:
        raise _damaged(source, error) from None
    if any("/.ATTRIBUTES/" in variable for variable in reader.get_variable_to_shape_map()):
        raise InputError(
            "A TensorFlow checkpoint must be of the original code, whose variables have names",
            f"{source.path / source.prefix}, saved by TensorFlow 2 as a tree of objects",
            "Use the original release of the model, or its copy on the Hub.",
        )
    return reader


def _weight(reader: Any, source: TensorFlowFolder, variable: str) -> Tensor:
    try:
        value = np.asarray(reader.get_tensor(variable), dtype=np.float32)
    except Exception as error:
        raise _damaged(source, error) from None
    return torch.from_numpy(np.ascontiguousarray(value.T if is_transposed(variable) else value))


def _damaged(source: TensorFlowFolder, error: Exception) -> InputError:
    # The library raises errors of its own and bare ones of Python, by where the damage is.
    first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return InputError(
        "The files of a checkpoint must be whole and of one save",
        f"{source.path / source.prefix} ({first_line})",
        "Fetch the checkpoint's .index and .data files anew.",
    )


def _not_a_bert(source: TensorFlowFolder, variables: list[str]) -> InputError:
    shown = ", ".join(variables[:_MOST_SHOWN]) or "no variable"
    return InputError(
        "An original checkpoint must be one of BERT or ALBERT, whose variables begin with bert/",
        f"{source.path / source.prefix} with {shown}",
        "Is it a model of another family? Look for its copy in the Hugging Face layout.",
    )


def _copy_tokenizer(source: Path, folder: Path) -> list[str]:
    notes: list[str] = []
    for name in _TOKENIZER_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    if (models := sorted(source.glob("*.model"))) and not (folder / "vocab.txt").is_file():
        shutil.copyfile(models[0], folder / _SENTENCEPIECE)
    if (folder / "vocab.txt").is_file() and not (folder / "tokenizer_config.json").is_file():
        lowercase = not _has_capitals(folder / "vocab.txt")
        write_json(folder / "tokenizer_config.json", {"do_lower_case": lowercase})
        found, does = ("no capitals", "writes all small") if lowercase else ("capitals", "keeps them")
        notes.append(f"the vocabulary has {found}, so the tokenizer {does}")
    return notes


def _has_capitals(vocabulary: Path) -> bool:
    pieces = vocabulary.read_text(encoding="utf-8", errors="replace").splitlines()
    # Special tokens such as [CLS] are capitals in every vocabulary.
    return any(piece != piece.lower() for piece in pieces if not piece.startswith("["))
