"""`report.html` of a fine-tuning: scores, curves, each class, what was confused, the worst errors."""

from collections.abc import Sequence
from html import escape
from typing import Any

from bertsmith.reports.curves import line_chart, loss_curves, rate_chart
from bertsmith.reports.page import figures, flat, page, table
from bertsmith.reports.scores import score_text, score_title

_MOST_CLASSES = 30
"""A table of what was taken for what is readable up to so many classes."""
_DATA = ("train_rows", "validation_rows", "columns", "max_length", "train_sha256", "validation_sha256")


def finetune_report(
    name: str,
    settings: dict[str, Any],
    record: dict[str, Any],
    evaluation: dict[str, Any],
    log: Sequence[dict[str, Any]],
) -> str:
    """The page.

    Args:
        name: the run's name.
        settings: what ran, as plain values.
        record: what was found: versions, sizes, the last validation.
        evaluation: the last validation in detail.
        log: the entries of `log.jsonl`.
    """
    scores = {score_title(name): score_text(name, value) for name, value in record["metrics"].items()}
    if spread := record.get("spread"):
        scores = {
            title: f"{value} ± {score_text(name, spread[name])}"
            for (title, value), name in zip(scores.items(), spread, strict=True)
        }
    scores |= {"validation rows": f"{evaluation['rows']:,}", "steps": f"{record.get('steps', 0):,}"}
    data = {key.replace("_", " "): record[key] for key in _DATA if key in record}
    data |= {f"training rows of “{label}”": count for label, count in record.get("label_counts", {}).items()}
    return page(
        name,
        f"Fine-tuning for {settings['task']} on {settings['train']}, from {settings['model']}",
        {
            "Result": figures(scores),
            **({"Each seed": _seeds(evaluation["seeds"])} if "seeds" in evaluation else {}),
            **evaluation_sections(evaluation),
            "Loss": line_chart(loss_curves(log), x_label="step", y_label="loss, nats"),
            "Learning rate": rate_chart(log),
            "Data": table(data),
            "Settings": table(flat(settings)),
            "Versions": table(record.get("versions", {})),
        },
    )


def _seeds(metrics: dict[str, dict[str, float]]) -> str:
    names = list(next(iter(metrics.values())))
    rows = "".join(
        f"<tr><td>{seed}</td>{''.join(f'<td>{score_text(name, scores[name])}</td>' for name in names)}</tr>"
        for seed, scores in metrics.items()
    )
    return f"<table>{_head('seed', *map(score_title, names))}{rows}</table>"


def evaluation_sections(evaluation: dict[str, Any]) -> dict[str, str]:
    """Sections about what an evaluation holds; not every task has each."""
    sections: dict[str, str] = {}
    if "per_class" in evaluation:
        sections["Each class"] = _classes(evaluation["per_class"], evaluation.get("counted", "rows"))
    if "confusion" in evaluation:
        sections["What was taken for what"] = _confusion(evaluation)
    if "worst_errors" in evaluation:
        sections["Worst errors"] = _errors(evaluation["worst_errors"])
    return sections


def _classes(per_class: dict[str, dict[str, Any]], counted: str) -> str:
    rows = "".join(
        f'<tr><td dir="auto">{escape(label)}</td><td>{found["precision"]:.1%}</td><td>{found["recall"]:.1%}</td>'
        f"<td>{found['f1']:.1%}</td><td>{found['rows']:,}</td></tr>"
        for label, found in per_class.items()
    )
    return f"<table>{_head('class', 'precision', 'recall', 'F1', counted)}{rows}</table>"


def _confusion(evaluation: dict[str, Any]) -> str:
    labels, counts = evaluation["labels"], evaluation["confusion"]
    if len(labels) > _MOST_CLASSES:
        return f"<p>{_commonest_confusions(labels, counts)}</p>"
    rows = "".join(
        f'<tr><th dir="auto">{escape(label)}</th>{"".join(f"<td>{count:,}</td>" for count in row)}</tr>'
        for label, row in zip(labels, counts, strict=True)
    )
    return f"<table>{_head('true class', *labels)}{rows}</table>"


def _commonest_confusions(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    pairs = [
        (count, labels[true], labels[predicted])
        for true, row in enumerate(counts)
        for predicted, count in enumerate(row)
        if count and true != predicted
    ]
    commonest = sorted(pairs, reverse=True)[:_MOST_CLASSES]
    lines = [f"{escape(true)} taken for {escape(predicted)}: {count:,}" for count, true, predicted in commonest]
    return "<br>".join(lines) or "Nothing was confused."


def _errors(errors: Sequence[dict[str, Any]]) -> str:
    if not errors:
        return "<p>There were none.</p>"
    rows = "".join(
        f"<tr><td>{escape(error['place'])}</td><td>{_block(error['text'])}"
        f"{_block(error['pair']) if 'pair' in error else ''}</td>"
        f"<td>{_block(error['label'])}</td><td>{_block(error['predicted'])}</td>"
        f"<td>{format(error['score'], '.0%') if 'score' in error else ''}</td></tr>"
        for error in errors
    )
    return f"<table>{_head('row', 'text', 'true', 'predicted', 'how sure')}{rows}</table>"


def _block(text: str) -> str:
    """Text in the direction of its own letters, whatever stands beside it."""
    return f'<div dir="auto">{escape(text)}</div>'


def _head(*names: str) -> str:
    return f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in names)}</tr>"
