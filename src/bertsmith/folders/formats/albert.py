"""ALBERT's format: factorised embeddings, and layers that share weights."""

from typing import Any

from bertsmith.folders.formats.bert import embedding_names, read_common, write_common
from bertsmith.folders.formats.format import (
    MASKED_LANGUAGE_MODEL,
    SENTENCE_ORDER,
    TOKEN_HEADS,
    Format,
    Names,
    task_classes,
    under,
    with_kinds,
)
from bertsmith.foundation.errors import InputError
from bertsmith.model.config import ModelConfig, TaskName

_LAYER: Names = with_kinds(
    {
        "attention.query_key_value": ("attention.query", "attention.key", "attention.value"),
        "attention.output": ("attention.dense",),
        "attention_norm": ("attention.LayerNorm",),
        "feed_forward.up": ("ffn",),
        "feed_forward.down": ("ffn_output",),
        "feed_forward_norm": ("full_layer_layer_norm",),
    }
)
_HEADS: Names = {
    **with_kinds(
        {
            "masked_language_model.transform.dense": ("predictions.dense",),
            "masked_language_model.transform.norm": ("predictions.LayerNorm",),
            "sentence_order": ("sop_classifier.classifier",),
            "classifier.output": ("classifier",),
        }
    ),
    **TOKEN_HEADS,
    "masked_language_model.untied": ("predictions.decoder.weight",),
    "masked_language_model.bias": ("predictions.bias",),
}


def _names(config: ModelConfig, prefix: str) -> Names:
    names = embedding_names(prefix)
    names |= with_kinds(
        {
            "encoder.embeddings.projection": (f"{prefix}encoder.embedding_hidden_mapping_in",),
            "pooler.dense": (f"{prefix}pooler",),
        }
    )
    for group in range(config.encoder.num_hidden_groups or 0):
        theirs = f"{prefix}encoder.albert_layer_groups.{group}.albert_layers.0."
        names |= under(theirs, _LAYER, ours=f"encoder.layers.{group}.")
    return names | _HEADS


def _write(config: ModelConfig) -> dict[str, Any]:
    encoder = config.encoder
    return write_common(config) | {
        "embedding_size": encoder.embedding_size,
        "num_hidden_groups": encoder.num_hidden_groups,
        "inner_group_num": 1,
        "classifier_dropout_prob": config.heads.classifier_dropout,
    }


_DEFAULTS = {"hidden_act": "gelu_new", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def _read(values: dict[str, Any], where: str) -> dict[str, Any]:
    if (inner := values.get("inner_group_num", 1)) != 1:
        raise InputError(
            "An ALBERT must have one layer in each group, as all published ones have",
            f"inner_group_num {inner!r} in {where}",
            "Use another model.",
        )
    # What is not written down is as in the published class, which differs from BERT's.
    fields = read_common(_DEFAULTS | values, where)
    return fields | {
        "embedding_size": values.get("embedding_size", 128),
        "num_hidden_groups": values.get("num_hidden_groups", 1),
    }


def _dropout(values: dict[str, Any], task: TaskName | None) -> Any:
    return 0.0 if task == "answer" else values.get("classifier_dropout_prob", 0.1)


ALBERT = Format(
    family="albert",
    model_type="albert",
    prefix="albert.",
    encoder_class="AlbertModel",
    classes={
        frozenset({MASKED_LANGUAGE_MODEL}): "AlbertForMaskedLM",
        frozenset({MASKED_LANGUAGE_MODEL, SENTENCE_ORDER}): "AlbertForPreTraining",
        **task_classes("Albert"),
    },
    names=_names,
    token_embedding="embeddings.word_embeddings.weight",
    projection="predictions.decoder.weight",
    bias="predictions.bias",
    projection_bias="predictions.decoder.bias",
    write=_write,
    read=_read,
    classifier_dropout=_dropout,
)
