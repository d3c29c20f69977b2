"""`report.html`: one self-contained page about a run. No script, no font and no picture comes from anywhere else."""

from collections.abc import Sequence
from html import escape
from typing import Any

from bertsmith.reports.curves import Curve, line_chart, loss_curves, rate_chart
from bertsmith.reports.page import figures, flat, page, table


def run_report(name: str, settings: dict[str, Any], record: dict[str, Any], log: Sequence[dict[str, Any]]) -> str:
    """The page.

    Args:
        name: the run's name.
        settings: what ran, as plain values.
        record: what was found: versions, sizes, the last validation.
        log: the entries of `log.jsonl`.
    """
    metrics = record.get("metrics", {})
    sources = ", ".join(settings["sources"])
    return page(
        name,
        f"A {settings['objective']} run from {sources}",
        {
            "Result": _figures(record, metrics),
            "Loss": _loss_chart(record, log),
            "Learning rate": rate_chart(log),
            "Completions while it trained": _samples(log),
            "Data": table(_data(record)),
            "Settings": table(flat(settings)),
            "Versions": table(record.get("versions", {})),
        },
    )


def _figures(record: dict[str, Any], metrics: dict[str, float]) -> str:
    rows = {"validation loss": f"{metrics['loss']:.3f} nats"} if "loss" in metrics else {}
    rows |= {
        f"{term.removesuffix('_accuracy').upper()} accuracy": f"{value:.1%}"
        for term, value in metrics.items()
        if term.endswith("_accuracy")
    }
    if "context_free_loss" in record:
        rows["loss by frequency alone"] = f"{record['context_free_loss']:.3f} nats"
    rows |= {"steps": f"{record.get('steps', 0):,}", "tokens": f"{record.get('tokens', 0):,}"}
    return figures(rows)


def _loss_chart(record: dict[str, Any], log: Sequence[dict[str, Any]]) -> str:
    curves = loss_curves(log)
    train = curves[0].points
    if "context_free_loss" in record and train:
        level = record["context_free_loss"]
        ends = [(train[0][0], level), (train[-1][0], level)]
        curves.append(Curve("by frequency alone", ends, "--reference"))
    return line_chart(curves, x_label="step", y_label="loss, nats")


def _samples(log: Sequence[dict[str, Any]]) -> str:
    samples = [entry for entry in log if entry["kind"] == "samples" and entry["lines"]]
    if not samples:
        return "<p>None were made.</p>"
    rows = []
    for entry in dict.fromkeys((0, len(samples) // 2, len(samples) - 1)):
        lines = "".join(f'<li dir="auto">{escape(line)}</li>' for line in samples[entry]["lines"])
        rows.append(f"<tr><th>step {samples[entry]['step']}</th><td><ul>{lines}</ul></td></tr>")
    return f"<table>{''.join(rows)}</table>"


def _data(record: dict[str, Any]) -> dict[str, Any]:
    names = ("train_documents", "train_tokens", "validation_tokens", "vocab_size", "train_entropy", "corpus_sha256")
    return {name.replace("_", " "): record[name] for name in names if name in record}
