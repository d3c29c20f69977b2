"""The modern family in ModernBERT's format (Warner et al. 2024)."""

from typing import Any

from bertsmith.folders.formats.format import (
    MASKED_LANGUAGE_MODEL,
    Format,
    Names,
    activation_name,
    read_activation,
    renamed,
    task_classes,
    under,
)
from bertsmith.foundation.errors import InputError
from bertsmith.model.config import ModelConfig
from bertsmith.model.encoder_config import RotaryConfig

_SIZES = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_hidden_layers": "num_hidden_layers",
    "num_attention_heads": "num_attention_heads",
    "intermediate_size": "intermediate_size",
    "max_position_embeddings": "max_position_embeddings",
    "layer_norm_eps": "norm_eps",
    "initializer_range": "initializer_range",
    "pad_token_id": "pad_token_id",
}
_GLOBAL, _LOCAL = "full_attention", "sliding_attention"
_BIASES = ("attention_bias", "mlp_bias", "norm_bias", "classifier_bias")
_LAYER: Names = {
    "attention_norm.weight": ("attn_norm.weight",),
    "attention.query_key_value.weight": ("attn.Wqkv.weight",),
    "attention.output.weight": ("attn.Wo.weight",),
    "feed_forward_norm.weight": ("mlp_norm.weight",),
    "feed_forward.up.weight": ("mlp.Wi.weight",),
    "feed_forward.down.weight": ("mlp.Wo.weight",),
}


def _task_head(part: str, transform: str) -> Names:
    """The head of a task, which has the same names in all of them."""
    return {
        f"{part}.{transform}.dense.weight": ("head.dense.weight",),
        f"{part}.{transform}.norm.weight": ("head.norm.weight",),
        f"{part}.output.weight": ("classifier.weight",),
        f"{part}.output.bias": ("classifier.bias",),
    }


_HEADS: Names = {
    "masked_language_model.transform.dense.weight": ("head.dense.weight",),
    "masked_language_model.transform.norm.weight": ("head.norm.weight",),
    "masked_language_model.untied": ("decoder.weight",),
    "masked_language_model.bias": ("decoder.bias",),
    **_task_head("classifier", "summary"),
    **_task_head("token_classifier", "transform"),
    **_task_head("spans", "transform"),
}


def _names(config: ModelConfig, prefix: str) -> Names:
    names: Names = {
        "encoder.embeddings.token.weight": (f"{prefix}embeddings.tok_embeddings.weight",),
        "encoder.embeddings.norm.weight": (f"{prefix}embeddings.norm.weight",),
        "encoder.final_norm.weight": (f"{prefix}final_norm.weight",),
    }
    for layer in range(config.encoder.num_hidden_layers):
        names |= under(f"{prefix}layers.{layer}.", _LAYER, ours=f"encoder.layers.{layer}.")
    return names | _HEADS


def _write(config: ModelConfig) -> dict[str, Any]:
    encoder, rotary = config.encoder, config.encoder.rotary or RotaryConfig()
    name = activation_name(encoder.activation)
    return {
        **{theirs: getattr(encoder, ours) for ours, theirs in _SIZES.items()},
        "hidden_activation": name,
        "classifier_activation": name,
        **dict.fromkeys(_BIASES, False),
        "decoder_bias": True,
        "layer_types": _kinds(rotary.global_every, encoder.num_hidden_layers),
        "global_attn_every_n_layers": rotary.global_every,
        "local_attention": rotary.window,
        "rope_parameters": {
            _GLOBAL: {"rope_type": "default", "rope_theta": rotary.global_theta},
            _LOCAL: {"rope_type": "default", "rope_theta": rotary.local_theta},
        },
        "embedding_dropout": encoder.dropout.embeddings,
        "attention_dropout": encoder.dropout.attention_weights,
        "mlp_dropout": encoder.dropout.feed_forward,
        "classifier_dropout": config.heads.classifier_dropout,
        "classifier_pooling": "mean" if config.heads.classifier_input == "mean" else "cls",
        # Named, or the reference class would take the ids of its own tokenizer.
        **dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")),
    }


