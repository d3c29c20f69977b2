"""Choosing what runs a model folder: torch over its weights, or onnxruntime over the graph exported into it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bertsmith.engine.device import PRECISIONS
from bertsmith.folders.exported import OWN_EXPORT, Exported, is_exported, read_exported
from bertsmith.folders.tensors import weight_sums
from bertsmith.foundation.errors import InputError, unknown_name
from bertsmith.inference.engine import Engine, Job, job_of
from bertsmith.inference.engine_probe import Speeds, probe_speeds
from bertsmith.inference.onnx_engine import OnnxEngine, open_session
from bertsmith.model.config import ModelConfig

ENGINES = ("auto", "torch", "onnx")
INT8 = "int8"
"""A precision of predictions alone."""


@dataclass(frozen=True)
class Wanted:
    """How a model is to be run.

    Attributes:
        job: what is asked of it; None for what the model is for.
        device: ``auto``, or a torch device.
        precision: ``auto``, ``fp32``, ``bf16`` or ``int8``.
        engine: ``auto``, ``torch`` or ``onnx``.
        probes: whether ``auto`` may take about a second to find the faster engine; where not, it is torch.
        notify: is told in a line which engine runs and why, where there were two to choose from.

    Raises:
        InputError: for an unknown precision or engine.
    """

    job: Job | None = None
    device: str = "auto"
    precision: str = "auto"
    engine: str = "auto"
    probes: bool = True
    notify: Callable[[str], object] = lambda message: None

    def __post_init__(self) -> None:
        if self.precision not in (*PRECISIONS, INT8):
            raise unknown_name("--precision", self.precision, (*PRECISIONS, INT8))
        if self.engine not in ENGINES:
            raise unknown_name("--engine", self.engine, ENGINES)


def faster_engine(usual: Engine, folder: Path, wanted: Wanted) -> Engine:
    """Torch, or the graph in a model's folder where a probe finds it clearly faster.

    A graph counts if it would say the same: exported from the weights and settings that the folder has now, for what is
    wanted and in its precision. Without one nothing is probed.

    Args:
        usual: runs the folder's own weights on the CPU.
        folder: the model folder.
        wanted: how it is to be run. Another engine than ``auto`` leaves nothing to choose.

    Raises:
        InputError: if the model cannot do what is wanted.
    """
    if wanted.engine != "auto" or not wanted.probes or not is_exported(folder / OWN_EXPORT):
        return usual
    job = wanted.job or job_of(usual.config)
    usual.refuse_other(job)
    try:
        export = fitting_export(folder, usual.config, wanted)
        graph = graph_engine(export)
    except InputError as error:
        wanted.notify(f"engine: torch. The graph in the model's folder is not used: {error.received}. {error.do}")
        return usual
    speeds = probe_speeds(usual, graph, job)
    wanted.notify(_told(speeds, export))
    return graph if speeds.other_is_clearly_faster else usual


def fitting_export(folder: Path, config: ModelConfig, wanted: Wanted) -> Exported:
    """The export in a model folder, if it does what is wanted as the folder's own weights would.

    Args:
        folder: the model folder.
        config: of its model.
        wanted: how it is to be run.

    Raises:
        InputError: if there is none, or it is damaged, of other weights or settings, for something else or in another
            precision.
    """
    where = folder / OWN_EXPORT
    if not is_exported(where):
        raise InputError(
            "--engine onnx needs a graph that was exported into the model's folder",
            f"{where}, which holds something else" if where.exists() else f"{folder} without {OWN_EXPORT}",
            f"Make it: {_command(folder, wanted.precision)}",
        )
    found = read_exported(where)
    if wanted.precision not in (("auto", "fp32") if found.precision == "fp32" else (INT8,)):
        raise InputError(
            "--engine onnx needs a graph in the precision that is wanted",
            f"{where} in {found.precision}, for --precision {wanted.precision}",
            f"Use --precision {found.precision}, or --engine torch.",
        )
    exported_for, job = job_of(found.config), wanted.job or job_of(config)
    if job != exported_for:
        raise InputError(
            "--engine onnx needs a graph that was exported for what is wanted",
            f"{where}, which was exported to {exported_for}, to {job}",
            "Use --engine torch.",
        )
    if not found.is_of(config, weight_sums(folder)):
        raise InputError(
            "--engine onnx needs a graph of the model as it is now",
            f"{where}, which was exported from other weights or settings",
            f"Remove it, and make it anew: {_command(folder, found.precision)}",
        )
    return found


def graph_engine(export: Exported) -> OnnxEngine:
    """What runs an exported graph.

    Raises:
        InputError: if onnxruntime is not installed, or cannot open it.
    """
    return OnnxEngine(open_session(export.graph), export.config, export.precision)


def agreement_at_export(export: Exported) -> str:
    """How an int8 model was judged when it was exported, to be said; empty in fp32."""
    if (found := export.agreement) is None:
        return ""
    return f"int8: {found['measure']} {found['value']:.4f} beside fp32, over {found['compared']:,}, at its export"


def _command(folder: Path, precision: str) -> str:
    return f"bertsmith export {folder}{' --quantize int8' if precision == INT8 else ''}."


def _told(speeds: Speeds, export: Exported) -> str:
    torch, onnx = (f"{1_000 * seconds:.1f} ms" for seconds in (speeds.usual_seconds, speeds.other_seconds))
    found = f"{speeds.tokens:,} tokens took torch {torch} and onnx {onnx}"
    if not speeds.other_is_clearly_faster:
        return f"engine: torch. {found}{', not a tenth less' if speeds.other_seconds < speeds.usual_seconds else ''}"
    return "; ".join(filter(None, (f"engine: onnx. {found}", agreement_at_export(export))))
