"""BERT, GPT and ELMo beside each other: the same text, tokenizer, budget and number of parameters."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bertsmith.corpus.corpus import Corpus
from bertsmith.engine.device import choose_device
from bertsmith.folders.model_folder import read_model
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import write_file, write_json
from bertsmith.foundation.folder_lock import locked_folder
from bertsmith.pictures.comparison import FORMATS, ComparedModel, can_draw, draw_comparison
from bertsmith.recipes.comparison import measures
from bertsmith.recipes.comparison.options import CompareConfig
from bertsmith.recipes.comparison.task import DownstreamTask, downstream_task, refuse_unusable_labels
from bertsmith.recipes.comparison.training import NAMES, comparison_corpus, objectives_of, train_kinds
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.pretraining.options import ModelChoice
from bertsmith.recipes.pretraining.start_encoder import is_model_folder, refuse_larger_vocabulary, refuse_unknown_start
from bertsmith.recipes.pretraining.start_model import refuse_unfit_start
from bertsmith.recipes.results import Run
from bertsmith.recipes.run_folder import RunFolder, holds_run, remove_earlier
from bertsmith.recipes.text_sources import given_tokenizer, is_corpus, refuse_mixed_sources, refuse_settings_of_text
from bertsmith.reports.comparison import KINDS, comparison_page, scores_for_people
from bertsmith.text.documents import find_files
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.training.events import Observer
from bertsmith.training.log import read_log

Notify = Callable[[str], None]
_FINETUNING_SHARE = 0.15
"""Share of a comparison's minutes that fine-tuning the three takes together."""


@dataclass(frozen=True)
class Comparison:
    """A finished comparison."""

    folder: Path
    values: dict[str, Any]
    """What `comparison.json` holds."""
    already_finished: bool

    @property
    def page(self) -> Path:
        """The table, as Markdown."""
        return self.folder / "comparison.md"


def compare_run(
    config: CompareConfig,
    out: str | Path,
    *,
    restart: bool = False,
    observers: Sequence[Observer] = (),
    notify: Notify = lambda message: None,
) -> Comparison:
    """Run, or go on with, a comparison. What is finished of it is not done again.

    Args:
        config: what is compared.
        out: the folder. Each model is a run of its own in it.
        restart: remove what `out` holds of an earlier comparison first.
        observers: are told of each training's progress.
        notify: is told in a line what is being done.

    Raises:
        InputError: if something given cannot be used, or another process works in `out`; mostly before any work begins.
        Stopped: if a stop was asked for. The same call goes on.
    """
    started_at = time.monotonic()
    with locked_folder(Path(out)):
        return _locked_run(config, Path(out), restart, started_at, observers, notify)


def _locked_run(
    config: CompareConfig,
    folder: Path,
    restart: bool,
    started_at: float,
    observers: Sequence[Observer],
    notify: Notify,
) -> Comparison:
    if config.runtime.threads is not None:
        torch.set_num_threads(config.runtime.threads)
    if restart and holds_run(folder):
        _refuse_early(config)
        remove_earlier(folder, config, (*config.sources, config.tokenizer_folder, config.model, config.task.labels))
    run = RunFolder(folder, config)
    finished = (folder / "comparison.json").is_file()
    if not finished:
        _refuse_early(config)
        with run.absent_if_refused():
            run.write(run.record())
            corpus, tokenizer = comparison_corpus(config, run, notify)
            task = downstream_task(config, corpus, tokenizer, folder / "task")
            notify(f"task: {task.description}; {len(task.train)} texts to learn from, {len(task.test)} to be judged by")
            config = _with_one_precision(config, run)
            runs = train_kinds(config, run, corpus, started_at=started_at, observers=observers, notify=notify)
        values = _measured(config, run, corpus, tokenizer, task, runs, observers, notify)
        write_file(folder / "comparison.md", comparison_page(values))
        write_json(folder / "comparison.json", values)
    values = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    _draw(values, folder, notify)
    return Comparison(folder, values, finished)


def _refuse_early(config: CompareConfig) -> None:
    if not config.sources:
        raise InputError("There must be text to compare on", "no source", "Name files, folders or a prepared corpus.")
    refuse_mixed_sources(config.sources)
    refuse_settings_of_text(
        config.sources, tokenizer_folder=config.tokenizer_folder, tokenizer=config.tokenizer, text=config.text
    )
    choice = ModelChoice(start=config.model, max_position_embeddings=config.max_length)
    refuse_unknown_start(choice)
    if is_model_folder(config.model):
        raise InputError(
            "The models of a comparison must begin with fresh weights",
            f"{config.model}, a folder with weights",
            "Name a BERT preset or a config.json.",
        )
    refuse_unfit_start(choice, "causal")
    if config.batch_tokens < 2 * config.max_length:
        raise InputError(
            "--batch-tokens must hold two sequences at least",
            f"{config.batch_tokens} with --max-length {config.max_length}",
            f"Use --batch-tokens {2 * config.max_length} or more.",
        )
    choose_device(config.runtime.device, "fp32")
    refuse_unusable_labels(config.task)
    tokenizer = given_tokenizer(config.sources, config.tokenizer_folder, config.tokenizer)
    refuse_larger_vocabulary(choice, tokenizer, config.tokenizer)
    if not is_corpus(config.sources[0]):
        find_files(config.sources)


def _with_one_precision(config: CompareConfig, run: RunFolder) -> CompareConfig:
    """The same comparison in a precision that is decided once: a probe for each model might not always agree."""
    asked = run.record().get("precision", config.runtime.precision)
    precision = choose_device(config.runtime.device, asked).precision
    run.write(run.record() | {"precision": precision})
    return config.model_copy(update={"runtime": config.runtime.model_copy(update={"precision": precision})})


