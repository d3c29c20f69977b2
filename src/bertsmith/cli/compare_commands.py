"""The command that compares three kinds of model."""

from pathlib import Path
from typing import Annotated

import typer

from bertsmith.cli.options import (
    Assignments,
    BatchTokens,
    Epochs,
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
    TrainingText,
)
from bertsmith.cli.output import TrainingDisplay, note, result
from bertsmith.foundation.errors import InputError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)


def compare(
    sources: TrainingText = None,
    out: RunFolder = ...,  # pyright: ignore[reportArgumentType]
    steps: Steps = None,
    epochs: Epochs = None,
    minutes: Minutes = None,
    model: Annotated[str | None, typer.Option(help="A BERT preset or config.json: the size of all three.")] = None,
    bert_objective: Annotated[str | None, typer.Option(help="mlm or mlm+nsp.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="A table of labelled texts; if not given, the task is made from the corpus.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="Column of the text in --labels.")] = None,
    label: Annotated[str | None, typer.Option(help="Column of the label in --labels.")] = None,
    template: Annotated[
        str | None, typer.Option(help='How the GPT is prompted, such as "{text} Topic: {label}".')
    ] = None,
    prompt: Annotated[str | None, typer.Option(help="What the GPT writes on from.")] = None,
    tokenizer: Annotated[Path | None, typer.Option(help="A tokenizer's folder; trained if not given.")] = None,
    vocab_size: Annotated[int | None, typer.Option(help="Pieces of a tokenizer that is trained.")] = None,
    max_length: MaxLength = None,
    batch_tokens: BatchTokens = None,
    learning_rate: Annotated[float | None, typer.Option(help="Of all three trainings.")] = None,
    config: Settings = None,
    device: TrainingDevice = None,
    precision: TrainingPrecision = None,
    threads: Threads = None,
    seed: Seed = None,
    assignments: Assignments = None,
    restart: Restart = False,
    as_json: Json = False,
) -> None:
    """BERT, GPT and ELMo on the same text and budget: direction, perplexity, a task, what the GPT writes.

    Example: bertsmith compare news/ --out compared --minutes 20 --labels topics.csv
    """
    from bertsmith.recipes.comparison.options import CompareConfig
    from bertsmith.recipes.comparison.run import compare_run
    from bertsmith.recipes.settings import given_settings, told_where

    options = {
        "sources": sources or None,
        "length.steps": steps,
        "length.epochs": epochs,
        "length.minutes": minutes,
        "model": model,
        "bert_objective": bert_objective,
        "task.labels": None if labels is None else str(labels),
        "task.table.text": text,
        "task.table.label": label,
        "task.template": template,
        "prompt": prompt,
        "tokenizer_folder": None if tokenizer is None else str(tokenizer),
        "tokenizer.vocab_size": vocab_size,
        "max_length": max_length,
        "batch_tokens": batch_tokens,
        "learning_rate": learning_rate,
        "runtime.device": device,
        "runtime.precision": precision,
        "runtime.threads": threads,
        "seed": seed,
    }
    values = given_settings(config, options, assignments or [])
    if not values.get("sources"):
        raise InputError("compare needs text", "no source", "Name files, folders or a prepared corpus.")
    parsed = CompareConfig.parse(values, where=told_where(config, "the options"))
    found = compare_run(parsed, out, restart=restart, observers=[TrainingDisplay()], notify=note)
    if found.already_finished:
        note(f"{out} is finished. --restart begins anew.")
    if as_json:
        result(found.values, as_json=True)
    else:
        typer.echo(found.page.read_text(encoding="utf-8"))
