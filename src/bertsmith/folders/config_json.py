"""`config.json`: our config as the Hugging Face layout writes it, and back."""

from typing import Any

from bertsmith.foundation.errors import InputError
from bertsmith.model.config import Activation, Dropout, EncoderConfig, HeadsConfig, ModelConfig

_ACTIVATION_OUT: dict[Activation, str] = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "relu": "relu"}
_ACTIVATION_IN: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "relu": "relu",
}
_SAME_NAME = (
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
OWN_SECTION = "bertsmith"
"""Key of `config.json` under which stands what the Hugging Face classes have no field for."""


def architecture(heads: HeadsConfig) -> str:
    """The class that computes what this model computes; the plain encoder's where no class has such heads."""
    if not heads.as_published:
        return "BertModel"
    match heads.masked_language_model, heads.next_sentence:
        case True, True:
            return "BertForPreTraining"
        case True, False:
            return "BertForMaskedLM"
        case False, True:
            return "BertForNextSentencePrediction"
        case _:
            return "BertModel"


def to_json(config: ModelConfig) -> dict[str, Any]:
    """`config.json` for a model."""
    encoder = config.encoder
    return {
        "architectures": [architecture(config.heads)],
        "model_type": "bert",
        **{name: getattr(encoder, name) for name in _SAME_NAME},
        "hidden_act": _ACTIVATION_OUT[encoder.activation],
        "hidden_dropout_prob": encoder.dropout.feed_forward,
        "attention_probs_dropout_prob": encoder.dropout.attention_weights,
        "tie_word_embeddings": config.heads.tie_embeddings,
        "dtype": "float32",
        OWN_SECTION: {"heads": config.heads.model_dump(), "dropout": encoder.dropout.model_dump()},
    }


def own_section(values: dict[str, Any], where: str) -> dict[str, Any]:
    """What bertsmith wrote for itself; empty in a `config.json` from elsewhere.

    Raises:
        InputError: if something else stands there.
    """
    own = values.get(OWN_SECTION) or {}
    if not isinstance(own, dict):
        raise InputError(f"{OWN_SECTION} must be an object", f"{own!r} in {where}", "Fetch or write the file anew.")
    return own


def encoder_from_json(values: dict[str, Any], where: str) -> EncoderConfig:
    """The encoder's config out of `config.json`, from here or from elsewhere.

    Raises:
        InputError: for a family, an activation or a kind of position that is not known here.
    """
    family = values.get("model_type", "bert")
    if family != "bert":
        raise InputError(
            "A model folder must be of a family that is known here: bert",
            f"model_type {family!r} in {where}",
            "Use the folder of a BERT.",
        )
    if (kind := values.get("position_embedding_type", "absolute")) != "absolute":
        raise InputError("Positions must be absolute", f"position_embedding_type {kind!r} in {where}", "Use another.")
    if values.get("is_decoder") or values.get("add_cross_attention"):
        raise InputError("A model must read in both directions", f"a decoder in {where}", "Use an encoder.")
    act = values.get("hidden_act", "gelu")
    if not isinstance(act, str) or act not in _ACTIVATION_IN:
        known = ", ".join(_ACTIVATION_IN)
        raise InputError(f"hidden_act must be one of: {known}", f"{act!r} in {where}", "Use another model.")
    own = own_section(values, where)
    published = values.get("hidden_dropout_prob", 0.1)
    dropout = own.get("dropout") or {
        "embeddings": published,
        "attention_weights": values.get("attention_probs_dropout_prob", 0.1),
        "attention_output": published,
        "feed_forward": published,
    }
    fields = {name: values[name] for name in _SAME_NAME if values.get(name) is not None}
    return EncoderConfig.parse(
        fields | {"activation": _ACTIVATION_IN[act], "dropout": Dropout.parse(dropout, where=where)}, where=where
    )
