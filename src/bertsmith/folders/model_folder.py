"""The model folder: what training leaves and everything else opens, in the Hugging Face layout."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertsmith.folders.config_json import architecture, encoder_from_json, own_section, to_json
from bertsmith.folders.tensors import HEADS, WEIGHTS, read_tensor_file, read_tensors, write_tensors
from bertsmith.folders.weight_names import Names, bert_names, modern_name
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import write_json
from bertsmith.model import HeadsConfig, Model, ModelConfig, empty_model
from bertsmith.model.attention import AttentionKind
from bertsmith.tokenization.tokenizer import Tokenizer

CONFIG = "config.json"
_HEAD_PREFIXES = ("masked_language_model.", "next_sentence.")
_MOST_SHOWN = 8
_PROJECTION = "cls.predictions.decoder.weight"
_PROJECTION_BIAS = "cls.predictions.decoder.bias"
_BIAS = "cls.predictions.bias"


@dataclass(frozen=True)
class ReadModel:
    """A model out of a folder, and what a person should know about how it was read."""

    model: Model
    notes: tuple[str, ...]


def write_model(folder: Path, model: Model, tokenizer: Tokenizer) -> None:
    """Write a model and its tokenizer into an existing, empty folder.

    The weights are written in fp32 under the Hub's names. A head that no Hugging Face class computes goes into
    `bertsmith_heads.safetensors`, and the folder then names the plain encoder's class.
    """
    config = model.config
    published = config.heads.as_published
    prefix = "bert." if architecture(config.heads) != "BertModel" else ""
    names = bert_names(config, prefix)
    weights: dict[str, Tensor] = {}
    own_heads: dict[str, Tensor] = {}
    for ours, tensor in model.state_dict().items():
        value = tensor.detach().to("cpu", torch.float32)
        if not published and ours.startswith(_HEAD_PREFIXES):
            own_heads[ours] = value.contiguous()
            continue
        theirs = names[ours]
        for name, part in zip(theirs, value.chunk(len(theirs)), strict=True):
            weights[name] = part.contiguous()
    if published and _BIAS in weights and not config.heads.tie_embeddings:
        # Untied, the reference class reads the bias under the projection's own name.
        weights[_PROJECTION_BIAS] = weights[_BIAS].clone()
    write_tensors(folder / WEIGHTS, weights)
    if own_heads:
        write_tensors(folder / HEADS, own_heads)
    write_json(folder / CONFIG, to_json(config))
    tokenizer.save(folder, max_length=config.encoder.max_position_embeddings)


def read_config(folder: Path) -> dict[str, Any]:
    """`config.json` of a model folder.

    Raises:
        InputError: if the folder or the file is missing, or it is no JSON object.
    """
    path = folder / CONFIG
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"A model folder holds {CONFIG}", f"{folder} without it", f"Give a model folder.{_candidates(folder)}"
        ) from None
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise InputError(f"{CONFIG} must be a JSON object", path, "Fetch or write the file anew.")
    return values


def read_model(folder: Path, *, attention: AttentionKind = "fused") -> ReadModel:
    """Open a model folder, from here or from elsewhere.

    Raises:
        InputError: if the family is not known here, encoder weights are missing, or sizes contradict the config.
    """
    values = read_config(folder)
    encoder = encoder_from_json(values, str(folder / CONFIG))
    tensors = {modern_name(name): value for name, value in read_tensors(folder).items()}
    own_heads = read_tensor_file(folder / HEADS) if (folder / HEADS).is_file() else {}
    prefix = "bert." if any(name.startswith("bert.") for name in tensors) else ""
    heads = _heads(values, tensors, prefix, folder)
    config = ModelConfig(encoder=encoder, heads=heads)
    _refuse_disagreeing_ties(config, tensors, prefix, folder)
    model = empty_model(config, attention=attention).eval()
    names = bert_names(config, prefix)
    if _PROJECTION_BIAS in tensors:
        # Where both names are there, the reference classes add the projection's own.
        names["masked_language_model.bias"] = (_PROJECTION_BIAS,)
    return ReadModel(model, tuple(_fill(model, names, tensors, own_heads, folder)))


def read_tokenizer(folder: Path, *, vocab_size: int) -> Tokenizer:
    """The tokenizer of a model folder.

    Raises:
        InputError: if it has more entries than the model has embeddings.
    """
    tokenizer = Tokenizer.from_folder(folder)
    refuse_larger_tokenizer(tokenizer, vocab_size)
    return tokenizer


def refuse_larger_tokenizer(tokenizer: Tokenizer, vocab_size: int) -> None:
    """Raise an `InputError` if a tokenizer can give an id for which a model has no embedding."""
    if tokenizer.vocab_size > vocab_size:
        raise InputError(
            "A tokenizer must not have more entries than the model has embeddings",
            f"{tokenizer.vocab_size} entries, {vocab_size} embeddings",
            "Use the tokenizer that the model was made with.",
        )


def _candidates(folder: Path) -> str:
    if not folder.is_dir():
        return ""
    found = sorted(path.parent.relative_to(folder).as_posix() for path in folder.glob(f"*/{CONFIG}"))
    return f" Below it there is: {', '.join(found[:_MOST_SHOWN])}" if found else ""


def _heads(values: dict[str, Any], tensors: dict[str, Tensor], prefix: str, folder: Path) -> HeadsConfig:
    where = str(folder / CONFIG)
    has_pooler = f"{prefix}pooler.dense.weight" in tensors
    found = {
        "masked_language_model": "cls.predictions.transform.dense.weight" in tensors,
        "tie_embeddings": values.get("tie_word_embeddings", True),
        "pooler": has_pooler,
        "next_sentence": has_pooler and "cls.seq_relationship.weight" in tensors,
    }
    return HeadsConfig.parse(own_section(values, where).get("heads") or found, where=where)


def _refuse_disagreeing_ties(config: ModelConfig, tensors: dict[str, Tensor], prefix: str, folder: Path) -> None:
    if not config.heads.tie_embeddings:
        return
    for name, twin in ((_PROJECTION, f"{prefix}embeddings.word_embeddings.weight"), (_PROJECTION_BIAS, _BIAS)):
        if name in tensors and twin in tensors and not torch.equal(tensors[name], tensors[twin]):
            raise InputError(
                "Tied weights must agree",
                f"{name} differs from {twin} in {folder}",
                "Set tie_word_embeddings to false in config.json if the projection is meant to be apart.",
            )


def _fill(
    model: Model, names: Names, tensors: dict[str, Tensor], own_heads: dict[str, Tensor], folder: Path
) -> list[str]:
    """Set every weight of `model`; returns notes about what was left unused."""
    missing: list[str] = []
    used: set[str] = set()
    for ours, parameter in model.state_dict().items():
        theirs = () if ours in own_heads else names.get(ours, (ours,))
        absent = [name for name in theirs if name not in tensors]
        if absent:
            missing += absent
            continue
        used.update(theirs)
        value = own_heads[ours] if ours in own_heads else torch.cat([tensors[name] for name in theirs])
        if value.shape != parameter.shape:
            raise InputError(
                "Weights must have the sizes that config.json says",
                f"{', '.join(theirs) or ours} of shape {tuple(value.shape)}, expected {tuple(parameter.shape)}",
                f"Check {folder / CONFIG}.",
            )
        parameter.copy_(value)
    if missing:
        shown = ", ".join(missing[:_MOST_SHOWN]) + (" …" if len(missing) > _MOST_SHOWN else "")
        raise InputError(
            "A model folder must hold all weights of its encoder and heads",
            f"{len(missing)} missing in {folder}: {shown}",
            "Is it a model of another family, or written under other names?",
        )
    known_doubles = {_PROJECTION, _PROJECTION_BIAS, _BIAS} if model.masked_language_model is not None else set()
    unused = sorted(
        name for name in tensors.keys() - used - known_doubles if not name.endswith("embeddings.position_ids")
    )
    if not unused:
        return []
    return [f"not used: {', '.join(unused[:_MOST_SHOWN])}{' …' if len(unused) > _MOST_SHOWN else ''}"]
