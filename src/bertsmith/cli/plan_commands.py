"""Commands that tell beforehand."""

from dataclasses import asdict
from typing import Annotated

import typer

from bertsmith.cli.options import Json
from bertsmith.cli.output import note, result


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("plan")(plan)


def plan(
    model: Annotated[str, typer.Option(help="A preset, a config.json or a model folder.")] = "bert-toy",
    vocab_size: Annotated[
        int | None, typer.Option("--vocab-size", min=1, help="Entries of the vocabulary; the published ones otherwise.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What a model will be or is: its parameters by part, beside the published figure.

    Example: bertsmith plan --model albert-xxlarge
    """
    from bertsmith.recipes.plan import plan as made_plan

    made = made_plan(model, vocab_size=vocab_size)
    result(asdict(made), as_json=as_json)
    if made.published is not None and not as_json:
        note("published figures are rounded by their authors; ours count every weight once")
