"""The model card of a fine-tuned model: `README.md` of its folder."""

from collections.abc import Sequence
from typing import Any

from bertsmith.folders.formats import published_class
from bertsmith.folders.offer import offer_of
from bertsmith.model.config import ModelConfig
from bertsmith.reports.model_names import model_tag, model_title
from bertsmith.reports.scores import score_title
from bertsmith.text.shown import listed_names

_MOST_LABELS = 50


_JOBS = {
    "classify": "A classifier of {} labels",
    "multilabel": "A tagger of whole texts with {} labels",
    "regress": "A model that gives texts a value",
    "choose": "A model that chooses the best of several continuations",
    "tag": "A tagger of words with {} labels",
    "answer": "A model that finds answers in a text",
    "embed": "A model that turns texts into vectors",
}
_PIPELINES = {
    "classify": ("text-classification", "classify", ", truncation=True"),
    "multilabel": ("text-classification", "classify", ", truncation=True, top_k=None"),
    "regress": ("text-classification", "value_of", ', truncation=True, function_to_apply="none"'),
    "tag": ("token-classification", "tag", ""),
}
_ITEMS = {
    "answer": '("Who wrote it?", "It was written by Ada.")',
    "choose": '("He opened the door", ["and went in.", "and a banana."])',
}


def task_card(config: ModelConfig, record: dict[str, Any], evaluation: dict[str, Any]) -> str:
    """What a stranger must know of a fine-tuned model, as Markdown with the Hub's front matter.

    Args:
        config: the model.
        record: what the run wrote down: sizes, versions, steps, scores.
        evaluation: the last validation in detail.
    """
    encoder, heads_config = config.encoder, config.heads
    labels, task = heads_config.labels, heads_config.task or "classify"
    offer = offer_of(config)
    heads = "" if encoder.family == "elmo" else f"{encoder.num_attention_heads} heads, "
    lines = [
        "---",
        f"library_name: {offer.library}",
        f"pipeline_tag: {offer.pipeline}",
        f"tags: [{model_tag(config)}, bertsmith]",
        "---",
        "",
        f"# {_JOBS[task].format(len(labels))}",
        "",
        *_labels(labels),
        f"{model_title(config)}: {encoder.num_hidden_layers} layers, hidden size {encoder.hidden_size}, {heads}"
        f"{encoder.vocab_size:,} pieces. It sees at most {record['max_length']} tokens at a time.",
        "",
        "| | |",
        "|---|---|",
        f"| training rows | {record['train_rows']:,} |",
        f"| trained | {record['steps']:,} steps, {record['tokens']:,} tokens |",
        f"| validation rows | {evaluation['rows']:,} |",
        *(f"| {score_title(name)} | {value:.4f} |" for name, value in record["metrics"].items()),
        "",
        *_classes(evaluation.get("per_class", {}), evaluation.get("counted", "rows")),
        "## Use",
        "",
        "```python",
        *_usage(task, published=published_class(config) is not None, pairs=bool(heads_config.pairs)),
        "```",
        "",
        "## Limits",
        "",
        "It knows the rows it was trained on, their errors and prejudices included, and gives an answer to any text, "
        "also to one that is like none of them.",
        "",
    ]
    return "\n".join(lines)


def _labels(labels: Sequence[str]) -> list[str]:
    if not labels:
        return []
    shown = listed_names(_plain(label) for label in labels[:_MOST_LABELS])
    more = f" and {len(labels) - _MOST_LABELS} more" if len(labels) > _MOST_LABELS else ""
    return [f"Its labels: {shown}{more}.", ""]


def _classes(per_class: dict[str, dict[str, Any]], counted: str) -> list[str]:
    if not per_class:
        return []
    rows = [
        f"| {_plain(label)} | {found['precision']:.3f} | {found['recall']:.3f} | {found['f1']:.3f} "
        f"| {found['rows']:,} |"
        for label, found in per_class.items()
    ]
    return [f"| label | precision | recall | F1 | {counted} |", "|---|---|---|---|---|", *rows, ""]


def _usage(task: str, *, published: bool, pairs: bool) -> list[str]:
    if published and task in _PIPELINES:
        pipeline, name, options = _PIPELINES[task]
        item = '{"text": "Some text.", "text_pair": "Another one."}' if pairs else '"Some text."'
        return [
            "from transformers import pipeline",
            f'{name} = pipeline("{pipeline}", model="PATH")',
            f"{name}({item}{options})",
        ]
    item = _ITEMS.get(task, '("Some text.", "Another one.")' if pairs else '"Some text."')
    return ["import bertsmith", f'{task} = bertsmith.load("PATH")', f"{task}([{item}])"]


def _plain(label: str) -> str:
    """A label that leaves a table's cells as they are."""
    return " ".join(label.split()).replace("|", "\\|")
