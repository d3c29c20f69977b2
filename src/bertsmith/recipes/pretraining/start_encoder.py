"""The encoder that a run begins with, as far as it is known before any weight is read or made."""

import json
from pathlib import Path

from bertsmith.exchange.source import import_command
from bertsmith.folders.config_json import encoder_from_json
from bertsmith.folders.model_folder import read_config
from bertsmith.foundation.errors import InputError, unknown_name
from bertsmith.model import PRESETS, EncoderConfig, preset
from bertsmith.recipes.pretraining.options import ModelChoice
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.tokenizer import Tokenizer

SETTINGS = "the model's settings"
"""Where the settings come from, in messages."""


def is_model_folder(start: str) -> bool:
    """Whether the start of a model names a folder and not a preset."""
    return start not in PRESETS and Path(start).is_dir()


def refuse_unknown_start(choice: ModelChoice) -> None:
    """Raise an `InputError` where the start is neither a preset, a config file nor a folder."""
    if choice.start not in PRESETS and not Path(choice.start).exists():
        error = unknown_name(
            "--model must be a preset, a config.json or a model folder that exists; a preset", choice.start, PRESETS
        )
        if (fetch := import_command(choice.start)) is None:
            raise error
        raise InputError(error.rule, error.received, f"{error.do} If it is on the Hub, {fetch} fetches it.")


def known_encoder(choice: ModelChoice, tokenizer: Tokenizer | None = None) -> EncoderConfig:
    """The encoder's config.

    Args:
        choice: where the model comes from.
        tokenizer: decides the padding id of a fresh model, and its number of embeddings where no config.json does;
            while there is none, these two are not to be relied on.

    Raises:
        InputError: if what the choice says does not fit together.
    """
    vocab_size, pad_id = (1, None) if tokenizer is None else (tokenizer.vocab_size, tokenizer.pad_id)
    dropout = {} if choice.dropout is None else {"dropout": choice.dropout}
    if choice.start in PRESETS:
        pad = {} if pad_id is None else {"pad_token_id": pad_id}
        return preset(choice.start, vocab_size=vocab_size, **pad, **choice.sizes, **dropout)
    path = Path(choice.start)
    if not path.is_dir():
        encoder = _with_pad_id(_told_encoder(path, vocab_size), pad_id)
    elif choice.sizes:
        raise InputError(
            "A model folder's sizes are what they are",
            ", ".join(f"model.{name}={value}" for name, value in choice.sizes.items()),
            "Leave these settings out, or begin anew with a preset or a config.json.",
        )
    else:
        encoder = encoder_from_json(read_config(path), choice.start)
    return EncoderConfig.parse({**encoder.model_dump(), **choice.sizes, **dropout}, where=SETTINGS)


def notes_on_padding(choice: ModelChoice, tokenizer: Tokenizer) -> list[str]:
    """What to say where a config.json names another padding id than the tokenizer has, which is the one that counts.

    A file that names none is told of only where the positions move: RoBERTa's begin behind the padding id.
    """
    path = Path(choice.start)
    if choice.start in PRESETS or path.is_dir() or tokenizer.pad_id is None:
        return []
    told = _told_encoder(path, tokenizer.vocab_size)
    names_it = config_file(path).get("pad_token_id") is not None
    if told.pad_token_id == tokenizer.pad_id or not (names_it or told.positions_skip_padding):
        return []
    note = f"{path.name} pads with id {told.pad_token_id}, and the tokenizer with {tokenizer.pad_id}, which counts"
    if told.positions_skip_padding and "max_position_embeddings" not in choice.sizes:
        encoder = known_encoder(choice, tokenizer)
        rows, positions = encoder.max_position_embeddings, encoder.num_positions
        note += f": {rows:,} rows of positions in place of {told.max_position_embeddings:,} give the same {positions:,}"
    return [note]


def named_vocab_size(choice: ModelChoice) -> int | None:
    """How many embeddings a fresh model has by its config.json; None where the tokenizer or a folder decides."""
    path = Path(choice.start)
    if choice.start in PRESETS or path.is_dir() or config_file(path).get("vocab_size") is None:
        return None
    return _told_encoder(path, 1).vocab_size


def refuse_larger_vocabulary(
    choice: ModelChoice, tokenizer: Tokenizer | None, config: TokenizerConfig = TokenizerConfig()
) -> None:
    """Raise an `InputError` where a tokenizer can give an id for which a config.json has no embedding.

    Args:
        choice: where the model comes from.
        tokenizer: the tokenizer, or None where it will be trained.
        config: how it will be.
    """
    room = named_vocab_size(choice)
    asked = config.vocab_size if "vocab_size" in config.model_fields_set else 0
    entries = asked if tokenizer is None else tokenizer.vocab_size
    if room is not None and entries > room:
        raise InputError(
            "A tokenizer must not have more entries than the model has embeddings",
            f"{entries:,} entries, and {room:,} embeddings in {choice.start}",
            "Raise vocab_size in that file, leave it out there, or use a smaller tokenizer.",
        )


def config_file(path: Path) -> dict[str, object]:
    """A config.json that lies by itself.

    Raises:
        InputError: if it is no JSON object.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError):
        values = None
    if not isinstance(values, dict):
        raise InputError("--model must name a preset, a config.json or a model folder", path, "Check the file.")
    return values


def _told_encoder(path: Path, vocab_size: int) -> EncoderConfig:
    """The encoder of a config.json as it stands there; one without a vocabulary leaves its size to the tokenizer."""
    return encoder_from_json({"vocab_size": vocab_size, **config_file(path)}, str(path))


def _with_pad_id(encoder: EncoderConfig, pad_id: int | None) -> EncoderConfig:
    """The encoder with the tokenizer's padding id: positions and the Hugging Face classes tell padding by it."""
    if pad_id is None:
        return encoder
    # As many positions whatever the padding id, up to which rows of the table are not used.
    more = pad_id - encoder.pad_token_id if encoder.positions_skip_padding else 0
    rows = encoder.max_position_embeddings + more
    return encoder.model_copy(update={"pad_token_id": pad_id, "max_position_embeddings": rows})
