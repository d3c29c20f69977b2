"""What a model will be, told before it is made."""

from dataclasses import dataclass
from pathlib import Path

from bertsmith.folders.config_json import encoder_from_json
from bertsmith.folders.model_folder import read_config
from bertsmith.foundation.errors import InputError, unknown_name
from bertsmith.model import PRESETS, EncoderConfig, HeadsConfig, ModelConfig, preset
from bertsmith.planning.parameters import PUBLISHED, ParameterCount, PublishedSize, count_parameters
from bertsmith.recipes.pretraining.start_model import config_file

_DEFAULT_VOCABULARY = 32_000


@dataclass(frozen=True)
class Plan:
    """What a model will be."""

    model: str
    encoder: EncoderConfig
    encoder_with_pooler: int
    """Parameters of the encoder and its pooler, where the family has one."""
    with_pretraining_heads: int
    """Parameters with the heads that the family is pre-trained with."""
    parts: ParameterCount
    """The same, by part."""
    published: PublishedSize | None


def plan(model: str | Path = "bert-toy", *, vocab_size: int | None = None) -> Plan:
    """Count what a model consists of, without making it.

    Args:
        model: a preset, a config.json or a model folder.
        vocab_size: entries of the vocabulary. Where not given: a folder's own, the published one of a preset, or
            32,000.

    Raises:
        InputError: if there is no such model.
    """
    name = str(model)
    published = PUBLISHED.get(name)
    if name in PRESETS:
        rows = vocab_size or (published.vocab_size if published else _DEFAULT_VOCABULARY)
        encoder = preset(name, vocab_size=rows)
    else:
        encoder = _described(Path(name), vocab_size)
    has_pooler = encoder.family in ("bert", "albert")
    heads = HeadsConfig(
        pooler=has_pooler,
        next_sentence=encoder.family == "bert",
        sentence_order=encoder.family == "albert",
    )
    parts = count_parameters(ModelConfig(encoder=encoder, heads=heads))
    return Plan(
        model=name,
        encoder=encoder,
        encoder_with_pooler=parts.encoder + parts.pooler,
        with_pretraining_heads=parts.total,
        parts=parts,
        published=published if published and encoder.vocab_size == published.vocab_size else None,
    )


def _described(path: Path, vocab_size: int | None) -> EncoderConfig:
    if not path.exists():
        raise unknown_name("--model must be a preset, a config.json or a model folder; a preset", str(path), PRESETS)
    values = read_config(path) if path.is_dir() else config_file(path)
    encoder = encoder_from_json({"vocab_size": _DEFAULT_VOCABULARY, **values}, str(path))
    if encoder.family == "elmo":
        raise InputError("plan counts transformer encoders", f"an ELMo in {path}", "Use bertsmith info.")
    return encoder if vocab_size is None else encoder.model_copy(update={"vocab_size": vocab_size})
