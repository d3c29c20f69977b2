"""Fine-tuning in one call: rows, an encoder, the loop, a model folder that does a job, its scores."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bertsmith.batches.loader import Prefetcher
from bertsmith.checkpoints.checkpoint import CheckpointStore
from bertsmith.engine.device import Device, choose_device
from bertsmith.folders.model_folder import CARD, write_model
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import new_folder, write_file, write_json
from bertsmith.model.heads import Model
from bertsmith.objectives.report import Objective
from bertsmith.recipes.finetuning.data import Loaded, TaskData, loaded
from bertsmith.recipes.finetuning.given import Given
from bertsmith.recipes.finetuning.options import FinetuneConfig, default_epochs
from bertsmith.recipes.finetuning.several import run_seeds
from bertsmith.recipes.finetuning.start_model import (
    freeze_encoder,
    start_model,
    task_model_config,
)
from bertsmith.recipes.finetuning.validation import Validation, badness, keep_best
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
    given = Given.of(config)
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


def _train(
    config: FinetuneConfig,
    run: RunFolder,
    given: Given,
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
        validate = Validation(state.model, batches, given, device)
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
            badness=lambda metrics: badness(metrics, given.metrics),
            patience=config.training.patience,
        )
        loop.run()
    metric, better = next(iter(given.metrics.items()))
    kept_step = keep_best(config, state, books, checkpoints, notify, metric)
    evaluation = validate.settle() | {"decided_by": {"metric": metric, "better": better}}
    return _finish(config, run, given, state, evaluation, kept_step)


@dataclass(frozen=True)
class _Begin:
    """Makes model, optimizer and books."""

    config: FinetuneConfig
    loop_config: LoopConfig
    given: Given
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
    given: Given,
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
