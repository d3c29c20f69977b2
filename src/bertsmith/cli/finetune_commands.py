"""Commands of the downstream tasks: fine-tuning, and using what came of it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.output import TrainingDisplay, note, result
from bertsmith.foundation.errors import InputError

if TYPE_CHECKING:
    from bertsmith.inference.classify import ClassifyPredictor, ClassPrediction
    from bertsmith.recipes.finetuning.classify_rows import RowResult
    from bertsmith.recipes.results import Run

Json = Annotated[bool, typer.Option("--json", help="Print results as JSON lines.")]
_MOST_ERRORS = 5
_MOST_CLASSES = 20
_MOST_FAULTS = 5
_LONGEST_TEXT = 100


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("finetune")(finetune)
    app.command("classify")(classify)


def finetune(
    task: Annotated[str, typer.Argument(help="classify.")],
    train: Annotated[
        Path | None, typer.Argument(help="Labelled rows: .csv, .tsv, .jsonl or .parquet, with .gz or .zst too.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the run. The same command again goes on there.")] = ...,  # pyright: ignore[reportArgumentType]
    model: Annotated[str | None, typer.Option(help="Folder of the encoder, or of the run that made it.")] = None,
    validation: Annotated[
        Path | None, typer.Option(help="Rows to validate on; a share of the training rows if not given.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="Column of the text; guessed if not given.")] = None,
    pair: Annotated[str | None, typer.Option(help="Column of the second text; guessed if not given.")] = None,
    label: Annotated[str | None, typer.Option(help="Column of the label; guessed if not given.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of the files, if not UTF-8.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the rows; 3 to 20 by their number.")] = None,
    steps: Annotated[int | None, typer.Option(help="Steps.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Time for all of it.")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings as TOML, such as a run's run.toml.")] = None,
    assignments: Annotated[list[str] | None, typer.Option("--set", help="key=value, over all else.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda …")] = None,
    precision: Annotated[str | None, typer.Option(help="auto, fp32 or bf16.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads for computing.")] = None,
    max_length: Annotated[int | None, typer.Option(help="Most tokens of a text.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Texts of a step.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="By the model's width if not given.")] = None,
    seed: Annotated[int | None, typer.Option(help="Decides the new weights and the order.")] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Remove an earlier run in --out first.")] = False,
    as_json: Json = False,
) -> None:
    """Train an encoder to do a job, from rows with labels.

    Example: bertsmith finetune classify train.csv --model my-bert/model --out my-classifier
    """
    from bertsmith.recipes.finetuning.options import FinetuneConfig
    from bertsmith.recipes.finetuning.run import finetune_run
    from bertsmith.recipes.settings import given_settings

    options = {
        "task": task,
        "train": None if train is None else str(train),
        "model": model,
        "validation": None if validation is None else str(validation),
        "max_length": max_length,
        "data.text": text,
        "data.pair": pair,
        "data.label": label,
        "data.encoding": encoding,
        "length.epochs": epochs,
        "length.steps": steps,
        "length.minutes": minutes,
        "runtime.device": device,
        "runtime.precision": precision,
        "runtime.threads": threads,
        "training.batch_size": batch_size,
        "training.optimizer.learning_rate": learning_rate,
        "training.seed": seed,
    }
    values = given_settings(config, options, assignments or [])
    for key, what in (("train", "a file of labelled rows"), ("model", "--model, the folder of an encoder")):
        if not values.get(key):
            raise InputError(
                f"finetune needs {what}",
                "none",
                "For example: bertsmith finetune classify train.csv --model DIR --out OUT",
            )
    parsed = FinetuneConfig.parse(values, where="the options" if config is None else str(config))
    run = finetune_run(parsed, out, restart=restart, observers=[TrainingDisplay()], notify=note)
    if run.already_finished:
        note(f"{out} is finished. --restart begins anew.")
    _show_run(run, as_json=as_json)


def _show_run(run: "Run", *, as_json: bool) -> None:
    figures = {"folder": str(run.folder), "model": str(run.model_folder), "steps": run.steps, "tokens": run.tokens}
    result(figures | {"rows": run.evaluation["rows"]} | run.metrics, as_json=as_json)
    if not as_json:
        show_classes(run.evaluation)
        show_errors(run.evaluation)
        note(f"\nreport: {run.folder / 'report.html'}")
        note(f'try it: bertsmith classify {run.model_folder} "{_example(run.evaluation)}"')


def classify(
    folder: Annotated[Path, typer.Argument(help="A classifier's model folder, or the finished run that made it.")],
    texts: Annotated[list[str] | None, typer.Argument(help="Texts.")] = None,
    pair: Annotated[str | None, typer.Option(help="The second text, for a model of pairs.")] = None,
    source: Annotated[
        str | None, typer.Option("--input", help="A file of texts, or - for lines on standard input.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write results there: .csv, .tsv, else JSON lines.")] = None,
    text_column: Annotated[
        str | None, typer.Option(help="The file's column of the text; guessed if not given.")
    ] = None,
    pair_column: Annotated[str | None, typer.Option(help="The file's column of the second text.")] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of the file.")] = "utf-8",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda …")] = "auto",
    precision: Annotated[str, typer.Option(help="auto, fp32 or bf16.")] = "fp32",
    as_json: Json = False,
) -> None:
    """Tell the class of texts, or of every row of a file.

    Example: bertsmith classify my-classifier "A film to remember."
    """
    if bool(texts) == (source is not None):
        raise InputError(
            "classify takes texts, or a file of them with --input",
            "both" if texts else "neither",
            'For example: bertsmith classify DIR "A text." or bertsmith classify DIR --input texts.txt.',
        )
    if pair is not None and len(texts or []) != 1:
        raise InputError(
            "--pair goes with one text", f"{len(texts or [])} texts", "Give pairs as columns of a file with --input."
        )
    if output is not None and source is None:
        raise InputError("--output goes with --input", "texts on the command line", "Leave it out, or give a file.")
    from bertsmith.recipes.finetuning.classify_rows import prediction_values, refuse_unwritable
    from bertsmith.recipes.predict import load_classifier

    if output is not None:
        refuse_unwritable(output)

    predictor = load_classifier(folder, device=device, precision=precision)
    if source is not None:
        columns = {"text": text_column, "pair": pair_column, "encoding": encoding}
        _classify_rows(predictor, source, output, columns, as_json=as_json)
        return
    items = [text if pair is None else (text, pair) for text in texts or []]
    for prediction in predictor(items):
        if as_json:
            result(prediction_values(prediction), as_json=True)
        else:
            _show_prediction(prediction)


def show_classes(evaluation: dict[str, Any]) -> None:
    """Each class's scores; of many, those with the lowest F1."""
    per_class = evaluation["per_class"]
    shown = sorted(per_class, key=lambda name: per_class[name]["f1"])[:_MOST_CLASSES]
    shown = [name for name in per_class if name in shown]
    left_out = len(per_class) - len(shown)
    typer.echo("\neach class" + (f", the {len(shown)} lowest of {len(per_class)}" if left_out else ""))
    width = max(len(name) for name in shown)
    for name in shown:
        found = per_class[name]
        typer.echo(
            f"  {name:<{width}}  precision {found['precision']:6.1%}  recall {found['recall']:6.1%}  "
            f"F1 {found['f1']:6.1%}  {found['rows']:,} rows"
        )


