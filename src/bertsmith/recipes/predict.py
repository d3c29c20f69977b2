"""Opening a model folder to use it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bertsmith.engine.device import PRECISIONS, Device, choose_device
from bertsmith.folders.exported import is_exported, read_exported
from bertsmith.folders.model_folder import CONFIG, read_model, read_tokenizer
from bertsmith.folders.sentence_transformers import refuse_foreign_modules
from bertsmith.foundation.errors import InputError, near_match, unknown_name
from bertsmith.inference.agreement import Agreement
from bertsmith.inference.answer import AnswerPredictor
from bertsmith.inference.engine import Engine, job_of
from bertsmith.inference.fill import FillPredictor
from bertsmith.inference.onnx_engine import OnnxEngine, open_session
from bertsmith.inference.predictor import Predictor
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model.encoder import Encoder
from bertsmith.model.frozen import frozen
from bertsmith.model.heads import Model
from bertsmith.recipes.finetuning.tasks import TASKS
from bertsmith.recipes.judging import AnyPredictor, judge
from bertsmith.reports.comparison import KINDS
from bertsmith.tokenization.tokenizer import Tokenizer

INT8 = "int8"
"""A precision of predictions alone."""
_MOST_SHOWN = 5
PredictorT = TypeVar("PredictorT", bound=AnyPredictor)


def model_folder_of(folder: str | Path) -> Path:
    """The model folder that a path means: itself, or the finished model of a run.

    Raises:
        InputError: if there is no such folder, or it is a run that has no model yet, or a comparison, which has three.
    """
    path = Path(folder)
    if not path.exists():
        raise _no_such_folder(path)
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


def _no_such_folder(path: Path) -> InputError:
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    known = sorted(one.name for one in beside if any((one / name).is_file() for name in ("run.toml", CONFIG)))
    near = near_match(path.name, known)
    shown = ", ".join(known[:_MOST_SHOWN])
    do = f"Beside it there is: {shown}." if known else "Check the path."
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


def open_engine(folder: str | Path, *, device: str = "auto", precision: str = "auto") -> tuple[Engine, Tokenizer]:
    """What runs a model folder or an exported one, and the tokenizer.

    Raises:
        InputError: if the folder holds no model, the device is not there, or it is an exported folder and onnxruntime
            is not installed or something else than the CPU and its own precision was asked for.
    """
    path = model_folder_of(folder)
    if is_exported(path):
        return _open_exported(path, device=device, precision=precision)
    model, tokenizer, chosen = open_model(path, device=device, precision=precision)
    if chosen.kind == "cpu" and chosen.precision == "bf16" and isinstance(model.encoder, Encoder):
        # In fp32 torch runs it: its products lose nothing, and other programs give the same numbers.
        model = frozen(model, "bf16")
    return TorchEngine(model, chosen), tokenizer


def _open_exported(path: Path, *, device: str, precision: str) -> tuple[Engine, Tokenizer]:
    exported = read_exported(path)
    if device not in ("auto", "cpu"):
        raise InputError("An exported folder runs on the CPU", f"--device {device}", "Leave it out.")
    if precision not in ("auto", "fp32", exported.precision):
        raise InputError(
            "An exported folder runs in the precision that it was exported in",
            f"--precision {precision} for {exported.precision}",
            "Leave it out.",
        )
    engine = OnnxEngine(open_session(exported.graph), exported.config, exported.precision)
    return engine, read_tokenizer(path, vocab_size=exported.config.encoder.vocab_size)


def load(
    folder: str | Path, *, device: str = "auto", precision: str = "fp32", judge_on: Sequence[Any] = ()
) -> AnyPredictor:
    """The predictor that fits a model folder, the finished model of a run, or an exported folder.

    Args:
        folder: a model folder, a run folder or an exported folder.
        device: where it runs.
        precision: ``fp32``, ``bf16``, ``int8``, or ``auto``: fp32 or bf16, whichever a probe finds faster. In bf16 a
            result may move by 2 %. ``int8`` is for a CPU, and is refused where it predicts something else.
        judge_on: texts, or whatever the predictor takes, by which a model in int8 is judged: up to 256 of them.

    Raises:
        InputError: if it is no such folder, its model has no head to predict with, or it does in int8 not predict what
            it predicts in fp32 (a mean cosine or correlation of 0.98, or 0.97 of the labels).
    """

    def fitting(engine: Engine, tokenizer: Tokenizer) -> AnyPredictor:
        heads = engine.config.heads
        # An encoder that was exported without any head was exported to embed.
        task = heads.task or (job_of(engine.config) if isinstance(engine, OnnxEngine) else "fill")
        return FillPredictor(engine, tokenizer) if task == "fill" else _predictor(task, folder, engine, tokenizer)

    return _opened(fitting, folder, device, precision, judge_on)[0]


def load_fill(
    folder: str | Path, *, device: str = "auto", precision: str = "fp32", judge_on: Sequence[Any] = ()
) -> FillPredictor:
    """`load` for filling masks; a model of another kind is refused."""
    return _opened(FillPredictor, folder, device, precision, judge_on)[0]


def load_predictor(
    task: str,
    folder: str | Path,
    *,
    device: str = "auto",
    precision: str = "fp32",
    top_k: int | None = None,
    judge_on: Sequence[Any] = (),
    notify: Callable[[str], object] = lambda message: None,
) -> Predictor[Any, Any, Any]:
    """`load` for a task; a model that was trained for another is refused.

    Args:
        task: what is wanted of the model.
        folder: a model folder, a run folder or an exported folder.
        device: where it runs.
        precision: as `load` takes it.
        top_k: how many answers are told of a question, five where not given; other tasks tell all that they know.
        judge_on: items by which a model in int8 is judged.
        notify: is told how it was judged.
    """

    def fitting(engine: Engine, tokenizer: Tokenizer) -> Predictor[Any, Any, Any]:
        if task == "answer" and top_k is not None:
            return AnswerPredictor(engine, tokenizer, top_k=top_k)
        return _predictor(task, folder, engine, tokenizer)

    predictor, found = _opened(fitting, folder, device, precision, judge_on)
    if found is not None:
        notify(f"int8: {found.measure} {found.value:.4f} beside fp32, over {found.compared:,}")
    return predictor


def _opened(
    fitting: Callable[[Engine, Tokenizer], PredictorT],
    folder: str | Path,
    device: str,
    precision: str,
    judge_on: Sequence[Any],
) -> tuple[PredictorT, Agreement | None]:
    """A predictor of a folder, and how far it agrees with the model in fp32 where it runs in int8 by torch."""
    path = model_folder_of(folder)
    if precision not in (*PRECISIONS, INT8):
        raise unknown_name("--precision", precision, (*PRECISIONS, INT8))
    if precision != INT8 or is_exported(path):
        return fitting(*open_engine(path, device=device, precision=precision)), None
    model, tokenizer, chosen = open_model(path, device=device, precision="fp32")
    if chosen.kind != "cpu" or not isinstance(model.encoder, Encoder):
        raise InputError(
            "--precision int8 is for a transformer encoder on a CPU",
            f"family {model.config.encoder.family} on {chosen.name}",
            "Use --device cpu, or another precision.",
        )
    exact = fitting(TorchEngine(model, chosen), tokenizer)
    quick = fitting(TorchEngine(frozen(model, "int8"), chosen), tokenizer)
    return quick, judge(exact, quick, judge_on)


def _predictor(task: str, folder: str | Path, engine: Engine, tokenizer: Tokenizer) -> Predictor[Any, Any, Any]:
    if task == "embed":
        refuse_foreign_modules(model_folder_of(folder), tokenizer)
    return TASKS[task].predictor(engine, tokenizer)
