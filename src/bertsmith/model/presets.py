"""Named sizes. A preset says everything but the vocabulary, which the tokenizer decides."""

from typing import Any

from bertsmith.foundation.errors import unknown_name
from bertsmith.model.encoder_config import EncoderConfig, RotaryConfig


def _bert(layers: int, hidden: int, heads: int, **more: Any) -> dict[str, Any]:
    return {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden,
        **more,
    }


def _roberta(layers: int, hidden: int, heads: int) -> dict[str, Any]:
    return _bert(layers, hidden, heads, family="roberta", type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1)


def _albert(layers: int, hidden: int, heads: int) -> dict[str, Any]:
    return _bert(
        layers, hidden, heads, family="albert", embedding_size=128, num_hidden_groups=1, activation="gelu_tanh"
    )


def _modern(layers: int, hidden: int, heads: int) -> dict[str, Any]:
    return {
        "family": "modern",
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        # As in the published base size. Three matrices this wide have 9/16 of the weights of BERT's two.
        "intermediate_size": 3 * hidden // 2,
        "max_position_embeddings": 8192,
        "type_vocab_size": 0,
        "layer_norm_eps": 1e-5,
        "rotary": RotaryConfig(),
    }


PRESETS: dict[str, dict[str, Any]] = {
    "bert-toy": _bert(4, 128, 4),
    "bert-demo": _bert(2, 256, 4),
    "bert-base": _bert(12, 768, 12),
    "bert-large": _bert(24, 1024, 16),
    "roberta-base": _roberta(12, 768, 12),
    "roberta-large": _roberta(24, 1024, 16),
    "albert-base": _albert(12, 768, 12),
    "albert-xxlarge": _albert(12, 4096, 64),
    "modern-toy": _modern(4, 128, 2),
    "modern-small": _modern(12, 384, 6),
    "modern-base": _modern(22, 768, 12),
}
"""The explainer's toy and a modern one as small, the demonstration's model, and the sizes of the BERT, RoBERTa, ALBERT
and ModernBERT papers."""

_ROBERTA_POSITIONS = 512


def preset(name: str, *, vocab_size: int, **changes: Any) -> EncoderConfig:
    """The encoder config of a preset.

    Args:
        name: one of `PRESETS`.
        vocab_size: rows of the token embedding.
        changes: fields that differ from the preset.

    Raises:
        InputError: if there is no such preset, or a change breaks a rule.
    """
    if name not in PRESETS:
        raise unknown_name("A model preset", name, PRESETS)
    values = {**PRESETS[name], "vocab_size": vocab_size, **changes}
    if values.get("family") == "roberta" and "max_position_embeddings" not in changes:
        # As many positions whatever the padding id, up to which rows of the table are not used.
        values["max_position_embeddings"] = _ROBERTA_POSITIONS + values["pad_token_id"] + 1
    return EncoderConfig.parse(values, where=f"preset {name}")
