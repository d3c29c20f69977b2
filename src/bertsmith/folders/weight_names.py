"""Our weight names beside those of the Hugging Face layout, as one reversible table a family.

An entry is ``ours -> (theirs, ...)``: where several of theirs stand, they are the parts of ours, one below the other.
"""

from bertsmith.model.config import ModelConfig

Names = dict[str, tuple[str, ...]]

_BERT_EMBEDDINGS: Names = {
    "token.weight": ("word_embeddings.weight",),
    "position.weight": ("position_embeddings.weight",),
    "segment.weight": ("token_type_embeddings.weight",),
    "norm.weight": ("LayerNorm.weight",),
    "norm.bias": ("LayerNorm.bias",),
}
_BERT_LAYER_MODULES: Names = {
    "attention.query_key_value": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attention.output": ("attention.output.dense",),
    "attention_norm": ("attention.output.LayerNorm",),
    "feed_forward.up": ("intermediate.dense",),
    "feed_forward.down": ("output.dense",),
    "feed_forward_norm": ("output.LayerNorm",),
}
_BERT_HEADS: Names = {
    "masked_language_model.transform.dense.weight": ("cls.predictions.transform.dense.weight",),
    "masked_language_model.transform.dense.bias": ("cls.predictions.transform.dense.bias",),
    "masked_language_model.transform.norm.weight": ("cls.predictions.transform.LayerNorm.weight",),
    "masked_language_model.transform.norm.bias": ("cls.predictions.transform.LayerNorm.bias",),
    "masked_language_model.untied": ("cls.predictions.decoder.weight",),
    "masked_language_model.bias": ("cls.predictions.bias",),
    "next_sentence.weight": ("cls.seq_relationship.weight",),
    "next_sentence.bias": ("cls.seq_relationship.bias",),
}
_OLD_ENDINGS = {".gamma": ".weight", ".beta": ".bias"}


def bert_encoder_names(num_layers: int, prefix: str) -> Names:
    """Names of the encoder and its pooler.

    Args:
        num_layers: how many layers there are.
        prefix: ``"bert."`` under a head's class, empty under the plain encoder's.
    """
    names = {
        f"encoder.embeddings.{ours}": tuple(f"{prefix}embeddings.{name}" for name in theirs)
        for ours, theirs in _BERT_EMBEDDINGS.items()
    }
    for layer in range(num_layers):
        for ours, theirs in _BERT_LAYER_MODULES.items():
            for kind in ("weight", "bias"):
                names[f"encoder.layers.{layer}.{ours}.{kind}"] = tuple(
                    f"{prefix}encoder.layer.{layer}.{name}.{kind}" for name in theirs
                )
    for kind in ("weight", "bias"):
        names[f"pooler.dense.{kind}"] = (f"{prefix}pooler.dense.{kind}",)
    return names


def bert_names(config: ModelConfig, prefix: str) -> Names:
    """Names of the encoder, its pooler and the published pre-training heads."""
    return bert_encoder_names(config.encoder.num_hidden_layers, prefix) | _BERT_HEADS


def modern_name(name: str) -> str:
    """A weight's name as it is written today: norms were once called gamma and beta."""
    for old, new in _OLD_ENDINGS.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name
