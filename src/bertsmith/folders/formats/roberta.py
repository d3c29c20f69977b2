"""RoBERTa's format: BERT's encoder, other heads."""

from typing import Any

from bertsmith.folders.formats.bert import classifier_dropout, encoder_names, read_common, write_bert
from bertsmith.folders.formats.format import MASKED_LANGUAGE_MODEL, TOKEN_HEADS, Format, Names, task_classes, with_kinds
from bertsmith.foundation.errors import InputError
from bertsmith.model.config import ModelConfig, TaskName

_HEADS: Names = {
    **with_kinds(
        {
            "masked_language_model.transform.dense": ("lm_head.dense",),
            "masked_language_model.transform.norm": ("lm_head.layer_norm",),
            "classifier.summary.dense": ("classifier.dense",),
            "classifier.output": ("classifier.out_proj",),
        }
    ),
    **TOKEN_HEADS,
    "masked_language_model.untied": ("lm_head.decoder.weight",),
    "masked_language_model.bias": ("lm_head.bias",),
}


_CHOICE: Names = with_kinds({"classifier.output": ("classifier",)})
"""Choices are scored from the pooler, as in BERT, and not by the head that classes of whole texts have."""


def _names(config: ModelConfig, prefix: str) -> Names:
    names = encoder_names(config.encoder, prefix) | _HEADS
    return names | _CHOICE if config.heads.task == "choose" else names


def _dropout(values: dict[str, Any], task: TaskName | None) -> Any:
    return values.get("hidden_dropout_prob", 0.1) if task == "choose" else classifier_dropout(values, task)


def _read(values: dict[str, Any], where: str) -> dict[str, Any]:
    if values.get("is_decoder"):
        raise InputError("A RoBERTa must read in both directions", f"a decoder in {where}", "Use an encoder.")
    # The padding id decides where positions begin, and RoBERTa's is 1 where none is named.
    return {"pad_token_id": 1} | read_common(values, where)


ROBERTA = Format(
    family="roberta",
    model_type="roberta",
    prefix="roberta.",
    encoder_class="RobertaModel",
    classes={
        frozenset({MASKED_LANGUAGE_MODEL}): "RobertaForMaskedLM",
        **task_classes("Roberta"),
    },
    names=_names,
    token_embedding="embeddings.word_embeddings.weight",
    projection="lm_head.decoder.weight",
    bias="lm_head.bias",
    projection_bias="lm_head.decoder.bias",
    write=write_bert,
    read=_read,
    classifier_dropout=_dropout,
    twins=("xlm-roberta", "camembert"),
)
