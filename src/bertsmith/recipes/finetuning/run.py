"""Fine-tuning in one call: rows, an encoder, the loop, a model folder that does a job, its scores."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bertsmith.batches.loader import Prefetcher
from bertsmith.checkpoints.checkpoint import CheckpointStore
from bertsmith.engine.device import Device, choose_device
from bertsmith.folders.model_folder import CARD, write_model
from bertsmith.foundation.errors import InputError, unknown_name
from bertsmith.foundation.files import new_folder, write_file, write_json
from bertsmith.inference.task_outputs import batch_outputs
from bertsmith.model.config import HeadsConfig
from bertsmith.model.heads import Model
from bertsmith.objectives.report import Objective
from bertsmith.recipes.finetuning.data import Loaded, TaskData, loaded, task_data
from bertsmith.recipes.finetuning.options import FinetuneConfig, default_epochs
from bertsmith.recipes.finetuning.several import run_seeds
from bertsmith.recipes.finetuning.start_model import (
    Source,
    freeze_encoder,
    known_order,
    open_source,
    start_model,
    task_model_config,
)
from bertsmith.recipes.finetuning.task import Better, Task
from bertsmith.recipes.finetuning.tasks import TASKS
from bertsmith.recipes.results import Run
from bertsmith.recipes.run_folder import RunFolder, holds_run, remove_earlier
from bertsmith.recipes.run_record import versions
from bertsmith.recipes.step_budget import step_budget
from bertsmith.reports.finetune_report import finetune_report
from bertsmith.reports.task_card import task_card
from bertsmith.training.config import LoopConfig
from bertsmith.training.events import Observer
from bertsmith.training.log import LogWriter, read_log
from bertsmith.training.loop import Bookkeeping, TrainingLoop, restored
from bertsmith.training.step import TrainState, new_optimizer
from bertsmith.training.stopping import stop_requests

Notify = Callable[[str], None]


def finetune_run(
    config: FinetuneConfig,
    out: str | Path,
    *,
    restart: bool = False,
    observers: Sequence[Observer] = (),
    notify: Notify = lambda message: None,
) -> Run:
    """Run, or go on with, a fine-tuning.

    Args:
        config: what is to run.
        out: the run's folder. Where it holds the same run, unfinished, that goes on; finished, nothing is done.
        restart: remove what `out` holds of an earlier run first.
        observers: are told of progress, validations and checkpoints.
        notify: is told in a line what is being done, and what stands out in the data.

    Raises:
        InputError: if something given cannot be used; mostly before any work begins.
        Stopped: if a stop was asked for. The same call goes on.
    """
    started_at = time.monotonic()
    folder = Path(out)
    begins_anew = restart and holds_run(folder)
    if not begins_anew:
        run = RunFolder(folder, config)
        if run.is_finished:
            return run.finished()
    given = _Given.of(config)
    if begins_anew:  # Only now: a slip of the pen must not cost the earlier run.
        remove_earlier(folder, config, (config.model, given.source.folder, config.train, config.validation))
    run = RunFolder(folder, config)
    if config.seeds > 1:
        with run.absent_if_refused():
            return run_seeds(
                config, run, lambda one, place: finetune_run(one, place, observers=observers, notify=notify), notify
            )
    _refuse_changed_data(run, given.data)
    if config.runtime.threads is not None:
        torch.set_num_threads(config.runtime.threads)
    device = choose_device(config.runtime.device, run.record().get("precision", config.runtime.precision))
    with run.absent_if_refused():
        return _train(config, run, given, device, started_at, observers, notify)


@dataclass(frozen=True)
class _Given:
    """What a run is given, read and checked."""

    task: Task
    source: Source
    data: TaskData
    metrics: dict[str, Better]
    """The scores, the one first that tells the best validation."""
    max_length: int

    @classmethod
    def of(cls, config: FinetuneConfig) -> "_Given":
        """Read what a run is given, and refuse what cannot be used."""
        task = TASKS[config.task]
        source = open_source(config.model)
        max_length = _max_length(config, source)
        data = task_data(task, config)
        data = data.with_labels(known_order(source, data.labels))
        return cls(task, source, data, _metrics(config, task, data), max_length)

    def heads(self, config: FinetuneConfig) -> dict[str, Any]:
        """What `HeadsConfig` says of the task."""
        return {"task": self.task.name} | self.task.heads(self.data.train, self.data.labels, config)


def _train(
    config: FinetuneConfig,
    run: RunFolder,
    given: _Given,
    device: Device,
    started_at: float,
    observers: Sequence[Observer],
    notify: Notify,
) -> Run:
    task, data, tokenizer = given.task, given.data, given.source.tokenizer
    for note in data.notes:
        notify(note)
    heads = task_model_config(given.source, given.heads(config), dropout=config.dropout).heads
    batches = loaded(task, data, tokenizer, config, heads=heads, max_length=given.max_length)
    for note in batches.notes:
        notify(note)
    rate = config.learning_rate_for(given.source.model.config.encoder.hidden_size)
    loop_config = config.training.model_copy(
        update={"optimizer": config.training.optimizer.model_copy(update={"learning_rate": rate})}
    )
    facts = {"precision": device.precision, "max_length": given.max_length, "learning_rate": rate}
    facts |= {"batch_size": batches.train.batch_size}
    facts |= {"labels": list(data.labels), "notes": list(batches.notes), "metric": next(iter(given.metrics))}
    run.write(run.record() | facts | versions() | data.facts)
    objective = task.objective(data.train, data.labels, config)
    checkpoints = CheckpointStore(run.checkpoints, keep=config.training.keep_checkpoints)
    with (
        stop_requests() as stop,
        Prefetcher(lambda step, total_steps: batches.train.micro_batches(step)) as prefetcher,
    ):
        begin = _Begin(config, loop_config, given, batches, objective, device, started_at, notify)
        state, books = begin.state_and_books(checkpoints)
        validate = _Validation(state.model, batches, given, device)
        loop = TrainingLoop(
            state=state,
            books=books,
            objective=objective,
            fetch=prefetcher.get,
            batches_per_epoch=batches.train.batches_per_epoch,
            config=loop_config,
            device=device,
            tokenizer=tokenizer,
            checkpoints=checkpoints,
            validate=validate,
            sample=None,
            observers=[LogWriter(run.log, resumed_at=state.step), *observers],
            stop=stop,
            badness=lambda metrics: _badness(metrics, given.metrics),
            patience=config.training.patience,
        )
        loop.run()
    metric, better = next(iter(given.metrics.items()))
    kept_step = _keep_best(config, state, books, checkpoints, notify, metric)
    evaluation = validate.settle() | {"decided_by": {"metric": metric, "better": better}}
    return _finish(config, run, given, state, evaluation, kept_step)


@dataclass(frozen=True)
class _Begin:
    """Makes model, optimizer and books."""

    config: FinetuneConfig
    loop_config: LoopConfig
    given: _Given
    batches: Loaded
    objective: Objective
    device: Device
    started_at: float
    notify: Notify

    def state_and_books(self, checkpoints: CheckpointStore) -> tuple[TrainState, Bookkeeping]:
        """From the newest checkpoint where there is one."""
        config, given, train = self.config, self.given, self.batches.train
        checkpoint = checkpoints.newest()
        if checkpoint is not None:
            read, saved = checkpoint.read()
            state = self._state(read.model)
            self.notify(f"goes on from step {saved.step}")
            return state, restored(state, saved)
        model, notes = start_model(
            given.source,
            given.heads(config),
            dropout=config.dropout,
            fresh_weights=config.fresh_weights,
            seed=config.training.seed,
            frozen=config.freeze == "encoder",
        )
        for note in notes:
            self.notify(note)
        state = self._state(model)
        budget = step_budget(
            config.length,
            default_epochs=default_epochs(len(given.data.train.items)),
            batches_per_epoch=train.batches_per_epoch,
            measure=(state.model, self.objective, train.micro_batches, self.device),
            validation_share=self.batches.validation.num_tokens * train.batches_per_epoch / train.num_tokens,
            started_at=self.started_at,
        )
        return state, Bookkeeping(budget)

    def _state(self, model: Model) -> TrainState:
        model = model.to(self.device.name)
        model.train()
        if self.config.freeze == "encoder":
            freeze_encoder(model)
        return TrainState(model, new_optimizer(model, self.loop_config.optimizer))


class _Validation:
    """Scores on the validation rows, and what they decide at the end."""

    def __init__(self, model: Model, batches: Loaded, given: _Given, device: Device) -> None:
        self._model = model
        self._batches = batches
        self._given = given
        self._device = device

    def __call__(self) -> dict[str, float]:
        evaluation = self._evaluation(self._outputs(), self._model.config.heads)
        return {name: evaluation[name] for name in self._given.metrics if name in evaluation}

    def settle(self) -> dict[str, Any]:
        """Let the task decide what it decides on validation, and evaluate the model as it then is."""
        outputs = self._outputs()
        model, given = self._model, self._given
        examples, rows = self._batches.validation_examples, given.data.validation
        heads = given.task.settle(outputs, examples, rows, model)
        if heads != model.config.heads:
            model.config = model.config.model_copy(update={"heads": heads})
            outputs = self._outputs()
        return self._evaluation(outputs, heads)

    def _outputs(self) -> np.ndarray:
        return batch_outputs(self._model, self._batches.validation.in_order(), self._device, self._given.task.head)

    def _evaluation(self, outputs: np.ndarray, heads: HeadsConfig) -> dict[str, Any]:
        given = self._given
        return given.task.evaluation(outputs, self._batches.validation_examples, given.data.validation, heads)


def _metrics(config: FinetuneConfig, task: Task, data: TaskData) -> dict[str, Better]:
    """The task's scores, that one first which tells the best validation."""
    known = task.metrics(data.validation, data.labels)
    chosen = config.training.metric
    if chosen is None:
        chosen = next(iter(known))
    elif chosen not in known:
        raise unknown_name("training.metric", chosen, known)
    ways: dict[str, Better] = {chosen: config.training.direction or known[chosen]}
    for name, way in known.items():
        ways.setdefault(name, way)
    return ways


