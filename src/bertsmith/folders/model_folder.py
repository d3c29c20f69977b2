"""The model folder: what training leaves and everything else opens, in the Hugging Face layout."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertsmith.folders.config_json import OWN_SECTION, encoder_from_json, own_section, to_json
from bertsmith.folders.exported import refuse_exported
from bertsmith.folders.formats import Format, Names, format_of, named_format, published_class
from bertsmith.folders.offer import lies_apart
from bertsmith.folders.sentence_transformers import embedding_heads, read_sentence_modules, write_sentence_modules
from bertsmith.folders.stored_heads import own_heads, shown_heads
from bertsmith.folders.stored_weights import StoredWeights
from bertsmith.folders.tensors import HEADS, WEIGHTS, write_tensors
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import write_json
from bertsmith.model import Model, ModelConfig, empty_model, meta_model
from bertsmith.model.attention import AttentionKind
from bertsmith.tokenization.tokenizer import Tokenizer

CONFIG = "config.json"
CARD = "README.md"
OLD_CONFIGS = ("bert_config.json", "albert_config.json")
"""Names that the config had in Google's releases and the first PyTorch folders."""
_MOST_SHOWN = 8


@dataclass(frozen=True)
class ReadModel:
    """A model out of a folder.

    Attributes:
        model: the model.
        notes: what a person should know about how it was read.
        differences: what of the stored weights a folder that is written anew does not have, such as half precision.
    """

    model: Model
    notes: tuple[str, ...]
    differences: tuple[str, ...]


def write_model(folder: Path, model: Model, tokenizer: Tokenizer) -> None:
    """Write a model and its tokenizer into an existing, empty folder.

    The weights are written in fp32 under the Hub's names. A head that no Hugging Face class computes goes into
    `bertsmith_heads.safetensors`, and the folder then names the plain encoder's class. How long a text the model sees,
    the tokenizer's `model_max_length`, is part of what it is and is kept.
    """
    config = model.config
    own, published = named_format(config), published_class(config)
    has_heads = published not in (None, own.encoder_class)
    names = own.names(config, own.prefix if has_heads else "")
    weights: dict[str, Tensor] = {}
    apart: dict[str, Tensor] = {}
    for ours, tensor in model.state_dict().items():
        value = tensor.detach().to("cpu", torch.float32)
        if lies_apart(ours, config):
            apart[ours] = value.contiguous()
            continue
        theirs = names.get(ours, (ours,))
        for name, part in zip(theirs, value.chunk(len(theirs)), strict=True):
            weights[name] = part.contiguous()
    if own.projection_bias is not None and own.bias in weights and not config.heads.tie_embeddings:
        # Untied, the reference class reads the bias under the projection's own name.
        weights[own.projection_bias] = weights[own.bias].clone()
    write_tensors(folder / WEIGHTS, weights)
    if apart:
        write_tensors(folder / HEADS, apart)
    write_json(folder / CONFIG, to_json(config))
    if config.heads.task == "embed":
        write_sentence_modules(folder, config)
    tokenizer.seeing(tokenizer.longest_sequence(config.encoder.num_positions)).save(folder)


def read_config(folder: Path) -> dict[str, Any]:
    """`config.json` of a model folder.

    Raises:
        InputError: if the folder or the file is missing, or it is no JSON object.
    """
    path = _config_path(folder)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"A model folder holds {CONFIG}", f"{folder} without it", f"Give a model folder.{_candidates(folder)}"
        ) from None
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise InputError(f"{path.name} must be a JSON object", path, "Fetch or write the file anew.")
    return values


def _config_path(folder: Path) -> Path:
    there = (folder / name for name in (CONFIG, *OLD_CONFIGS) if (folder / name).is_file())
    return next(there, folder / CONFIG)


def read_model(folder: Path, *, attention: AttentionKind = "fused", weights: bool = True) -> ReadModel:
    """Open a model folder, from here or from elsewhere.

    Args:
        folder: the folder.
        attention: which attention the model computes with.
        weights: whether the weights are read. Where not, config.json and the names and shapes of the weights tell which
            model it is, and the model that is given has shapes and no memory.

    Raises:
        InputError: if the family is not known here, encoder weights are missing, or sizes contradict the config; or
            for an exported folder, which holds a graph and no weights.
    """
    refuse_exported(folder)
    values = read_config(folder)
    path = _config_path(folder)
    where = str(path)
    encoder = encoder_from_json(values, where)
    stored = StoredWeights.of(folder, format_of(values, where), shapes_only=not weights)
    heads = own_heads(values, encoder, stored, where)
    has_own = heads is not None
    if heads is None:
        stored, heads = replace(stored, own_heads={}), shown_heads(values, encoder, stored, where)
    modules = read_sentence_modules(folder)
    heads = embedding_heads(heads, modules)
    config = ModelConfig.parse({"encoder": encoder, "heads": heads}, where=where)
    if weights:
        _refuse_disagreeing_ties(config, stored)
    model = (empty_model if weights else meta_model)(config, attention=attention).eval()
    names = stored.names(config)
    bias = stored.format.projection_bias
    if bias in stored.tensors:
        # Where both names are there, the reference classes add the projection's own.
        names["masked_language_model.bias"] = (bias,)
    notes = _notes_on_family(values, stored.format, path.name)
    if not has_own and own_section(values, where).get("heads"):
        notes.append(f"heads that {CONFIG} tells of under {OWN_SECTION} are not here: read as its architectures say")
    if modules is not None and modules.foreign is not None and heads.task_head is None:
        notes.append(f"sentence-transformers' folder with {modules.foreign}: read as its encoder alone")
    return ReadModel(model, (*notes, *stored.notes, *_fill(model, names, stored)), stored.differences)


