"""The variables of Google's original BERT and ALBERT checkpoints, and their names in the Hugging Face layout."""

import re

_SLOTS = re.compile(r"/(adam|lamb|lars)_[mv]$|/(Adam|LAMB|Momentum|RMSProp|ExponentialMovingAverage)(_\d+)?$")
_COUNTERS = re.compile(r"(^|/)(global_step|beta[12]_power)$")
# Google's module store wrote its exports below one more name.
_EXPORTED = "module/"
_ALBERT_MARK = "/embedding_hidden_mapping_in/"

_ENDINGS = (
    (r"(word|position|token_type)_embeddings$", r"\1_embeddings/weight"),
    (r"/(kernel|gamma|output_weights)$", "/weight"),
    (r"/(beta|output_bias)$", "/bias"),
)
_BERT = ((r"/layer_(\d+)/", r"/layer/\1/"),)
_ALBERT = (
    (r"/transformer/group_(\d+)/inner_group_(\d+)/", r"/albert_layer_groups/\1/albert_layers/\2/"),
    (r"(albert_layers/\d+)/attention_1/self/", r"\1/attention/"),
    (r"(albert_layers/\d+)/attention_1/output/dense/", r"\1/attention/dense/"),
    (r"(albert_layers/\d+)/LayerNorm/", r"\1/attention/LayerNorm/"),
    (r"(albert_layers/\d+)/LayerNorm_1/", r"\1/full_layer_layer_norm/"),
    (r"(albert_layers/\d+)/ffn_1/intermediate/output/dense/", r"\1/ffn_output/"),
    (r"(albert_layers/\d+)/ffn_1/intermediate/dense/", r"\1/ffn/"),
    (r"^bert/pooler/dense/", "bert/pooler/"),
    (r"^bert/", "albert/"),
    (r"^cls/predictions/transform/", "predictions/"),
    (r"^cls/predictions/", "predictions/"),
    (r"^cls/seq_relationship/", "sop_classifier/classifier/"),
)


def is_slot(variable: str) -> bool:
    """Whether a variable belongs to the optimizer or counts steps."""
    return _SLOTS.search(variable) is not None or _COUNTERS.search(variable) is not None


def is_albert(variables: list[str]) -> bool:
    """Whether these are ALBERT's variables: it alone maps embeddings to the hidden size."""
    return any(_ALBERT_MARK in variable for variable in variables)


def layout_name(variable: str, *, albert: bool) -> str | None:
    """A variable's name in the Hugging Face layout, or None where it is no part of the encoder or its heads."""
    name = variable.removeprefix(_EXPORTED)
    if not name.startswith(("bert/", "cls/")):
        return None
    for pattern, replacement in (*(_ALBERT if albert else _BERT), *_ENDINGS):
        name = re.sub(pattern, replacement, name)
    return name.replace("/", ".")


def is_transposed(variable: str) -> bool:
    """Whether TensorFlow keeps it as ``[inputs, outputs]``, where the layout has ``[outputs, inputs]``."""
    return variable.endswith("/kernel")
