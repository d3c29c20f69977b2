"""How each family lies on disk: one file a family, and the choice among them."""

from typing import Any

from bertsmith.folders.formats.albert import ALBERT
from bertsmith.folders.formats.bert import BERT
from bertsmith.folders.formats.distilbert import DISTILBERT
from bertsmith.folders.formats.elmo import ELMO
from bertsmith.folders.formats.format import CHOICE, Format, Names
from bertsmith.folders.formats.modern import MODERN
from bertsmith.folders.formats.roberta import ROBERTA
from bertsmith.foundation.errors import InputError, near_match
from bertsmith.model.config import HeadsConfig, ModelConfig
from bertsmith.model.encoder_config import Family

__all__ = ["FORMATS", "Format", "Names", "format_of", "named_format", "published_class"]

FORMATS: dict[Family, Format] = {one.family: one for one in (BERT, ROBERTA, ALBERT, DISTILBERT, MODERN, ELMO)}
_BY_MODEL_TYPE = {one.model_type: one for one in FORMATS.values()} | {
    twin: one for one in FORMATS.values() for twin in one.twins
}
_PRETRAINING_HEADS = ("masked_language_model", "next_sentence", "sentence_order")


def format_of(values: dict[str, Any], where: str) -> Format:
    """The format of the family that a `config.json` names, or that it shows where it names none.

    Raises:
        InputError: for a family that is not known here, or classes that are no list of names.
    """
    kind, names = values.get("model_type"), values.get("architectures") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError("architectures must be a list of names of classes", f"{names!r} in {where}", "Mend the file.")
    if kind is None:
        return _shown(values, names[0] if names else "")
    if not isinstance(kind, str) or kind not in _BY_MODEL_TYPE:
        known = ", ".join(_BY_MODEL_TYPE)
        near = near_match(str(kind), list(_BY_MODEL_TYPE))
        raise InputError(
            f"A model folder must be of a family that is known here: {known}",
            f"model_type {kind!r} in {where}",
            f"Did you mean {near}?" if near else "Use a model of one of these families.",
        )
    return _BY_MODEL_TYPE[kind]


def _shown(values: dict[str, Any], architecture: str) -> Format:
    for one in FORMATS.values():
        with_heads = f"{one.encoder_class.removesuffix('Model')}For"
        if one.encoder_class and (architecture == one.encoder_class or architecture.startswith(with_heads)):
            return one
    return ALBERT if "num_hidden_groups" in values else BERT


def named_format(config: ModelConfig) -> Format:
    """The format of a model's family."""
    return FORMATS[config.encoder.family]


def published_class(config: ModelConfig) -> str | None:
    """The Hugging Face class that computes what this model computes; None where there is no such class."""
    heads, own = config.heads, named_format(config)
    if heads.masked_language_model and (heads.mlm_head, heads.mlm_head_input) != ("transform", "last"):
        return None
    if heads.value_scale is not None:
        # Its output becomes a value only when it is scaled, which no class does.
        return None
    reads_mean = heads.task_head == "classifier" and heads.classifier_input == "mean"
    if reads_mean and config.encoder.family != "modern":
        return None
    if not (found := _names_of(heads)):
        return own.encoder_class or None
    if config.encoder.causal:
        return "BertLMHeadModel" if found == {"masked_language_model"} else None
    return own.classes.get(frozenset(found)) or None


def _names_of(heads: HeadsConfig) -> set[str]:
    found = {name for name in _PRETRAINING_HEADS if getattr(heads, name)}
    if heads.task_head is None:
        return found
    return found | {CHOICE if heads.task == "choose" else heads.task_head}
