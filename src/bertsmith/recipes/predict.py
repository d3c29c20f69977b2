"""Opening a model folder to use it."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bertsmith.engine.device import Device, choose_device
from bertsmith.exchange.source import import_command
from bertsmith.folders.exported import is_exported, read_exported
from bertsmith.folders.model_folder import CONFIG, read_model, read_tokenizer
from bertsmith.folders.sentence_transformers import refuse_foreign_modules
from bertsmith.foundation.errors import InputError, near_match
from bertsmith.inference.answer import AnswerPredictor
from bertsmith.inference.engine import Engine, job_of
from bertsmith.inference.fill import FillPredictor
from bertsmith.inference.predictor import Predictor
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.kernels.encoding import encodes
from bertsmith.model.config import TaskName
from bertsmith.model.encoder import Encoder
from bertsmith.model.frozen import frozen
from bertsmith.model.heads import Model
from bertsmith.recipes.engine_choice import (
    INT8,
    Wanted,
    agreement_at_export,
    faster_engine,
    fitting_export,
    graph_engine,
)
from bertsmith.recipes.finetuning.tasks import TASKS
from bertsmith.recipes.judging import AnyPredictor, judge
from bertsmith.reports.comparison import KINDS
from bertsmith.tokenization.tokenizer import Tokenizer

_MOST_SHOWN = 5
PredictorT = TypeVar("PredictorT", bound=AnyPredictor)


def model_folder_of(folder: str | Path) -> Path:
    """The model folder that a path means: itself, or the finished model of a run.

    Raises:
        InputError: if there is no such folder, or it is a run that has no model yet, or a comparison, which has three;
            or for what is no path.
    """
    if not isinstance(folder, str | os.PathLike):
        raise InputError(
            "A model folder must be told by its path", type(folder).__name__, 'For example "my-bert/model".'
        )
    path = Path(folder)
    if not path.exists():
        raise _no_such_folder(os.fspath(folder))
    if (path / "run.toml").is_file():
        if not (path / "model").is_dir():
            compared = [path / kind for kind in KINDS if (path / kind / "run.toml").is_file()]
            if compared:
                raise InputError(
                    "A comparison holds three models, each in a folder of its own",
                    f"{path}, which is a comparison",
                    f"Name one of them: {', '.join(map(str, compared))}.",
                )
            raise InputError(
                "A run's model stands in its folder once the run is finished",
                f"{path}, which is not finished",
                "Give its command again to go on, or name one of its checkpoints.",
            )
        return path / "model"
    return path


def _no_such_folder(given: str) -> InputError:
    path = Path(given)
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    known = sorted(one.name for one in beside if any((one / name).is_file() for name in ("run.toml", CONFIG)))
    near = near_match(path.name, known)
    shown = ", ".join(known[:_MOST_SHOWN])
    do = f"Beside it there is: {shown}." if known else "Check the path."
    if fetch := import_command(given):
        do = f"{do} If it is on the Hub, {fetch} fetches it."
    return InputError("A model folder must exist", path, f"Did you mean {path.parent / near}?" if near else do)


def open_model(folder: str | Path, *, device: str = "auto", precision: str = "auto") -> tuple[Model, Tokenizer, Device]:
    """A model ready to run, its tokenizer, and where it runs.

    Raises:
        InputError: if the folder holds no model, or the device is not there.
    """
    path = model_folder_of(folder)
    chosen = choose_device(device, precision)
    model = read_model(path).model.to(chosen.name).eval()
    return model, read_tokenizer(path, vocab_size=model.config.encoder.vocab_size), chosen


def open_engine(
    folder: str | Path,
    *,
    device: str = "auto",
    precision: str = "auto",
    engine: str = "auto",
    notify: Callable[[str], object] = lambda message: None,
) -> tuple[Engine, Tokenizer]:
    """What runs a model folder or an exported one, and the tokenizer.

    Args:
        folder: a model folder, a run folder or an exported folder.
        device: where it runs.
        precision: ``auto``, ``fp32`` or ``bf16``; ``int8`` of an exported graph.
        engine: as `load` takes it.
        notify: is told which engine runs, where there were two to choose from.

    Raises:
        InputError: if the folder holds no model, the device is not there, it has no graph for ``onnx``, or it is an
            exported folder and onnxruntime is not installed or something else than the CPU and its own precision was
            asked for.
    """
    wanted = Wanted(device=device, precision=precision, engine=engine, notify=notify)
    return _open(model_folder_of(folder), wanted)


def _open(path: Path, wanted: Wanted) -> tuple[Engine, Tokenizer]:
    if is_exported(path):
        return _open_exported(path, wanted)
    if wanted.engine == "onnx":
        return _open_own_export(path, wanted)
    model, tokenizer, chosen = open_model(path, device=wanted.device, precision=wanted.precision)
    if chosen.kind != "cpu":
        return TorchEngine(model, chosen), tokenizer
    if isinstance(model.encoder, Encoder) and (chosen.precision == "bf16" or encodes("fp32")):
        model = frozen(model, chosen.precision)
    return faster_engine(TorchEngine(model, chosen), path, wanted), tokenizer


def _open_exported(path: Path, wanted: Wanted) -> tuple[Engine, Tokenizer]:
    if wanted.engine == "torch":
        raise InputError(
            "--engine torch needs a model folder with its weights",
            f"{path}, an exported folder",
            "Leave it out, or give the model folder that it was exported from.",
        )
    exported = read_exported(path)
    _refuse_other_device(wanted)
    if wanted.precision not in ("auto", "fp32", exported.precision):
        raise InputError(
            "An exported folder runs in the precision that it was exported in",
            f"--precision {wanted.precision} for {exported.precision}",
            "Leave it out.",
        )
    return graph_engine(exported), read_tokenizer(path, vocab_size=exported.config.encoder.vocab_size)


def _open_own_export(path: Path, wanted: Wanted) -> tuple[Engine, Tokenizer]:
    """The graph that was exported into a model folder; of the weights, nothing but their sums is looked at."""
    _refuse_other_device(wanted)
    config = read_model(path, weights=False).model.config
    export = fitting_export(path, config, wanted)
    engine, tokenizer = graph_engine(export), read_tokenizer(path, vocab_size=config.encoder.vocab_size)
    if judged := agreement_at_export(export):
        wanted.notify(judged)
    return engine, tokenizer


def _refuse_other_device(wanted: Wanted) -> None:
    if wanted.device not in ("auto", "cpu"):
        raise InputError("An exported folder runs on the CPU", f"--device {wanted.device}", "Leave it out.")


def load(
    folder: str | Path,
    *,
    device: str = "auto",
    precision: str = "fp32",
    engine: str = "auto",
    judge_on: Sequence[Any] = (),
    notify: Callable[[str], object] = lambda message: None,
) -> AnyPredictor:
    """The predictor that fits a model folder, the finished model of a run, or an exported folder. An encoder without
    any head embeds.

    Args:
        folder: a model folder, a run folder or an exported folder.
        device: where it runs.
        precision: ``fp32``, ``bf16``, ``int8``, or ``auto``: fp32 or bf16, whichever a probe finds faster. In bf16 a
            result may move by 2 %. ``int8`` is for a CPU, and is refused where it predicts something else.
        engine: ``torch`` for a model's weights; ``onnx`` for an exported folder, or the graph that was exported into a
            model folder; ``auto`` for what there is. Where there are both, that is on a CPU whichever a probe of about
            a second finds faster. In fp32 results are the same to 1e-5.
        judge_on: texts, or whatever the predictor takes, by which a model in int8 is judged: up to 256 of them.
        notify: is told how a model in int8 was judged, and which engine runs where there were two to choose from.

    Raises:
        InputError: if it is no such folder, there is no graph of its model for ``onnx``, or the model does in int8 not
            predict what it predicts in fp32 (a mean cosine or correlation of 0.98, or 0.97 of the labels).
    """

    def fitting(found: Engine, tokenizer: Tokenizer) -> AnyPredictor:
        job = job_of(found.config)
        return FillPredictor(found, tokenizer) if job == "fill" else _predictor(job, folder, found, tokenizer)

    wanted = Wanted(None, device, precision, engine, notify=notify)
    return _opened(fitting, folder, wanted, judge_on)


def load_fill(
    folder: str | Path,
    *,
    device: str = "auto",
    precision: str = "fp32",
    engine: str = "auto",
    judge_on: Sequence[Any] = (),
    probes: bool = True,
    notify: Callable[[str], object] = lambda message: None,
) -> FillPredictor:
    """`load` for filling masks; a model of another kind is refused. `probes` is that of `load_predictor`."""
    wanted = Wanted("fill", device, precision, engine, probes, notify)
    return _opened(FillPredictor, folder, wanted, judge_on)


def load_predictor(
    task: TaskName,
    folder: str | Path,
    *,
    device: str = "auto",
    precision: str = "fp32",
    engine: str = "auto",
    top_k: int | None = None,
    judge_on: Sequence[Any] = (),
    probes: bool = True,
    notify: Callable[[str], object] = lambda message: None,
) -> Predictor[Any, Any, Any]:
    """`load` for a task; a model that was trained for another is refused.

    Args:
        task: what is wanted of the model.
        folder: a model folder, a run folder or an exported folder.
        device: where it runs.
        precision: as `load` takes it.
        engine: as `load` takes it.
        top_k: how many answers are told of a question, five where not given; other tasks tell all that they know.
        judge_on: items by which a model in int8 is judged.
        probes: whether ``auto`` may take about a second to find the faster engine, which a few texts are not worth;
            where not, torch runs a model folder.
        notify: is told how it was judged, and which engine runs where there were two to choose from.
    """

    def fitting(found: Engine, tokenizer: Tokenizer) -> Predictor[Any, Any, Any]:
        if task == "answer" and top_k is not None:
            return AnswerPredictor(found, tokenizer, top_k=top_k)
        return _predictor(task, folder, found, tokenizer)

    wanted = Wanted(task, device, precision, engine, probes, notify)
    return _opened(fitting, folder, wanted, judge_on)


def _opened(
    fitting: Callable[[Engine, Tokenizer], PredictorT], folder: str | Path, wanted: Wanted, judge_on: Sequence[Any]
) -> PredictorT:
    path = model_folder_of(folder)
    if wanted.precision != INT8 or wanted.engine == "onnx" or is_exported(path):
        return fitting(*_open(path, wanted))
    return _opened_in_int8(fitting, path, wanted, judge_on)


def _opened_in_int8(
    fitting: Callable[[Engine, Tokenizer], PredictorT], path: Path, wanted: Wanted, judge_on: Sequence[Any]
) -> PredictorT:
    """A predictor of a model folder in int8, judged by what its model predicts unless an export was judged before."""
    model, tokenizer, chosen = open_model(path, device=wanted.device, precision="fp32")
    if chosen.kind != "cpu" or not isinstance(model.encoder, Encoder):
        raise InputError(
            "--precision int8 is for a transformer encoder on a CPU",
            f"family {model.config.encoder.family} on {chosen.name}",
            "Use --device cpu, or another precision.",
        )
    usual = TorchEngine(frozen(model, "int8"), chosen)
    engine = faster_engine(usual, path, wanted)
    quick = fitting(engine, tokenizer)
    if engine is usual:
        exact = TorchEngine(frozen(model, "fp32"), chosen)
        found = judge(fitting(exact, tokenizer), quick, judge_on)
        wanted.notify(f"int8: {found.measure} {found.value:.4f} beside fp32, over {found.compared:,}")
    return quick


def _predictor(task: TaskName, folder: str | Path, engine: Engine, tokenizer: Tokenizer) -> Predictor[Any, Any, Any]:
    if task == "embed":
        refuse_foreign_modules(model_folder_of(folder), tokenizer)
    return TASKS[task].predictor(engine, tokenizer)
