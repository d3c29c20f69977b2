"""Commands that train: the demonstration and pre-training."""

from pathlib import Path
from typing import Annotated

import typer

from bertsmith.cli.clock import started_at
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
from bertsmith.cli.shell import typed


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("demo")(demo)
    app.command("pretrain")(pretrain)


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the run.")] = Path("demo"),
    minutes: Annotated[float, typer.Option(help="Time for all of it.")] = 2.5,
    as_json: Json = False,
) -> None:
    """The main job on an embedded text: Python's own documentation becomes a BERT that fills masks.

    Example: bertsmith demo --out demo
    """
    from bertsmith.cli.demo_summary import show_demonstration
    from bertsmith.recipes.demonstration.run import demo_run

    shown = demo_run(out, minutes=minutes, observers=[TrainingDisplay()], notify=note, started_at=started_at())
    show_demonstration(shown, as_json=as_json)


def pretrain(
    sources: TrainingText = None,
    out: RunFolder = ...,  # pyright: ignore[reportArgumentType]
    tokenizer: Annotated[
        Path | None, typer.Option(help="A tokenizer's folder; trained on the text if not given.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A preset or config.json for fresh weights, a model folder to go on from.")
    ] = None,
    objective: Annotated[str | None, typer.Option(help="mlm, mlm+nsp, mlm+sop, causal or bilm.")] = None,
    extend_vocabulary: Annotated[
        int | None,
        typer.Option("--extend-vocabulary", min=0, help="Words of the text to add to the model's vocabulary."),
    ] = None,
    epochs: Epochs = None,
    steps: Steps = None,
    minutes: Minutes = None,
    config: Settings = None,
    assignments: Assignments = None,
    device: TrainingDevice = None,
    precision: TrainingPrecision = None,
    threads: Threads = None,
    max_length: MaxLength = None,
    batch_tokens: BatchTokens = None,
    seed: Seed = None,
    restart: Restart = False,
    as_json: Json = False,
) -> None:
    """Pre-train a BERT from raw text: tokenizer, corpus, model and report in one command.

    Example: bertsmith pretrain news/ --out my-bert --minutes 30
    """
    from bertsmith.cli.run_configs import pretraining_config
    from bertsmith.recipes.pretraining.run import pretrain_run

    parsed = pretraining_config(
        "pretrain",
        config,
        assignments,
        sources=sources,
        tokenizer=tokenizer,
        model=model,
        objective=objective,
        extend_vocabulary=extend_vocabulary,
        epochs=epochs,
        steps=steps,
        minutes=minutes,
        device=device,
        precision=precision,
        threads=threads,
        max_length=max_length,
        batch_tokens=batch_tokens,
        seed=seed,
    )
    run = pretrain_run(
        parsed, out, restart=restart, observers=[TrainingDisplay()], notify=note, started_at=started_at()
    )
    if run.already_finished:
        note(f"{out} is finished. --restart begins anew.")
    result(
        {
            "folder": str(run.folder),
            "model": str(run.model_folder),
            "steps": run.steps,
            "tokens": run.tokens,
            **run.metrics,
            "context_free_loss": run.context_free_loss,
        },
        as_json=as_json,
    )
    if not as_json and parsed.objective.startswith("mlm"):
        note(f'try it: bertsmith fill {typed(run.model_folder)} "Some text with a [MASK] in it."')
    elif not as_json and parsed.objective == "causal":
        note(f'try it in Python: bertsmith.generate({str(run.model_folder)!r}, "How a text begins")')