def _measured(
    config: CompareConfig,
    run: RunFolder,
    corpus: Corpus,
    tokenizer: Tokenizer,
    task: DownstreamTask,
    runs: dict[str, Run],
    observers: Sequence[Observer],
    notify: Notify,
) -> dict[str, Any]:
    device = choose_device(config.runtime.device, "fp32").name
    objectives = objectives_of(config)
    models: dict[str, Any] = {}
    for kind in KINDS:
        notify(f"{NAMES[kind]}: measuring")
        read = read_model(runs[kind].model_folder).model.to(device)
        subject = measures.Subject(read, tokenizer, corpus, device, config.max_length)
        parts: dict[str, Callable[[], dict[str, Any]]] = {
            "prediction": lambda subject=subject: measures.measure_prediction(subject),
            "direction": lambda subject=subject: measures.measure_direction(subject),
            "context": lambda subject=subject: measures.measure_context(subject),
            "frozen": lambda subject=subject: measures.measure_frozen(subject, task),
            "finetuned": lambda kind=kind: _finetuned(config, run, task, kind, observers, notify),
        }
        if kind == "gpt":
            parts["prompt"] = lambda subject=subject: measures.measure_prompt(subject, task, config.task.template)
            parts["writing"] = lambda subject=subject: measures.measure_writing(subject, config.prompt, config.seed)
        found = {name: _once(run.path / "measured" / f"{kind}-{name}.json", make) for name, make in parts.items()}
        models[kind] = {"name": NAMES[kind], **_trained(runs[kind], objectives[kind], subject), **found}
    return {
        "sources": list(config.sources),
        "settings": config.written,
        "corpus": {
            "train_tokens": corpus.manifest.train.tokens,
            "validation_tokens": corpus.manifest.validation.tokens,
            "vocab_size": tokenizer.vocab_size,
        },
        "task": {
            "description": task.description,
            "labels": list(task.labels),
            "train_texts": len(task.train),
            "test_texts": len(task.test),
            "commonest_share": task.commonest_share,
        },
        "models": models,
    }


def _once(path: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What was measured and written to `path` earlier, or what `make` measures now."""
    if not path.is_file():
        values = make()
        path.parent.mkdir(exist_ok=True)
        write_json(path, values)
    return json.loads(path.read_text(encoding="utf-8"))


def _trained(run: Run, objective: str, subject: measures.Subject) -> dict[str, Any]:
    """What a training left behind: sizes, budget and curves."""
    encoder = subject.model.config.encoder
    log = read_log(run.folder / "log.jsonl")
    train = [entry for entry in log if entry["kind"] == "train"]
    speeds = sorted(entry["tokens_per_second"] for entry in train)
    tokens_a_step = run.tokens / run.steps
    return {
        "objective": objective,
        "family": encoder.family,
        "layers": encoder.num_hidden_layers,
        "hidden_size": encoder.hidden_size,
        "heads": encoder.num_attention_heads,
        "parameters": sum(weight.numel() for weight in subject.model.parameters()),
        "steps": run.steps,
        "tokens": run.tokens,
        "tokens_per_second": speeds[len(speeds) // 2],
        "metrics": run.metrics,
        "curve": {
            "train": [[entry["tokens"], entry["loss"]] for entry in train],
            "validation": [
                [round(entry["step"] * tokens_a_step), entry["loss"]] for entry in log if entry["kind"] == "validation"
            ],
        },
    }


def _finetuned(
    config: CompareConfig,
    run: RunFolder,
    task: DownstreamTask,
    kind: str,
    observers: Sequence[Observer],
    notify: Notify,
) -> dict[str, Any]:
    """The task by a classifier on the encoder, all weights trained."""
    values = {
        "train": str(task.folder / "train.jsonl"),
        "validation": str(task.folder / "test.jsonl"),
        "model": str(run.path / kind / "model"),
        "max_length": config.max_length,
        "length": _finetuning_length(config),
        "data": {"text": "text", "label": "label"},
        "training": {"seed": config.seed},
        "runtime": config.runtime.model_dump(),
    }
    settings = FinetuneConfig.parse(values, where="the comparison")
    tuned = finetune_run(settings, run.path / f"{kind}-finetuned", observers=observers, notify=notify)
    return {name: tuned.metrics[name] for name in ("accuracy", "macro_f1")}


def _finetuning_length(config: CompareConfig) -> dict[str, float]:
    if config.task.epochs is not None:
        return {"epochs": config.task.epochs}
    minutes = config.length.minutes
    return {} if minutes is None else {"minutes": _FINETUNING_SHARE * minutes / len(NAMES)}


def _draw(values: dict[str, Any], folder: Path, notify: Notify) -> None:
    """Draw the picture where it is missing; without matplotlib, say how it comes about."""
    if all((folder / f"comparison.{kind}").is_file() for kind in FORMATS):
        return
    if not can_draw():
        notify("no picture: matplotlib is not installed. Install bertsmith[pictures] and give the same command again.")
        return
    models = [
        ComparedModel(
            name=model["name"],
            train=_points(model["curve"]["train"]),
            validation=_points(model["curve"]["validation"]),
            tokens=model["direction"]["tokens"],
            moved=np.array(model["direction"]["moved"], np.float64),
            scores=scores_for_people(model),
        )
        for model in (values["models"][kind] for kind in KINDS)
    ]
    draw_comparison(models, folder, commonest_share=values["task"]["commonest_share"], notify=notify)


def _points(curve: list[list[float | int]]) -> list[tuple[float, float]]:
    return [(float(tokens), float(loss)) for tokens, loss in curve]