def _read(values: dict[str, Any], where: str) -> dict[str, Any]:
    for key in _BIASES:
        if values.get(key):
            raise InputError("A ModernBERT must have no biases but its output's", f"{key} in {where}", "Use another.")
    if not values.get("decoder_bias", True):
        raise InputError("A ModernBERT's output must have a bias", f"decoder_bias false in {where}", "Use another.")
    activation = read_activation(values, "hidden_activation", where)
    if read_activation(values, "classifier_activation", where) != activation:
        raise InputError(
            "Layers and head must have one activation",
            f"hidden_activation and classifier_activation that differ in {where}",
            "Use another model.",
        )
    attention = values.get("attention_dropout", 0.0)
    return {
        **renamed(values, _SIZES),
        "layer_norm_eps": values.get("norm_eps", 1e-5),
        "max_position_embeddings": values.get("max_position_embeddings", 8192),
        "type_vocab_size": 0,
        "activation": activation,
        "rotary": _read_rotary(values, where),
        "dropout": {
            "embeddings": values.get("embedding_dropout", 0.0),
            "attention_weights": attention,
            "attention_output": attention,
            "feed_forward": values.get("mlp_dropout", 0.0),
        },
    }


def _global_every(values: dict[str, Any], where: str) -> Any:
    every, kinds = values.get("global_attn_every_n_layers", 3), values.get("layer_types")
    if kinds is None or not isinstance(every, int) or every < 1:
        return every  # What is no distance, the config refuses.
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kinds == _kinds(every, len(kinds)):
        return every
    # The first layer sees all; the second that does tells how many there are to one.
    later = [layer for layer, kind in enumerate(kinds) if kind == _GLOBAL and layer]
    every = later[0] if later else max(len(kinds), 1)
    if kinds != _kinds(every, len(kinds)):
        raise InputError(
            "Layers that see all of a text must follow each other at equal distances, from the first on",
            f"layer_types {kinds} in {where}",
            "Use another model.",
        )
    return every


def _kinds(every: int, layers: int) -> list[str]:
    return [_LOCAL if layer % every else _GLOBAL for layer in range(layers)]


def _read_rotary(values: dict[str, Any], where: str) -> dict[str, Any]:
    every = _global_every(values, where)
    parameters = values.get("rope_parameters") or {}
    if not isinstance(parameters, dict) or not all(isinstance(one, dict) for one in parameters.values()):
        raise InputError(
            "rope_parameters must name those of each kind of layer", f"{parameters!r} in {where}", "Mend it."
        )
    by_kind = {kind: parameters.get(kind) or {} for kind in (_GLOBAL, _LOCAL)}
    for kind, one in by_kind.items():
        if one.get("rope_type", "default") != "default":
            raise InputError("Rotary positions must not be scaled", f"{one} for {kind} in {where}", "Use another.")
    fields = {
        "global_theta": by_kind[_GLOBAL].get("rope_theta", values.get("global_rope_theta", 160_000.0)),
        "local_theta": by_kind[_LOCAL].get("rope_theta", values.get("local_rope_theta", 10_000.0)),
    }
    return {"global_every": every, "window": values.get("local_attention", 128), **fields}


MODERN = Format(
    family="modern",
    model_type="modernbert",
    prefix="model.",
    encoder_class="ModernBertModel",
    classes={
        frozenset({MASKED_LANGUAGE_MODEL}): "ModernBertForMaskedLM",
        **task_classes("ModernBert"),
    },
    names=_names,
    token_embedding="embeddings.tok_embeddings.weight",
    projection="decoder.weight",
    bias="decoder.bias",
    projection_bias=None,
    write=_write,
    read=_read,
    classifier_dropout=lambda values, task: values.get("classifier_dropout", 0.0),
)
