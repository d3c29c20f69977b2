"""Commands that use a model: filling masks, evaluating, looking into a folder."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from bertsmith.cli.evaluation_display import show_details
from bertsmith.cli.options import Device, Engine, Folder, Json, MaxLength, Precision, PrecisionOfUse, Predicting
from bertsmith.cli.output import note, result

_DETAILS = ("per_class", "confusion", "labels", "worst_errors", "num_errors", "counted")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("fill")(fill)
    app.command("evaluate")(evaluate)
    app.command("info")(info)


def fill(
    folder: Predicting,
    texts: Annotated[list[str], typer.Argument(help="Texts with [MASK] in them.")],
    top_k: Annotated[int, typer.Option("--top-k", help="How many completions.")] = 5,
    targets: Annotated[str | None, typer.Option(help="Score these instead, parted by commas.")] = None,
    device: Device = "auto",
    precision: PrecisionOfUse = "fp32",
    engine: Engine = "auto",
    as_json: Json = False,
) -> None:
    """Fill the masks of a text.

    Example: bertsmith fill my-bert/model "The [MASK] statement ends a loop."
    """
    from bertsmith.recipes.predict import load_fill

    # A few texts are sooner filled than it is known which engine would be faster.
    predictor = load_fill(
        folder, device=device, precision=precision, engine=engine, judge_on=texts, probes=False, notify=note
    )
    for mask in predictor(texts, top_k=top_k, targets=() if targets is None else targets):
        if as_json:
            result(asdict(mask), as_json=True)
            continue
        typer.echo(f"{mask.text}    (mask {mask.mask_index})")
        for best in mask.predictions:
            place = f"rank {best.rank:<6}  " if targets is not None and best.rank is not None else ""
            typer.echo(f"  {best.score:7.2%}  {place}{best.token:<16}  {best.sequence}")
        if mask.words and mask.words != mask.predictions:
            typer.echo(f"  words: {'  '.join(f'{word.token} {word.score:.2%}' for word in mask.words)}")


def evaluate(
    folder: Folder,
    source: Annotated[
        Path,
        typer.Argument(help="Text files or a prepared corpus; for a fine-tuned model, rows of its task."),
    ],
    max_length: MaxLength = None,
    text: Annotated[str | None, typer.Option(help="Rows: column of the text; guessed if not given.")] = None,
    pair: Annotated[str | None, typer.Option(help="Rows: column of the second text.")] = None,
    label: Annotated[
        str | None,
        typer.Option(help="Rows: column of the label, or several columns of 0 and 1; guessed if not given."),
    ] = None,
    encoding: Annotated[str, typer.Option(help="Rows: encoding of the file.")] = "utf-8",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write evaluation.json, report.html, confusion.png and errors.tsv there: the last has every error, "
            "the others the 20 worst."
        ),
    ] = None,
    device: Device = "auto",
    precision: Precision = "auto",
    as_json: Json = False,
) -> None:
    """Evaluate a model: a masked language model on text, with fixed masks at 15 %; a fine-tuned one on its task's rows.

    Example: bertsmith evaluate my-classifier held-out.csv --out evaluation
    """
    from bertsmith.examples.table_config import TableConfig
    from bertsmith.recipes.evaluate import evaluate_run

    columns = {"text": text, "pair": pair, "label": label, "encoding": encoding}
    table = TableConfig.parse(columns, where="the options")
    found = evaluate_run(
        folder, source, max_length=max_length, table=table, device=device, precision=precision, out=out, notify=note
    )
    if out is not None:
        note(f"written: {out}")
    metrics, opened = dict(found.metrics), {"folder": str(found.folder), "source": str(found.source)}
    if as_json or "rows" not in metrics:
        result(opened | metrics, as_json=as_json)
        return
    for line in metrics.pop("notes", ()):
        note(line)
    result(opened | {name: value for name, value in metrics.items() if name not in _DETAILS}, as_json=False)
    show_details(metrics)


def info(
    folder: Annotated[Path, typer.Argument(help="A run, model, checkpoint, exported model, corpus or tokenizer.")],
    as_json: Json = False,
) -> None:
    """What is in a folder: family, sizes, heads, provenance.

    Example: bertsmith info my-bert/model
    """
    from bertsmith.recipes.inspect_folder import info as look

    result(look(folder), as_json=as_json)
