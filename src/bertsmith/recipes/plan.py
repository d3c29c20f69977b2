"""What a model will be, told before it is made."""

from dataclasses import dataclass
from pathlib import Path

from bertsmith.folders.config_json import encoder_from_json
from bertsmith.folders.model_folder import read_config, read_model
from bertsmith.folders.tensors import has_tensors
from bertsmith.foundation.errors import InputError, unknown_name
from bertsmith.model import PRESETS, EncoderConfig, HeadsConfig, ModelConfig, preset
from bertsmith.planning.parameters import PUBLISHED, count_parameters
from bertsmith.recipes.pretraining.start_encoder import config_file

_DEFAULT_VOCABULARY = 32_000


@dataclass(frozen=True)
class Plan:
    """What a model will be, or is. A tied projection counts once, with the embeddings."""

    model: str
    family: str
    vocab_size: int
    parameters: int
    """All of them, heads included."""
    encoder_and_pooler: int
    """Parameters of the encoder and its pooler, where it has one."""
    embeddings: int
    layers: int
    """Weights that layers share count once."""
    pooler: int
    heads: int
    """Of a model folder its own; otherwise those that the family is pre-trained with."""
    published: str | None
    """What its authors say of all parameters, rounded by them; None where they say nothing of this size."""
    published_by: str | None


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
        config = _pretrained(preset(name, vocab_size=rows))
    else:
        config = _described(Path(name), vocab_size)
    counted = count_parameters(config)
    if published is not None and config.encoder.vocab_size != published.vocab_size:
        published = None
    return Plan(
        model=name,
        family=config.encoder.family,
        vocab_size=config.encoder.vocab_size,
        parameters=counted.total,
        encoder_and_pooler=counted.encoder + counted.pooler,
        embeddings=counted.embeddings,
        layers=counted.layers,
        pooler=counted.pooler,
        heads=counted.heads,
        published=None if published is None else published.parameters,
        published_by=None if published is None else published.source,
    )


def _described(path: Path, vocab_size: int | None) -> ModelConfig:
    """The model of a file or a folder. Which heads a folder has, the names of its weights tell."""
    if not path.exists():
        raise unknown_name("--model must be a preset, a config.json or a model folder; a preset", str(path), PRESETS)
    values = read_config(path) if path.is_dir() else config_file(path)
    encoder = encoder_from_json({"vocab_size": _DEFAULT_VOCABULARY, **values}, str(path))
    if encoder.family == "elmo":
        raise InputError("plan counts transformer encoders", f"an ELMo in {path}", "Use bertsmith info.")
    has_weights = path.is_dir() and has_tensors(path)
    config = read_model(path, weights=False).model.config if has_weights else _pretrained(encoder)
    if vocab_size is None:
        return config
    return config.model_copy(update={"encoder": config.encoder.model_copy(update={"vocab_size": vocab_size})})


def _pretrained(encoder: EncoderConfig) -> ModelConfig:
    """The model with the heads that its family is pre-trained with."""
    heads = HeadsConfig(
        pooler=encoder.family in ("bert", "albert"),
        next_sentence=encoder.family == "bert",
        sentence_order=encoder.family == "albert",
    )
    return ModelConfig(encoder=encoder, heads=heads)
