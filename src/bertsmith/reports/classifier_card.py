"""The model card of a classifier: `README.md` of its folder."""

from typing import Any

from bertsmith.folders.formats import published_class
from bertsmith.folders.offer import offer_of
from bertsmith.model.config import ModelConfig
from bertsmith.reports.model_names import model_tag, model_title

_MOST_LABELS = 50


def classifier_card(config: ModelConfig, record: dict[str, Any], evaluation: dict[str, Any]) -> str:
    """What a stranger must know of a classifier, as Markdown with the Hub's front matter.

    Args:
        config: the model.
        record: what the run wrote down: sizes, versions, steps.
        evaluation: the last validation in detail.
    """
    encoder, labels = config.encoder, config.heads.labels
    published = published_class(config) is not None
    offer = offer_of(config)
    heads = "" if encoder.family == "elmo" else f"{encoder.num_attention_heads} heads, "
    shown = ", ".join(_plain(label) for label in labels[:_MOST_LABELS])
    more = f" and {len(labels) - _MOST_LABELS} more" if len(labels) > _MOST_LABELS else ""
    lines = [
        "---",
        f"library_name: {offer.library}",
        f"pipeline_tag: {offer.pipeline}",
        f"tags: [{model_tag(config)}, bertsmith]",
        "---",
        "",
        f"# A classifier of {len(labels)} labels",
        "",
        f"It tells apart: {shown}{more}.",
        "",
        f"{model_title(config)}: {encoder.num_hidden_layers} layers, hidden size {encoder.hidden_size}, {heads}"
        f"{encoder.vocab_size:,} pieces. Of a text it sees at most {record['max_length']} tokens.",
        "",
        "| | |",
        "|---|---|",
        f"| training rows | {record['train_rows']:,} |",
        f"| trained | {record['steps']:,} steps, {record['tokens']:,} tokens |",
        f"| validation rows | {evaluation['rows']:,} |",
        *(f"| {name.replace('_', ' ')} | {evaluation[name]:.4f} |" for name in ("accuracy", "macro_f1", "matthews")),
        "",
        "| label | precision | recall | F1 | rows |",
        "|---|---|---|---|---|",
        *(
            f"| {_plain(label)} | {found['precision']:.3f} | {found['recall']:.3f} | {found['f1']:.3f} "
            f"| {found['rows']:,} |"
            for label, found in evaluation["per_class"].items()
        ),
        "",
        "## Use",
        "",
        "```python",
        *_usage(published),
        "```",
        "",
        "## Limits",
        "",
        "It knows the rows it was trained on, their errors and prejudices included, and gives one of its labels to any "
        "text, also to one that none of them fits.",
        "",
    ]
    return "\n".join(lines)


def _usage(published: bool) -> list[str]:
    if published:
        return [
            "from transformers import pipeline",
            'classify = pipeline("text-classification", model="PATH")',
            'classify("Some text.", truncation=True)',
        ]
    return ["import bertsmith", 'classify = bertsmith.load("PATH")', 'classify("Some text.")']


def _plain(label: str) -> str:
    """A label that leaves a table's cells as they are."""
    return " ".join(label.split()).replace("|", "\\|")