def _notes_on_family(values: dict[str, Any], one: Format, file: str) -> list[str]:
    named = values.get("model_type")
    if named is None:
        return [f"{file} names no model_type: read as {one.model_type}"]
    if named != one.model_type:
        return [f"{named} is read and written as {one.model_type}, which computes the same"]
    return []


def read_tokenizer(folder: Path, *, vocab_size: int) -> Tokenizer:
    """The tokenizer of a model folder.

    Raises:
        InputError: if it has more entries than the model has embeddings.
    """
    tokenizer = Tokenizer.from_folder(folder)
    refuse_larger_tokenizer(tokenizer, vocab_size)
    modules = read_sentence_modules(folder)
    # Its length counts over the tokenizer's own, there as here.
    return tokenizer if modules is None or modules.max_length is None else tokenizer.seeing(modules.max_length)


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


def _refuse_disagreeing_ties(config: ModelConfig, stored: StoredWeights) -> None:
    if not config.heads.tie_embeddings:
        return
    own, tensors = stored.format, stored.tensors
    pairs = [(own.projection, f"{stored.prefix}{own.token_embedding}"), (own.projection_bias, own.bias)]
    for name, twin in pairs:
        if name in tensors and twin in tensors and not torch.equal(tensors[name], tensors[twin]):
            raise InputError(
                "Tied weights must agree",
                f"{name} differs from {twin} in {stored.folder}",
                "Set tie_word_embeddings to false in config.json if the projection is meant to be apart.",
            )


def _fill(model: Model, names: Names, stored: StoredWeights) -> list[str]:
    """Set every weight of `model`; returns notes about what was left unused."""
    missing: list[str] = []
    used: set[str] = set()
    used_apart: set[str] = set()
    for ours, parameter in model.state_dict().items():
        # A file of heads may have been left behind by another model: it counts for what belongs there alone.
        apart = ours in stored.own_heads and lies_apart(ours, model.config)
        theirs = () if apart else names.get(ours, (ours,))
        absent = [name for name in theirs if name not in stored.tensors]
        if absent:
            missing += absent
            continue
        used.update(theirs)
        if apart:
            used_apart.add(ours)
        parts = {ours: stored.own_heads[ours]} if apart else {name: stored.tensors[name] for name in theirs}
        _refuse_other_sizes(parts, parameter.shape, stored)
        parameter.copy_(torch.cat(list(parts.values())))
    if missing:
        raise InputError(
            "A model folder must hold all weights of its encoder and heads",
            f"{len(missing)} missing in {stored.folder}: {_some(missing)}",
            "Is it a model of another family, or written under other names?",
        )
    own = stored.format
    known_doubles = (
        {own.projection, own.projection_bias, own.bias} if model.masked_language_model is not None else set()
    )
    unused = sorted(
        name for name in stored.tensors.keys() - used - known_doubles if not name.endswith("embeddings.position_ids")
    )
    notes = [f"not used: {_some(unused)}"] if unused else []
    if left := sorted(stored.own_heads.keys() - used_apart):
        notes.append(f"not used of {HEADS}: {_some(left)}")
    return notes


def _refuse_other_sizes(parts: dict[str, Tensor], whole: torch.Size, stored: StoredWeights) -> None:
    """Raise an `InputError` unless parts of equal size make up a weight of shape `whole`, one below the other."""
    expected = (whole[0] // len(parts), *whole[1:])
    for name, part in parts.items():
        if part.shape != expected:
            raise InputError(
                "Weights must have the sizes that config.json says",
                f"{name} of shape {tuple(part.shape)}, expected {expected}",
                f"Check {_config_path(stored.folder)}.",
            )


def _some(names: list[str]) -> str:
    return ", ".join(names[:_MOST_SHOWN]) + (" …" if len(names) > _MOST_SHOWN else "")
