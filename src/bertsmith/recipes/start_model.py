"""The model that a run begins with: fresh from a preset or a config, or out of a folder."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int

from bertsmith.folders.config_json import encoder_from_json
from bertsmith.folders.model_folder import read_config, read_model, refuse_larger_tokenizer
from bertsmith.foundation.errors import InputError, unknown_name
from bertsmith.foundation.random_streams import derived_seed
from bertsmith.model import PRESETS, EncoderConfig, HeadsConfig, Model, ModelConfig, new_model, preset
from bertsmith.recipes.options import ModelChoice
from bertsmith.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class StartModel:
    """A model to train, and what a person should know about it."""

    model: Model
    notes: tuple[str, ...]


def is_model_folder(start: str) -> bool:
    """Whether the start of a model names a folder and not a preset."""
    return start not in PRESETS and Path(start).is_dir()


def refuse_unknown_start(choice: ModelChoice) -> None:
    """Raise an `InputError` where the start is neither a preset, a config file nor a folder."""
    if choice.start not in PRESETS and not Path(choice.start).exists():
        raise unknown_name(
            "--model must be a preset, a config.json or a model folder that exists; a preset", choice.start, PRESETS
        )


def start_model(
    choice: ModelChoice,
    tokenizer: Tokenizer,
    *,
    token_counts: Int[np.ndarray, " vocabulary"],
    objective: str,
    seed: int,
) -> StartModel:
    """Build or open the model.

    Args:
        choice: where it comes from.
        tokenizer: decides the number of embeddings of fresh weights.
        token_counts: how often each token stands in the training text.
        objective: decides the heads.
        seed: decides fresh weights.

    Raises:
        InputError: if the start is unknown, or the tokenizer is larger than the embeddings.
    """
    pairs = objective == "mlm+nsp"
    heads = HeadsConfig(
        mlm_head=choice.mlm_head,
        mlm_head_input=choice.mlm_head_input,
        tie_embeddings=choice.tie_embeddings,
        pooler=pairs,
        next_sentence=pairs,
    )
    weights_seed = derived_seed(seed, "weights")
    if is_model_folder(choice.start):
        return _continued(Path(choice.start), choice, tokenizer, heads, weights_seed)
    encoder = _changed(_fresh_encoder(choice, tokenizer), choice)
    refuse_larger_tokenizer(tokenizer, encoder.vocab_size)
    counts = token_counts if choice.bias_from_frequencies else None
    return StartModel(new_model(ModelConfig(encoder=encoder, heads=heads), seed=weights_seed, token_counts=counts), ())


def positions_of(choice: ModelChoice) -> int:
    """How many positions the model will have, known before anything is built."""
    if choice.max_position_embeddings is not None:
        return choice.max_position_embeddings
    if choice.start in PRESETS:
        return preset(choice.start, vocab_size=1).max_position_embeddings
    folder = Path(choice.start)
    values = read_config(folder) if folder.is_dir() else _json(folder)
    # A config without a vocabulary leaves its size to the tokenizer.
    return encoder_from_json({"vocab_size": 1, **values}, choice.start).max_position_embeddings


def _fresh_encoder(choice: ModelChoice, tokenizer: Tokenizer) -> EncoderConfig:
    pad = {} if tokenizer.pad_id is None else {"pad_token_id": tokenizer.pad_id}
    if choice.start in PRESETS:
        return preset(choice.start, vocab_size=tokenizer.vocab_size, **pad)
    values = _json(Path(choice.start))
    return encoder_from_json({"vocab_size": tokenizer.vocab_size, **values}, choice.start)


def _changed(encoder: EncoderConfig, choice: ModelChoice) -> EncoderConfig:
    changes = {
        "activation": choice.activation,
        "max_position_embeddings": choice.max_position_embeddings,
        "dropout": choice.dropout,
    }
    return encoder.model_copy(update={name: value for name, value in changes.items() if value is not None})


def _continued(folder: Path, choice: ModelChoice, tokenizer: Tokenizer, wanted: HeadsConfig, seed: int) -> StartModel:
    """A model with the weights of a folder; heads that it lacks are fresh, and said."""
    read = read_model(folder)
    source = read.model
    refuse_larger_tokenizer(tokenizer, source.config.encoder.vocab_size)
    if source.masked_language_model is not None:
        kept = source.config.heads.model_dump(include={"mlm_head", "mlm_head_input", "tie_embeddings"})
        wanted = HeadsConfig(**wanted.model_dump() | kept)
    encoder = source.config.encoder
    if choice.dropout is not None:
        encoder = encoder.model_copy(update={"dropout": choice.dropout})
    model = new_model(ModelConfig(encoder=encoder, heads=wanted), seed=seed)
    weights = source.state_dict()
    fresh = sorted({name.split(".")[0] for name in model.state_dict() if name not in weights})
    model.load_state_dict({name: weights[name] for name in model.state_dict() if name in weights}, strict=False)
    notes = [*read.notes, f"goes on from the weights of {folder}"]
    if fresh:
        notes.append(f"not in that folder, so begun anew: {', '.join(fresh)}")
    return StartModel(model, tuple(notes))


def _json(path: Path) -> dict[str, object]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError):
        values = None
    if not isinstance(values, dict):
        raise InputError("--model must name a preset, a config.json or a model folder", path, "Check the file.")
    return values