def _badness(metrics: dict[str, float], ways: dict[str, Better]) -> tuple[float, ...]:
    """Lower for a better validation, the loss deciding among equals; a score that is no number is the worst."""
    name, better = next(iter(ways.items()))
    score = metrics.get(name, math.nan)
    if math.isnan(score):
        return (math.inf, math.inf)
    loss = metrics.get("loss", math.inf)
    return (score if better == "lower" else -score, math.inf if math.isnan(loss) else loss)


def _keep_best(
    config: FinetuneConfig,
    state: TrainState,
    books: Bookkeeping,
    checkpoints: CheckpointStore,
    notify: Notify,
    metric: str,
) -> int:
    """Give the model its weights of the best validation, where they are not those that it has; returns their step."""
    best = books.best_step
    if config.training.keep == "last" or best is None or best == state.step:
        return state.step
    checkpoint = checkpoints.at(best)
    if checkpoint is None:
        notify(f"the best validation was at step {best}, whose checkpoint is gone: the last model is kept")
        return state.step
    state.model.load_state_dict(checkpoint.read()[0].model.state_dict())
    notify(f"the model of step {best} is kept, whose {metric.replace('_', ' ')} was the best")
    return best


def _max_length(config: FinetuneConfig, source: Source) -> int:
    positions = source.num_positions
    if config.max_length is not None and config.max_length > positions:
        raise InputError(
            "--max-length must not exceed the positions of the model",
            f"{config.max_length}, and {source.folder} has {positions}",
            f"Use --max-length {positions} or less.",
        )
    return config.max_length or source.max_length


