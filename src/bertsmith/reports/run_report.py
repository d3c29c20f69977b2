"""`report.html`: one self-contained page about a run. No script, no font and no picture comes from anywhere else."""

from collections.abc import Sequence
from html import escape
from typing import Any

from bertsmith.reports.curves import Curve, line_chart

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --soft: #5b667a; --line: #d9dee7; --card: #fff; --page: #f5f6f9;
  --train: #3566d6; --validation: #d2571b; --reference: #7a8396; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9f0; --soft: #9aa5b8; --line: #333b4a; --card: #1b202b;
  --page: #12151c; --train: #7ea4ff; --validation: #ff9a66; --reference: #8a94a8; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 0; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 0 0 .75rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.25rem;
  margin-top: 1rem; overflow-x: auto; }
p.lead { color: var(--soft); margin: 0; } table { border-collapse: collapse; }
td, th { text-align: start; padding: .25rem 1rem .25rem 0; vertical-align: top; font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 500; } dl.figures { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 0; }
dl.figures dt { color: var(--soft); font-size: .85rem; } dl.figures dd { margin: 0; font-size: 1.35rem; }
li { unicode-bidi: plaintext; text-align: start; margin: .2rem 0; } ul { list-style: none; margin: 0; padding: 0; }
svg { max-width: 100%; height: auto; } .legend { color: var(--soft); font-size: .9rem; }
""".strip()


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
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(name)}: bertsmith run</title><style>{_STYLE}</style></head><body><main>",
            f"<h1>{escape(name)}</h1>",
            f'<p class="lead">A {escape(str(settings["objective"]))} run from {escape(sources)}</p>',
            f"<section><h2>Result</h2>{_figures(record, metrics)}</section>",
            f"<section><h2>Loss</h2>{_loss_chart(record, log)}</section>",
            f"<section><h2>Learning rate</h2>{_rate_chart(log)}</section>",
            f"<section><h2>Completions while it trained</h2>{_samples(log)}</section>",
            f"<section><h2>Data</h2>{_table(_data(record))}</section>",
            f"<section><h2>Settings</h2>{_table(_flat(settings))}</section>",
            f"<section><h2>Versions</h2>{_table(record.get('versions', {}))}</section>",
            "</main></body></html>\n",
        ]
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
    items = "".join(f"<div><dt>{escape(key)}</dt><dd>{escape(value)}</dd></div>" for key, value in rows.items())
    return f'<dl class="figures">{items}</dl>'


def _loss_chart(record: dict[str, Any], log: Sequence[dict[str, Any]]) -> str:
    train = [(float(entry["step"]), entry["loss"]) for entry in log if entry["kind"] == "train"]
    validation = [(float(entry["step"]), entry["loss"]) for entry in log if entry["kind"] == "validation"]
    curves = [Curve("training", train, "--train"), Curve("validation", validation, "--validation")]
    if "context_free_loss" in record and train:
        level = record["context_free_loss"]
        ends = [(train[0][0], level), (train[-1][0], level)]
        curves.append(Curve("by frequency alone", ends, "--reference"))
    return line_chart(curves, x_label="step", y_label="loss, nats")


def _rate_chart(log: Sequence[dict[str, Any]]) -> str:
    rates = [(float(entry["step"]), entry["learning_rate"]) for entry in log if entry["kind"] == "train"]
    return line_chart([Curve("learning rate", rates, "--train")], x_label="step", y_label="rate", height=160)


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


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        elif value is not None:
            flat[f"{prefix}{key}"] = value
    return flat


def _table(values: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><th>{escape(str(key))}</th><td>{escape(_shown(value))}</td></tr>" for key, value in values.items()
    )
    return f"<table>{rows}</table>"


def _shown(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:g}"
        case list():
            return ", ".join(str(item) for item in value)
        case _:
            return str(value)
