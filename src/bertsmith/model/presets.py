"""Named sizes. A preset says everything but the vocabulary, which the tokenizer decides."""

from typing import Any

from bertsmith.foundation.errors import unknown_name
from bertsmith.model.config import EncoderConfig


def _bert(layers: int, hidden: int, heads: int, **more: Any) -> dict[str, Any]:
    return {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden,
        **more,
    }


PRESETS: dict[str, dict[str, Any]] = {
    "bert-toy": _bert(4, 128, 4),
    "bert-demo": _bert(2, 256, 4),
    "bert-base": _bert(12, 768, 12),
    "bert-large": _bert(24, 1024, 16),
}
"""The explainer's toy, the demonstration's model, and the two sizes of the BERT paper."""


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
    return EncoderConfig.parse({**PRESETS[name], "vocab_size": vocab_size, **changes}, where=f"preset {name}")
