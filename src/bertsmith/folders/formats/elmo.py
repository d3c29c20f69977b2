"""The format of the comparison's ELMo, which no other program knows: our own names throughout."""

from typing import Any

from bertsmith.folders.formats.format import Format, Names
from bertsmith.model.config import ModelConfig

_FIELDS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "initializer_range",
    "pad_token_id",
    "embedding_size",
)


def _names(config: ModelConfig, prefix: str) -> Names:
    return {}


def _write(config: ModelConfig) -> dict[str, Any]:
    return {name: getattr(config.encoder, name) for name in _FIELDS}


def _read(values: dict[str, Any], where: str) -> dict[str, Any]:
    return {"type_vocab_size": 0, **{name: values[name] for name in _FIELDS if name in values}}


ELMO = Format(
    family="elmo",
    model_type="elmo",
    prefix="",
    encoder_class="",
    classes={},
    names=_names,
    token_embedding="encoder.embeddings.token.weight",
    projection="masked_language_model.untied",
    bias="masked_language_model.bias",
    projection_bias=None,
    write=_write,
    read=_read,
    classifier_dropout=lambda values, task: 0.1,
)
