"""DistilBERT's format: BERT without segments and pooler, under names of its own."""

from typing import Any

from bertsmith.folders.formats.format import (
    MASKED_LANGUAGE_MODEL,
    TOKEN_HEADS,
    Format,
    Names,
    activation_name,
    read_activation,
    renamed,
    task_classes,
    under,
    with_kinds,
)
from bertsmith.model.config import ModelConfig, TaskName

_SIZES = {
    "vocab_size": "vocab_size",
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "max_position_embeddings": "max_position_embeddings",
    "initializer_range": "initializer_range",
    "pad_token_id": "pad_token_id",
}
_NORM_EPS = 1e-12
_EMBEDDINGS: Names = {
    "token.weight": ("word_embeddings.weight",),
    "position.weight": ("position_embeddings.weight",),
    "norm.weight": ("LayerNorm.weight",),
    "norm.bias": ("LayerNorm.bias",),
}
_LAYER: Names = with_kinds(
    {
        "attention.query_key_value": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
        "attention.output": ("attention.out_lin",),
        "attention_norm": ("sa_layer_norm",),
        "feed_forward.up": ("ffn.lin1",),
        "feed_forward.down": ("ffn.lin2",),
        "feed_forward_norm": ("output_layer_norm",),
    }
)
_HEADS: Names = {
    **with_kinds(
        {
            "masked_language_model.transform.dense": ("vocab_transform",),
            "masked_language_model.transform.norm": ("vocab_layer_norm",),
            "classifier.summary.dense": ("pre_classifier",),
            "classifier.output": ("classifier",),
        }
    ),
    **TOKEN_HEADS,
    "masked_language_model.untied": ("vocab_projector.weight",),
    "masked_language_model.bias": ("vocab_projector.bias",),
}


def _names(config: ModelConfig, prefix: str) -> Names:
    names = under(f"{prefix}embeddings.", _EMBEDDINGS, ours="encoder.embeddings.")
    for layer in range(config.encoder.num_hidden_layers):
        names |= under(f"{prefix}transformer.layer.{layer}.", _LAYER, ours=f"encoder.layers.{layer}.")
    return names | _HEADS


def _write(config: ModelConfig) -> dict[str, Any]:
    encoder, heads = config.encoder, config.heads
    return {
        **{theirs: getattr(encoder, ours) for ours, theirs in _SIZES.items()},
        "activation": activation_name(encoder.activation),
        "dropout": encoder.dropout.feed_forward,
        "attention_dropout": encoder.dropout.attention_weights,
        "seq_classif_dropout": heads.classifier_dropout,
        **({"qa_dropout": heads.classifier_dropout} if heads.task == "answer" else {}),
        "sinusoidal_pos_embds": False,
    }


def _read(values: dict[str, Any], where: str) -> dict[str, Any]:
    dropout = values.get("dropout", 0.1)
    return {
        **renamed(values, _SIZES),
        "type_vocab_size": 0,
        "layer_norm_eps": _NORM_EPS,
        "activation": read_activation(values, "activation", where),
        "dropout": {
            "embeddings": dropout,
            "attention_weights": values.get("attention_dropout", 0.1),
            "feed_forward": dropout,
        },
    }


def _classifier_dropout(values: dict[str, Any], task: TaskName | None) -> Any:
    match task:
        case "answer":
            return values.get("qa_dropout", 0.1)
        case "tag":
            return values.get("dropout", 0.1)
        case _:
            return values.get("seq_classif_dropout", 0.2)


DISTILBERT = Format(
    family="distilbert",
    model_type="distilbert",
    prefix="distilbert.",
    encoder_class="DistilBertModel",
    classes={
        frozenset({MASKED_LANGUAGE_MODEL}): "DistilBertForMaskedLM",
        **task_classes("DistilBert"),
    },
    names=_names,
    token_embedding="embeddings.word_embeddings.weight",
    projection="vocab_projector.weight",
    bias="vocab_projector.bias",
    projection_bias=None,
    write=_write,
    read=_read,
    classifier_dropout=_classifier_dropout,
)