def _refuse_changed_data(run: RunFolder, data: TaskData) -> None:
    record = run.record()
    for name in ("train_sha256", "validation_sha256"):
        if name in record and record[name] != data.facts.get(name):
            raise InputError(
                "A run goes on only with the rows that it began with",
                f"a {name.removesuffix('_sha256')} file that has changed since",
                "Put the earlier file back, choose another folder, or begin anew with --restart.",
            )


def _finish(
    config: FinetuneConfig,
    run: RunFolder,
    given: _Given,
    state: TrainState,
    evaluation: dict[str, Any],
    kept_step: int,
) -> Run:
    scores = {name: evaluation[name] for name in given.metrics if name in evaluation}
    record = run.record() | {"steps": state.step, "tokens": state.tokens, "kept_step": kept_step, "metrics": scores}
    write_json(run.evaluation, evaluation)
    write_file(run.report, finetune_report(run.path.name, config.written, record, evaluation, read_log(run.log)))
    run.write(record)
    with new_folder(run.model, seal={"kind": "model"}) as temporary:
        tokenizer = given.source.tokenizer
        write_model(temporary, state.model, tokenizer)
        # What the model was trained on is what it sees later too, here and elsewhere.
        side = "head" if config.long_texts == "windows" else config.long_texts
        tokenizer.save(temporary, max_length=given.max_length, long_texts=side)
        write_file(temporary / CARD, task_card(state.model.config, record, evaluation))
    return run.finished(already=False)
