"""BERT's format; a causal one is what the same classes call a decoder."""

from typing import Any

from bertsmith.folders.formats.format import (
    MASKED_LANGUAGE_MODEL,
    NEXT_SENTENCE,
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
from bertsmith.foundation.errors import InputError
from bertsmith.model.config import ModelConfig, TaskName
from bertsmith.model.encoder_config import EncoderConfig

SIZES = {
    name: name
    for name in (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
        "type_vocab_size",
        "layer_norm_eps",
        "initializer_range",
        "pad_token_id",
    )
}
_EMBEDDINGS: Names = {
    "token.weight": ("word_embeddings.weight",),
    "position.weight": ("position_embeddings.weight",),
    "segment.weight": ("token_type_embeddings.weight",),
    "norm.weight": ("LayerNorm.weight",),
    "norm.bias": ("LayerNorm.bias",),
}
_LAYER: Names = with_kinds(
    {
        "attention.query_key_value": ("attention.self.query", "attention.self.key", "attention.self.value"),
        "attention.output": ("attention.output.dense",),
        "attention_norm": ("attention.output.LayerNorm",),
        "feed_forward.up": ("intermediate.dense",),
        "feed_forward.down": ("output.dense",),
        "feed_forward_norm": ("output.LayerNorm",),
    }
)
_HEADS: Names = {
    **with_kinds(
        {
            "masked_language_model.transform.dense": ("cls.predictions.transform.dense",),
            "masked_language_model.transform.norm": ("cls.predictions.transform.LayerNorm",),
            "next_sentence": ("cls.seq_relationship",),
            "classifier.output": ("classifier",),
        }
    ),
    **TOKEN_HEADS,
    "masked_language_model.untied": ("cls.predictions.decoder.weight",),
    "masked_language_model.bias": ("cls.predictions.bias",),
}


def embedding_names(prefix: str) -> Names:
    """Names of the embeddings, which BERT, RoBERTa and ALBERT share."""
    return under(f"{prefix}embeddings.", _EMBEDDINGS, ours="encoder.embeddings.")


def encoder_names(config: EncoderConfig, prefix: str) -> Names:
    """Names of the encoder and its pooler, which BERT and RoBERTa share."""
    names = embedding_names(prefix)
    for layer in range(config.num_hidden_layers):
        names |= under(f"{prefix}encoder.layer.{layer}.", _LAYER, ours=f"encoder.layers.{layer}.")
    return names | with_kinds({"pooler.dense": (f"{prefix}pooler.dense",)})


def _names(config: ModelConfig, prefix: str) -> Names:
    return encoder_names(config.encoder, prefix) | _HEADS


def published_dropout(values: dict[str, Any]) -> dict[str, Any]:
    """Dropout by place out of the two rates that the published classes have."""
    hidden = values.get("hidden_dropout_prob", 0.1)
    return {
        "embeddings": hidden,
        "attention_weights": values.get("attention_probs_dropout_prob", 0.1),
        "attention_output": hidden,
        "feed_forward": hidden,
    }


def write_common(config: ModelConfig) -> dict[str, Any]:
    """The entries that BERT, RoBERTa and ALBERT share."""
    encoder = config.encoder
    return {
        **{name: getattr(encoder, name) for name in SIZES},
        "hidden_act": activation_name(encoder.activation),
        "hidden_dropout_prob": encoder.dropout.feed_forward,
        "attention_probs_dropout_prob": encoder.dropout.attention_weights,
    }


def write_bert(config: ModelConfig) -> dict[str, Any]:
    """The entries of BERT and RoBERTa."""
    values = write_common(config) | {"classifier_dropout": config.heads.classifier_dropout}
    return values | ({"is_decoder": True, "use_cache": False} if config.encoder.causal else {})


def read_common(values: dict[str, Any], where: str) -> dict[str, Any]:
    """Fields out of the entries that BERT, RoBERTa and ALBERT share.

    Raises:
        InputError: for positions or an activation that are not known here, or a decoder that reads another text.
    """
    if (kind := values.get("position_embedding_type", "absolute")) != "absolute":
        raise InputError("Positions must be absolute", f"position_embedding_type {kind!r} in {where}", "Use another.")
    if values.get("add_cross_attention"):
        raise InputError(
            "A model must read its own text alone", f"one with cross-attention in {where}", "Use an encoder."
        )
    return {
        **renamed(values, SIZES),
        "activation": read_activation(values, "hidden_act", where),
        "dropout": published_dropout(values),
    }


def _read(values: dict[str, Any], where: str) -> dict[str, Any]:
    return read_common(values, where) | {"causal": bool(values.get("is_decoder", False))}


def classifier_dropout(values: dict[str, Any], task: TaskName | None) -> Any:
    """The classifier's rate, and the hidden one where none is given; the published head for answers has none."""
    if task == "answer":
        return 0.0
    own = values.get("classifier_dropout")
    return values.get("hidden_dropout_prob", 0.1) if own is None else own


BERT = Format(
    family="bert",
    model_type="bert",
    prefix="bert.",
    encoder_class="BertModel",
    classes={
        frozenset({MASKED_LANGUAGE_MODEL}): "BertForMaskedLM",
        frozenset({MASKED_LANGUAGE_MODEL, NEXT_SENTENCE}): "BertForPreTraining",
        frozenset({NEXT_SENTENCE}): "BertForNextSentencePrediction",
        **task_classes("Bert"),
    },
    names=_names,
    token_embedding="embeddings.word_embeddings.weight",
    projection="cls.predictions.decoder.weight",
    bias="cls.predictions.bias",
    projection_bias="cls.predictions.decoder.bias",
    write=write_bert,
    read=_read,
    classifier_dropout=classifier_dropout,
)
