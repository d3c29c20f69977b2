"""The command that fine-tunes: rows with what is to be found become a model that finds it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.clock import started_at
from bertsmith.cli.evaluation_display import show_details
from bertsmith.cli.options import (
    Assignments,
    EpochsOfRows,
    Json,
    MaxLength,
    Minutes,
    Restart,
    RunFolder,
    Seed,
    Settings,
    Steps,
    Threads,
    TrainingDevice,
    TrainingPrecision,
)
from bertsmith.cli.output import TrainingDisplay, note, result
from bertsmith.cli.shell import typed

if TYPE_CHECKING:
    from bertsmith.recipes.results import Run

_LONGEST_EXAMPLE = 100
_TRIES = {
    "answer": '--question "{text}" --context "A text that may hold the answer."',
    "choose": '"{text}" --choice "One." --choice "Another."',
}
"""What the command of a task takes, where it is more than a text."""
_OF_PAIRS_TOO = ("classify", "multilabel", "regress")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("finetune")(finetune)


def finetune(
    task: Annotated[str, typer.Argument(help="classify, regress, multilabel, tag, answer, choose or embed.")],
    train: Annotated[
        Path | None,
        typer.Argument(
            help="Rows to learn from: .csv, .tsv, .jsonl or .parquet, with .gz or .zst too, or a saved data set's "
            "split; for tag also .conll and .conllu, for answer SQuAD's JSON."
        ),
    ] = None,
    out: RunFolder = ...,  # pyright: ignore[reportArgumentType]
    model: Annotated[str | None, typer.Option(help="Folder of the encoder, or of the run that made it.")] = None,
    validation: Annotated[
        Path | None, typer.Option(help="Rows to validate on; a share of the training rows if not given.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="Column of the text; guessed if not given.")] = None,
    pair: Annotated[str | None, typer.Option(help="Column of the second text; guessed if not given.")] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="Column of what is to be found; guessed if not given. For multilabel also several columns of 0 and 1 "
            "as a,b,c; a name with a comma in quotes: 'a,\"b, c\"'."
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse rows that contradict each other, overlap or are broken.")
    ] = False,
    encoding: Annotated[str | None, typer.Option(help="Encoding of the files, if not UTF-8.")] = None,
    epochs: EpochsOfRows = None,
    steps: Steps = None,
    minutes: Minutes = None,
    config: Settings = None,
    assignments: Assignments = None,
    device: TrainingDevice = None,
    precision: TrainingPrecision = None,
    threads: Threads = None,
    max_length: MaxLength = None,
    batch_size: Annotated[int | None, typer.Option(help="Texts of a step.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="By the model's width if not given.")] = None,
    seed: Seed = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Train so often, by seeds that follow each other, and keep the best. They share the minutes."
        ),
    ] = None,
    restart: Restart = False,
    as_json: Json = False,
) -> None:
    """Train an encoder to do a job, from rows that show it done.

    classify: one of several labels. multilabel: any number of them. regress: a number. tag: a label for each word.
    answer: a question out of a text. choose: one of several choices. embed: vectors that are near for what belongs
    together.

    Example: bertsmith finetune classify train.csv --model my-bert/model --out my-classifier
    """
    from bertsmith.cli.run_configs import finetuning_config
    from bertsmith.recipes.finetuning.run import finetune_run

    parsed = finetuning_config(
        "finetune",
        "bertsmith finetune classify train.csv --model DIR --out OUT",
        config,
        assignments,
        task=task,
        train=train,
        model=model,
        validation=validation,
        text=text,
        pair=pair,
        label=label,
        strict=strict or None,
        encoding=encoding,
        epochs=epochs,
        steps=steps,
        minutes=minutes,
        device=device,
        precision=precision,
        threads=threads,
        max_length=max_length,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        seeds=seeds,
    )
    run = finetune_run(
        parsed, out, restart=restart, observers=[TrainingDisplay()], notify=note, started_at=started_at()
    )
    if run.already_finished:
        note(f"{out} is finished. --restart begins anew.")
    _show_run(run, parsed.task, as_json=as_json)


def _show_run(run: "Run", task: str, *, as_json: bool) -> None:
    figures = {"folder": str(run.folder), "model": str(run.model_folder), "steps": run.steps, "tokens": run.tokens}
    scores: dict[str, Any] = dict(run.metrics)
    if run.spread and as_json:
        scores["spread"] = run.spread
    elif run.spread:
        scores = {name: f"{value:.4f} ± {run.spread[name]:.4f}" for name, value in run.metrics.items()}
    result(figures | {"rows": run.evaluation["rows"]} | scores, as_json=as_json)
    if not as_json:
        show_details(run.evaluation)
        note(f"\nreport: {run.folder / 'report.html'}")
        note(f"try it: bertsmith {task} {typed(run.model_folder)} {_tried(task, run.evaluation)}")


def _tried(task: str, evaluation: dict[str, Any]) -> str:
    error = next(iter(evaluation.get("worst_errors", [])), {})
    pair = f' --pair "{_example(error["pair"])}"' if task in _OF_PAIRS_TOO and "pair" in error else ""
    return _TRIES.get(task, '"{text}"').format(text=_example(error.get("text", ""))) + pair


def _example(text: str) -> str:
    # What a shell reads otherwise than it stands, or the command as an option, is no example.
    readable = not text.startswith("-") and not any(sign in text for sign in '"`$\\!\n')
    return text if text and readable and len(text) <= _LONGEST_EXAMPLE else "Some text of yours."
