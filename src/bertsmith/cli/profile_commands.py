"""Commands that tell where the time of a training step goes."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.options import (
    Assignments,
    BatchTokens,
    Json,
    MaxLength,
    Seed,
    Settings,
    Threads,
    TrainingDevice,
    TrainingPrecision,
    TrainingText,
)
from bertsmith.cli.output import CountDisplay, note, result

if TYPE_CHECKING:
    from bertsmith.recipes.profiling.profile import Profile

MeasuredSteps = Annotated[
    int, typer.Option(min=1, help="Steps to measure; as many more are taken, to see what measuring costs.")
]
Out = Annotated[Path | None, typer.Option(help="Write profile.json and report.html there.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    profile = typer.Typer(no_args_is_help=True)
    profile.command("pretrain")(profile_pretrain)
    profile.command("finetune")(profile_finetune)
    app.add_typer(profile, name="profile", help="Where the time of a training step goes.")


def profile_pretrain(
    sources: TrainingText = None,
    model: Annotated[
        str | None, typer.Option(help="A preset or config.json for fresh weights, a model folder to go on from.")
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="A tokenizer's folder; trained on the text if not given.")
    ] = None,
    objective: Annotated[str | None, typer.Option(help="mlm, mlm+nsp, mlm+sop, causal or bilm.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Time that the run would have; without --model, of what is chosen for it.")
    ] = None,
    max_length: MaxLength = None,
    batch_tokens: BatchTokens = None,
    config: Settings = None,
    assignments: Assignments = None,
    device: TrainingDevice = None,
    precision: TrainingPrecision = None,
    threads: Threads = None,
    seed: Seed = None,
    steps: MeasuredSteps = 20,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Where the time of a pre-training step goes, by part, and what matrix products alone would take.

    Example: bertsmith profile pretrain my-corpus --model bert-base --batch-tokens 4096
    """
    from bertsmith.cli.run_configs import pretraining_config
    from bertsmith.recipes.profiling.run import profile_pretraining

    parsed = pretraining_config(
        "profile pretrain",
        config,
        assignments,
        sources=sources,
        tokenizer=tokenizer,
        model=model,
        objective=objective,
        minutes=minutes,
        max_length=max_length,
        batch_tokens=batch_tokens,
        device=device,
        precision=precision,
        threads=threads,
        seed=seed,
    )
    with _StepsShown() as shown:
        found = profile_pretraining(parsed, steps=steps, out=out, notify=note, on_step=shown)
    _show(found, out, as_json=as_json)


def profile_finetune(
    task: Annotated[str, typer.Argument(help="classify, regress, multilabel, tag, answer, choose or embed.")],
    train: Annotated[Path | None, typer.Argument(help="Rows to learn from, as finetune takes them.")] = None,
    model: Annotated[str | None, typer.Option(help="Folder of the encoder, or of the run that made it.")] = None,
    validation: Annotated[
        Path | None, typer.Option(help="Rows to validate on, where training rows are not to be held out for it.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="Column of the text; guessed if not given.")] = None,
    pair: Annotated[str | None, typer.Option(help="Column of the second text; guessed if not given.")] = None,
    label: Annotated[str | None, typer.Option(help="Column of what is to be found; guessed if not given.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of the files, if not UTF-8.")] = None,
    max_length: MaxLength = None,
    batch_size: Annotated[int | None, typer.Option(help="Texts of a step.")] = None,
    config: Settings = None,
    assignments: Assignments = None,
    device: TrainingDevice = None,
    precision: TrainingPrecision = None,
    threads: Threads = None,
    seed: Seed = None,
    steps: MeasuredSteps = 20,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Where the time of a fine-tuning step goes, by part, and what matrix products alone would take.

    Example: bertsmith profile finetune classify train.csv --model my-bert/model
    """
    from bertsmith.cli.run_configs import finetuning_config
    from bertsmith.recipes.profiling.run import profile_finetuning

    parsed = finetuning_config(
        "profile finetune",
        "bertsmith profile finetune classify train.csv --model DIR",
        config,
        assignments,
        task=task,
        train=train,
        model=model,
        validation=validation,
        text=text,
        pair=pair,
        label=label,
        encoding=encoding,
        max_length=max_length,
        batch_size=batch_size,
        device=device,
        precision=precision,
        threads=threads,
        seed=seed,
    )
    with _StepsShown() as shown:
        found = profile_finetuning(parsed, steps=steps, out=out, notify=note, on_step=shown)
    _show(found, out, as_json=as_json)


class _StepsShown:
    """Shows how many steps are done, from the first one on."""

    def __init__(self) -> None:
        self._display: CountDisplay | None = None

    def __call__(self, done: int, total: int) -> None:
        if self._display is None:
            # What came before the first step is not counted into their speed.
            self._display = CountDisplay(total, counted="steps", is_exact=True)
        else:
            self._display(done)

    def __enter__(self) -> "_StepsShown":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._display is not None:
            self._display.close()


def _show(found: "Profile", out: Path | None, *, as_json: bool) -> None:
    values: dict[str, Any] = asdict(found)
    if as_json:
        result(values, as_json=True)
    else:
        from bertsmith.cli.tables import part_table
        from bertsmith.reports.profile_words import profile_facts, profile_lead

        typer.echo(profile_lead(values) + "\n")
        part_table(values["parts"])
        typer.echo("")
        result(profile_facts(values), as_json=False)
    if out is not None:
        note(f"written: {out / 'profile.json'}, {out / 'report.html'}")
