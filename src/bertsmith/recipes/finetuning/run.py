"""Fine-tuning in one call: rows, an encoder, the loop, a model folder that does a job, its scores."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bertsmith.batches.loader import Prefetcher
from bertsmith.checkpoints.checkpoint import CheckpointStore
from bertsmith.engine.device import Device, choose_device, notes_on_kernels
from bertsmith.folders.model_folder import CARD, write_model
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import new_folder, write_file, write_json
from bertsmith.foundation.folder_lock import locked_folder
from bertsmith.objectives.report import Objective
from bertsmith.recipes.finetuning.begin import first_state, loop_config_of, new_state
from bertsmith.recipes.finetuning.data import Loaded
from bertsmith.recipes.finetuning.given import Given
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.several import run_seeds
from bertsmith.recipes.finetuning.validation import Validation, badness, closing_validations, keep_best
from bertsmith.recipes.results import Run
from bertsmith.recipes.run_folder import RunFolder, holds_run, remove_earlier
from bertsmith.recipes.run_record import versions
from bertsmith.recipes.step_budget import TooShort, refuse_too_short, step_budget
from bertsmith.reports.finetune_report import finetune_report
from bertsmith.reports.task_card import task_card
from bertsmith.training.config import LoopConfig
from bertsmith.training.events import Observer
from bertsmith.training.log import LogWriter, read_log
from bertsmith.training.loop import Bookkeeping, TrainingLoop, restored
from bertsmith.training.schedule import StepBudget
from bertsmith.training.step import TrainState
from bertsmith.training.stopping import stop_requests

Notify = Callable[[str], None]
_SUMS = {
    "train_sha256": "a train file",
    "validation_sha256": "a validation file",
    "weights_sha256": "a model",
    "tokenizer_sha256": "a tokenizer",
}
"""Entries of the record that tell what a run is made from."""


def finetune_run(
    config: FinetuneConfig,
    out: str | Path,
    *,
    restart: bool = False,
    observers: Sequence[Observer] = (),
    notify: Notify = lambda message: None,
    started_at: float | None = None,
) -> Run:
    """Run, or go on with, a fine-tuning.

    Args:
        config: what is to run.
        out: the run's folder. Where it holds the same run, unfinished, that goes on; finished, nothing is done.
        restart: remove what `out` holds of an earlier run first.
        observers: are told of progress, validations and checkpoints.
        notify: is told in a line what is being done, and what stands out in the data.
        started_at: when the run began, on the monotonic clock, for one whose length is a time; now where not given.

    Raises:
        InputError: if something given cannot be used, or another process works in `out`; mostly before any work begins.
        Stopped: if a stop was asked for. The same call goes on.
    """
    started_at = time.monotonic() if started_at is None else started_at
    with locked_folder(Path(out)):
        return _locked_run(config, Path(out), restart, started_at, observers, notify)


def _locked_run(
    config: FinetuneConfig,
    folder: Path,
    restart: bool,
    started_at: float,
    observers: Sequence[Observer],
    notify: Notify,
) -> Run:
    begins_anew = restart and holds_run(folder)
    if not begins_anew:
        run = RunFolder(folder, config)
        if run.is_finished:
            return run.finished()
    given = Given.of(config)
    # What was read is read for all seeds, so each bears its share of the time.
    share = (time.monotonic() - started_at) / config.seeds
    with _told_of_all_seeds(config):
        refuse_too_short(config.with_seed(config.training.seed).length, started_at=time.monotonic() - share)
    if begins_anew:  # Only now: a slip of the pen must not cost the earlier run.
        choose_device(config.runtime.device, config.runtime.precision)
        remove_earlier(folder, config, (config.model, given.source.folder, config.train, config.validation))
    if config.seeds == 1:
        return _one_run(config, folder, given, started_at, observers, notify)
    run = RunFolder(folder, config)
    _refuse_changed_sources(run, given.data.facts)

    def run_one(one: FinetuneConfig, place: Path) -> Run:
        with locked_folder(place):
            return _one_run(one, place, given, time.monotonic() - share, observers, notify)

    with run.absent_if_refused(), _told_of_all_seeds(config):
        return run_seeds(config, run, given.data.facts, run_one, notify)


@contextlib.contextmanager
def _told_of_all_seeds(config: FinetuneConfig) -> Iterator[None]:
    """Where one seed's share of the time is refused, the time that was given for all of them is told."""
    try:
        yield
    except TooShort as error:
        if config.seeds == 1:
            raise
        received = f"{config.length.minutes:g} minutes for {config.seeds} seeds, which is for each {error.received}"
        raise TooShort(error.rule, received, error.do) from None


