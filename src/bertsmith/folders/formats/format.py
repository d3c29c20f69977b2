"""What a family's format on disk consists of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bertsmith.foundation.errors import InputError
from bertsmith.model.config import ModelConfig, TaskName
from bertsmith.model.encoder_config import Activation, Family

Names = dict[str, tuple[str, ...]]
"""``ours -> (theirs, ...)``: where several of theirs stand, they are the parts of ours, one below the other."""

MASKED_LANGUAGE_MODEL = "masked_language_model"
NEXT_SENTENCE = "next_sentence"
SENTENCE_ORDER = "sentence_order"
CLASSIFIER = "classifier"
CHOICE = "choice"
TOKEN_CLASSIFIER = "token_classifier"
SPANS = "spans"

_ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "relu": "relu",
}
_ACTIVATION_NAMES: dict[Activation, str] = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "relu": "relu"}


@dataclass(frozen=True)
class Format:
    """How one family lies in a folder of the Hugging Face layout."""

    family: Family
    model_type: str
    prefix: str
    """What stands before an encoder weight's name under a head's class."""
    encoder_class: str
    """The class of the encoder without heads."""
    classes: Mapping[frozenset[str], str]
    """The class that computes what a model with these heads computes."""
    names: Callable[[ModelConfig, str], Names]
    """Weight names of a model under a prefix, heads included."""
    token_embedding: str
    """Their name for the token embedding, without prefix: what a folder of the family is known by."""
    projection: str
    """Their name for the matrix of the vocabulary head, which a tied folder may hold beside the embedding."""
    bias: str
    projection_bias: str | None
    """Their second name for the bias of the vocabulary head, where the class has two."""
    write: Callable[[ModelConfig], dict[str, Any]]
    """The family's own entries of `config.json`."""
    read: Callable[[dict[str, Any], str], dict[str, Any]]
    """Fields of the encoder's config out of `config.json` and the file's name for messages."""
    classifier_dropout: Callable[[dict[str, Any], TaskName | None], Any]
    """The dropout before a task's last projection out of `config.json`, as the task's class has it."""
    twins: tuple[str, ...] = ()
    """Other model types whose classes compute the same from weights of the same names; they are read, not written."""


def activation_name(activation: Activation) -> str:
    """Their name of an activation."""
    return _ACTIVATION_NAMES[activation]


def read_activation(values: dict[str, Any], key: str, where: str, *, default: str = "gelu") -> Activation:
    """An activation by the name that stands under `key`.

    Raises:
        InputError: if there is none of that name here.
    """
    name = values.get(key, default)
    if not isinstance(name, str) or name not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise InputError(f"{key} must be one of: {known}", f"{name!r} in {where}", "Use another model.")
    return _ACTIVATIONS[name]


def renamed(values: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The entries that have a value, under our names; `names` leads from ours to theirs."""
    return {ours: values[theirs] for ours, theirs in names.items() if values.get(theirs) is not None}


def with_kinds(modules: Names) -> Names:
    """Weight and bias of each module."""
    return {
        f"{ours}.{kind}": tuple(f"{name}.{kind}" for name in theirs)
        for ours, theirs in modules.items()
        for kind in ("weight", "bias")
    }


TOKEN_HEADS: Names = with_kinds({"token_classifier.output": ("classifier",), "spans.output": ("qa_outputs",)})
"""Heads over tokens where the family's classes project what the encoder gives."""


def task_classes(family: str) -> dict[frozenset[str], str]:
    """The classes of the tasks, which have the same endings in all families."""
    return {
        frozenset({CLASSIFIER}): f"{family}ForSequenceClassification",
        frozenset({CHOICE}): f"{family}ForMultipleChoice",
        frozenset({TOKEN_CLASSIFIER}): f"{family}ForTokenClassification",
        frozenset({SPANS}): f"{family}ForQuestionAnswering",
    }


def under(prefix: str, names: Names, *, ours: str = "") -> Names:
    """The same names with a prefix before theirs and one before ours."""
    return {f"{ours}{own}": tuple(f"{prefix}{name}" for name in theirs) for own, theirs in names.items()}
