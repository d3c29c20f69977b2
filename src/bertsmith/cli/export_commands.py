"""The command that exports a model."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from bertsmith.cli.options import Folder, Json
from bertsmith.cli.output import note, result


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export")(export)


def export(
    folder: Folder,
    out: Annotated[
        Path | None,
        typer.Option(help="The exported folder, new or empty; onnx in the model's own folder if not given."),
    ] = None,
    file_format: Annotated[str, typer.Option("--format", help="What is written: onnx.")] = "onnx",
    quantize: Annotated[str | None, typer.Option(help="int8 for products in 8 bits; fp32 if not given.")] = None,
    calibrate: Annotated[
        Path | None,
        typer.Option(help="int8: text or rows like those it is used on; CPython's documentation if not given."),
    ] = None,
    agreement: Annotated[
        float | None,
        typer.Option(help="int8: the least agreement with the model; 0.98 of cosines, 0.97 of labels if not given."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Export a model for onnxruntime: into its own folder, where predictions take whichever engine is faster, or into
    one by itself, which all commands that predict take as they take a model's.

    Example: bertsmith export my-classifier --format onnx --out my-classifier-onnx

    What is written was compared with the model before, and export.json says how near it is.
    """
    from bertsmith.recipes.exporting.run import export_run

    done = export_run(
        folder, out, format=file_format, quantize=quantize, calibrate=calibrate, agreement=agreement, notify=note
    )
    for line in done.notes:
        note(f"note: {line}")
    values = asdict(done)
    if as_json:
        result(values, as_json=True)
        return
    shown = {name: values[name] for name in ("folder", "job", "precision", "size_bytes", "largest_difference")}
    if done.agreement is not None:
        shown |= {done.agreement["measure"]: round(done.agreement["value"], 4)}
    result(shown, as_json=False)