def _one_run(
    config: FinetuneConfig,
    folder: Path,
    given: Given,
    started_at: float,
    observers: Sequence[Observer],
    notify: Notify,
) -> Run:
    """Run, or go on with, a fine-tuning by one seed."""
    run = RunFolder(folder, config)
    if run.is_finished:
        return run.finished()
    _refuse_changed_sources(run, given.data.facts)
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
    batches = given.batches(config)
    for note in (*given.data.notes, *given.examples.notes, *batches.notes, *notes_on_kernels(device)):
        notify(note)
    loop_config = loop_config_of(config, given)
    run.write(run.record() | _facts(given, batches, device, loop_config))
    objective = given.task.objective(given.data.train, given.data.labels, config)
    checkpoints = CheckpointStore(run.checkpoints, keep=config.training.keep_checkpoints)
    with (
        stop_requests() as stop,
        Prefetcher(lambda step, total_steps: batches.train.micro_batches(step)) as prefetcher,
    ):
        begin = _Begin(config, loop_config, given, batches, objective, device, started_at, notify)
        state, books, validate = begin.pieces(checkpoints)
        TrainingLoop(
            state=state,
            books=books,
            objective=objective,
            fetch=prefetcher.get,
            batches_per_epoch=batches.train.batches_per_epoch,
            config=loop_config,
            device=device,
            tokenizer=given.tokenizer,
            checkpoints=checkpoints,
            validate=validate,
            sample=None,
            observers=[LogWriter(run.log, resumed_at=state.step), *observers],
            stop=stop,
            badness=lambda metrics: badness(metrics, given.metrics),
            patience=config.training.patience,
        ).run()
    metric, better = next(iter(given.metrics.items()))
    kept_step = keep_best(config, state, books, checkpoints, notify, metric)
    evaluation = validate.settle(has_other_weights=kept_step != state.step)
    evaluation |= {"decided_by": {"metric": metric, "better": better}}
    return _finish(config, run, given, state, evaluation, kept_step)


def _facts(given: Given, batches: Loaded, device: Device, loop_config: LoopConfig) -> dict[str, Any]:
    """What the record says of a run when it begins."""
    facts = {
        "precision": device.precision,
        "max_length": given.max_length,
        "learning_rate": loop_config.optimizer.learning_rate,
        "layer_decay": loop_config.optimizer.layer_decay,
        "average_share": loop_config.average_share,
        "batch_size": batches.train.batch_size,
        "labels": list(given.data.labels),
        "notes": [*given.examples.notes, *batches.notes],
        "metric": next(iter(given.metrics)),
    }
    return facts | versions() | given.data.facts


@dataclass(frozen=True)
class _Begin:
    """Makes model, optimizer, books and validation."""

    config: FinetuneConfig
    loop_config: LoopConfig
    given: Given
    batches: Loaded
    objective: Objective
    device: Device
    started_at: float
    notify: Notify

    def pieces(self, checkpoints: CheckpointStore) -> tuple[TrainState, Bookkeeping, Validation]:
        """From the newest checkpoint where there is one."""
        checkpoint = checkpoints.newest()
        if checkpoint is not None:
            read, saved = checkpoint.read()
            state = new_state(read.model, self.config, self.loop_config, self.device)
            self.notify(f"goes on from step {saved.step}")
            return state, restored(state, saved), self._validation(state)
        state = first_state(self.config, self.loop_config, self.given, self.device, self.notify)
        validation = self._validation(state)
        return state, Bookkeeping(self._budget(state, validation)), validation

    def _budget(self, state: TrainState, validation: Validation) -> StepBudget:
        train = self.batches.train
        return step_budget(
            self.config.length,
            default_epochs=self.given.default_epochs(train.num_tokens),
            batches_per_epoch=train.batches_per_epoch,
            measure=(state.model, self.objective, train.micro_batches, self.device),
            validation_share=self.batches.validation.num_tokens * train.batches_per_epoch / train.num_tokens,
            validate_every_share=self.loop_config.validate_every_share,
            closing_validations=closing_validations(self.config, self.given.heads),
            validate=validation,
            started_at=self.started_at,
        )

    def _validation(self, state: TrainState) -> Validation:
        return Validation(state.model, self.batches, self.given, self.device)


def _refuse_changed_sources(run: RunFolder, facts: dict[str, Any]) -> None:
    record = run.record()
    for name, source in _SUMS.items():
        if name in record and record[name] != facts.get(name):
            raise InputError(
                "A run goes on only with the rows and the model that it began with",
                f"{source} that has changed since",
                "Put the earlier one back, choose another folder, or begin anew with --restart.",
            )


def _finish(
    config: FinetuneConfig,
    run: RunFolder,
    given: Given,
    state: TrainState,
    evaluation: dict[str, Any],
    kept_step: int,
) -> Run:
    scores = given.scores(evaluation)
    record = run.record() | {"steps": state.step, "tokens": state.tokens, "kept_step": kept_step, "metrics": scores}
    write_json(run.evaluation, evaluation)
    write_file(run.report, finetune_report(run.path.name, config.written, record, evaluation, read_log(run.log)))
    run.write(record)
    with new_folder(run.model, seal={"kind": "model"}) as temporary:
        write_model(temporary, state.model, given.tokenizer)
        write_file(temporary / CARD, task_card(state.model.config, record, evaluation))
    return run.finished(already=False)
