"""Exporting a model: a folder with a graph that onnxruntime runs, compared with the model before it is given."""

import importlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertsmith.folders.exported import GRAPH, OWN_EXPORT, read_exported, write_beside_graph
from bertsmith.foundation.errors import InputError, unknown_name
from bertsmith.foundation.files import disk_room, new_folder, remove_leftovers
from bertsmith.inference.engine import job_of
from bertsmith.inference.onnx_engine import without_package
from bertsmith.recipes.predict import model_folder_of

FORMATS, QUANTIZED = ("onnx",), ("int8",)


@dataclass(frozen=True)
class ExportedModel:
    """A model that was exported.

    Attributes:
        folder: where it stands.
        job: what it is for: a task, ``fill`` or ``embed``.
        precision: ``fp32`` or ``int8``.
        size_bytes: of the graph with its weights.
        largest_difference: of any number that the graph in fp32 gives and the model gives.
        agreement: of an int8 model with its model, as `Agreement` has it; None in fp32.
        notes: what a person should know of it.
    """

    folder: Path
    job: str
    precision: str
    size_bytes: int
    largest_difference: float
    agreement: dict[str, Any] | None
    notes: tuple[str, ...]


def export_run(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    format: str = "onnx",
    quantize: str | None = None,
    calibrate: str | Path | None = None,
    agreement: float | None = None,
    notify: Callable[[str], object] = lambda message: None,
) -> ExportedModel:
    """Export a model for the job that it was trained for. Every predictor then takes the folder that comes of it, and
    one that lies in the model's own folder is run in its model's place where that is faster.

    Args:
        folder: a model folder, or a finished run.
        out: the exported folder, new or empty; ``onnx`` in the model's own folder where not given.
        format: ``onnx``.
        quantize: ``int8`` for linear layers that multiply in 8 bits: faster on a CPU that has instructions for it, and
            not quite the same numbers. None for fp32.
        calibrate: text like that which the model is used on, by which an int8 model finds its scales and is judged:
            rows as the command of the job reads them, or plain text. The documentation of CPython where not given.
        agreement: what an int8 model must reach on that text: the mean cosine of embeddings or the correlation of
            values, 0.98 where not given; the share of equal labels, answers, choices or likeliest pieces, 0.97.
        notify: is told how an int8 model was judged.

    Raises:
        InputError: if something given cannot be used, the package for it is not installed, or what was made differs too
            much from the model. `out` is then as it was.
    """
    _check(format, quantize, calibrate, agreement)
    where = model_folder_of(folder) / OWN_EXPORT if out is None else Path(out)
    if where.exists() and (not where.is_dir() or any(where.iterdir())):
        do = f"Remove {where}, or name another folder with --out." if out is None else "Choose another folder."
        raise InputError("--out must be a new or empty folder", where, do)
    refuse_without_packages()
    # What they hold cannot be loaded without the packages.
    from bertsmith.recipes.exporting.fp32 import write_fp32
    from bertsmith.recipes.exporting.int8 import write_int8
    from bertsmith.recipes.exporting.source import open_export_source
    from bertsmith.recipes.exporting.texts import calibration_items

    source = open_export_source(folder)
    named = None if calibrate is None else Path(calibrate)
    texts = calibration_items(source.job, named, pairs=source.config.heads.pairs) if quantize else None
    remove_leftovers(where.parent, where.name)
    with _scratch(where) as scratch, new_folder(where, seal={"kind": "export"}) as temporary:
        report = write_fp32(source, (temporary if texts is None else scratch) / GRAPH)
        if texts is not None:
            graph = temporary / GRAPH
            report |= write_int8(source, graph, texts, least=agreement, scratch=scratch, notify=notify)
        write_beside_graph(temporary, source.config, source.tokenizer, report)
    return _exported(where)


def refuse_without_packages() -> None:
    """Raise an `InputError` where a package that exporting needs is not installed."""
    for name in ("onnx", "onnxruntime"):
        try:
            importlib.import_module(name)
        except ImportError:
            raise without_package(name) from None


def _check(format: str, quantize: str | None, calibrate: str | Path | None, agreement: float | None) -> None:
    if format not in FORMATS:
        raise unknown_name("--format", format, FORMATS)
    if quantize is not None and quantize not in QUANTIZED:
        raise unknown_name("--quantize", quantize, QUANTIZED)
    for name, given in (("--calibrate", calibrate), ("--agreement", agreement)):
        if quantize is None and given is not None:
            raise InputError(
                f"{name} belongs to --quantize int8", f"{name} {given} without it", "Add it, or leave this out."
            )
    if agreement is not None and not 0.0 <= agreement <= 1.0:
        raise InputError("--agreement must lie in [0, 1]", agreement, "Use 0.98, for example.")


@contextmanager
def _scratch(out: Path) -> Iterator[Path]:
    """A folder that is gone afterwards, beside what is written: there is room there, or nowhere."""
    with disk_room(out.parent):
        out.parent.mkdir(parents=True, exist_ok=True)
        # Its name is that of a leftover, so that whatever a kill leaves goes with the next command.
        with tempfile.TemporaryDirectory(prefix=".partial-", suffix=f"-{out.name}", dir=out.parent) as scratch:
            yield Path(scratch)


def _exported(folder: Path) -> ExportedModel:
    """What an export has written, as it is read again."""
    found = read_exported(folder)
    int8 = found.report.get("int8")
    notes: tuple[str, ...] = ()
    if int8 is not None and int8["tried"]:
        before = int8["tried"][0]["agreement"]
        notes = (
            f"the second product of each feed-forward stays in fp32: with it in int8, {before['measure']} was "
            f"{before['value']:.4f}",
        )
    return ExportedModel(
        folder,
        job_of(found.config),
        found.precision,
        sum(file.stat().st_size for file in folder.glob(f"{GRAPH}*")),
        found.largest_difference,
        found.agreement,
        notes,
    )