def show_errors(evaluation: dict[str, Any]) -> None:
    """The worst errors, a line or two each."""
    errors = evaluation["worst_errors"][:_MOST_ERRORS]
    if errors:
        typer.echo("\nworst errors")
    for error in errors:
        typer.echo(f"  {error['place']}: {error['label']} taken for {error['predicted']} ({error['score']:.0%})")
        typer.echo(f"      {_shortened(error['text'])}")
        if "pair" in error:
            typer.echo(f"      {_shortened(error['pair'])}")


def _classify_rows(
    predictor: "ClassifyPredictor", source: str, output: Path | None, columns: dict[str, Any], *, as_json: bool
) -> None:
    from bertsmith.examples.task_tables import TableConfig
    from bertsmith.recipes.finetuning.classify_rows import classify_file, classify_stream, write_results

    if source == "-":
        results = classify_stream(predictor, sys.stdin.buffer)
    else:
        found, results = classify_file(predictor, Path(source), TableConfig.parse(columns, where="the options"))
        note(f"columns: {found}")
    if output is not None:
        results = write_results(results, output)
    _show_rows(results, quiet=output is not None, as_json=as_json)
    if output is not None:
        note(f"written: {output}")


def _show_rows(results: "Iterator[RowResult]", *, quiet: bool, as_json: bool) -> None:
    num_rows = num_faults = num_cut = 0
    for row in results:
        num_rows += 1
        if row.fault is not None:
            num_faults += 1
            if num_faults <= _MOST_FAULTS:
                note(f"row {row.number}: {row.fault}")
        num_cut += row.prediction is not None and row.prediction.cut
        if quiet:
            continue
        if as_json:
            result(row.values, as_json=True)
        elif row.prediction is not None:
            _show_prediction(row.prediction)
        else:
            typer.echo(f"–\t\trow {row.number} could not be used")
    if num_faults:
        note(f"{num_faults:,} of {num_rows:,} rows could not be used")
    if num_cut:
        note(f"{num_cut:,} of {num_rows:,} rows are longer than the model sees and were cut")


def _show_prediction(prediction: "ClassPrediction") -> None:
    pair = "" if prediction.pair is None else f"\t{_shortened(prediction.pair)}"
    typer.echo(f"{prediction.label}\t{prediction.score:.2%}\t{_shortened(prediction.text)}{pair}")


def _example(evaluation: dict[str, Any]) -> str:
    errors = evaluation["worst_errors"]
    text = errors[0]["text"] if errors else "Some text of yours."
    return "Some text of yours." if '"' in text or "`" in text or "$" in text or len(text) > _LONGEST_TEXT else text


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST_TEXT else f"{flat[:_LONGEST_TEXT]}…"
