"""The command that shows where the heads of a model look."""

from pathlib import Path
from typing import Annotated

import typer

from bertsmith.cli.options import Device, Folder
from bertsmith.cli.output import note, result
from bertsmith.foundation.errors import InputError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("attention")(attention)


def attention(
    folder: Folder,
    text: Annotated[str, typer.Argument(help="A text; [MASK] is the mask.")],
    pair: Annotated[str | None, typer.Argument(help="The second text, for a look at a pair.")] = None,
    out: Annotated[Path | None, typer.Option(help="The picture: .png or .svg.")] = None,
    layer: Annotated[int | None, typer.Option(help="This layer alone, counted from 0.")] = None,
    head: Annotated[int | None, typer.Option(help="This head of --layer alone, counted from 0.")] = None,
    device: Device = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print tokens and weights as JSON.")] = False,
) -> None:
    """Draw where the heads of a model look: all of them, those of a layer, or one with its tokens.

    Example: bertsmith attention my-bert/model "The cat sat on the mat" --out cat.png --layer 0 --head 1
    """
    from bertsmith.recipes.attention import look_at_attention

    if out is None and not as_json:
        raise InputError(
            "attention needs --out, a picture to write, or --json",
            "neither",
            "For example: bertsmith attention DIR TEXT --out attention.png",
        )
    found = look_at_attention(folder, text, pair, out=out, layer=layer, head=head, device=device, notify=note)
    if out is not None:
        note(f"written: {out}")
    if as_json:
        result(found.values(layer, head), as_json=True)
