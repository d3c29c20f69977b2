"""Fine-tuning in one call: labelled rows, an encoder, the loop, a model folder that does a job, its scores."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bertsmith.batches.loader import Prefetcher
from bertsmith.batches.task_loader import TaskLoader
from bertsmith.checkpoints.checkpoint import CheckpointStore
from bertsmith.engine.device import Device, choose_device
from bertsmith.examples.classification import balanced_weights
from bertsmith.folders.model_folder import CARD, write_model
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import new_folder, write_file, write_json
from bertsmith.inference.sequence_outputs import batch_log_probabilities
from bertsmith.model.heads import Model
from bertsmith.objectives.classification import Classification, classification_scores
from bertsmith.recipes.finetuning.data import ClassificationData, classification_data, loaders
from bertsmith.recipes.finetuning.evaluation import classification_evaluation
from bertsmith.recipes.finetuning.options import FinetuneConfig, default_epochs
from bertsmith.recipes.finetuning.start_classifier import (
    Source,
    freeze_encoder,
    known_order,
    open_source,
    start_classifier,
)
from bertsmith.recipes.results import Run
from bertsmith.recipes.run_folder import RunFolder, holds_run, remove_earlier
from bertsmith.recipes.run_record import versions
from bertsmith.recipes.step_budget import step_budget
from bertsmith.reports.classifier_card import classifier_card
from bertsmith.reports.finetune_report import finetune_report
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
    source = open_source(config.model)
    max_length = _max_length(config, source)
    data = classification_data(config)
    data = data.with_labels(known_order(source, data.labels))
    if begins_anew:  # Only now: a slip of the pen must not cost the earlier run.
        remove_earlier(folder, config, (config.model, source.folder, config.train, config.validation))
    run = RunFolder(folder, config)
    _refuse_changed_data(run, data)
    if config.runtime.threads is not None:
        torch.set_num_threads(config.runtime.threads)
    device = choose_device(config.runtime.device, run.record().get("precision", config.runtime.precision))
    with run.absent_if_refused():
        return _train(config, run, _Given(source, data, max_length), device, started_at, observers, notify)


@dataclass(frozen=True)
class _Given:
    """What a run is given, read and checked."""

    source: Source
    data: ClassificationData
    max_length: int


def _train(
    config: FinetuneConfig,
    run: RunFolder,
    given: _Given,
    device: Device,
    started_at: float,
    observers: Sequence[Observer],
    notify: Notify,
) -> Run:
    data, tokenizer = given.data, given.source.tokenizer
    for note in data.notes:
        notify(note)
    train, validation, notes = loaders(data, tokenizer, config, max_length=given.max_length)
    for note in notes:
        notify(note)
    rate = config.learning_rate_for(given.source.model.config.encoder.hidden_size)
    loop_config = config.training.model_copy(
        update={"optimizer": config.training.optimizer.model_copy(update={"learning_rate": rate})}
    )
    facts = {"precision": device.precision, "max_length": given.max_length, "learning_rate": rate}
    run.write(run.record() | facts | {"labels": list(data.labels)} | versions() | data.facts | {"notes": list(notes)})
    with stop_requests() as stop, Prefetcher(lambda step, total_steps: train.micro_batches(step)) as prefetcher:
        state, books = _begin(config, loop_config, run, given, (train, validation), device, started_at, notify)
        validate = _Validation(state.model, validation, data, device)
        loop = TrainingLoop(
            state=state,
            books=books,
            objective=_objective(config, data),
            fetch=prefetcher.get,
            batches_per_epoch=train.batches_per_epoch,
            config=loop_config,
            device=device,
            tokenizer=tokenizer,
            checkpoints=CheckpointStore(run.checkpoints, keep=config.training.keep_checkpoints),
            validate=validate,
            sample=None,
            observers=[LogWriter(run.log, resumed_at=state.step), *observers],
            stop=stop,
        )
        metrics = loop.run()
    evaluation = classification_evaluation(validate.log_probabilities, data.validation, data.labels)
    return _finish(config, run, given, state, metrics, evaluation)


def _begin(
    config: FinetuneConfig,
    loop_config: LoopConfig,
    run: RunFolder,
    given: _Given,
    loaders: tuple[TaskLoader, TaskLoader],
    device: Device,
    started_at: float,
    notify: Notify,
) -> tuple[TrainState, Bookkeeping]:
    """Model, optimizer and books: from the newest checkpoint where there is one."""
    checkpoint = CheckpointStore(run.checkpoints).newest()
    if checkpoint is not None:
        read, saved = checkpoint.read()
        state = _new_state(read.model, config, loop_config, device)
        notify(f"goes on from step {saved.step}")
        return state, restored(state, saved)
    model, notes = start_classifier(
        given.source,
        given.data.labels,
        dropout=config.dropout,
        fresh_weights=config.fresh_weights,
        seed=config.training.seed,
        frozen=config.freeze == "encoder",
    )
    for note in notes:
        notify(note)
    state = _new_state(model, config, loop_config, device)
    train, validation = loaders
    budget = step_budget(
        config.length,
        default_epochs=default_epochs(len(given.data.train.rows)),
        batches_per_epoch=train.batches_per_epoch,
        measure=(state.model, _objective(config, given.data), train.micro_batches, device),
        validation_share=validation.num_tokens * train.batches_per_epoch / train.num_tokens,
        started_at=started_at,
    )
    return state, Bookkeeping(budget)


def _new_state(model: Model, config: FinetuneConfig, loop_config: LoopConfig, device: Device) -> TrainState:
    model = model.to(device.name)
    model.train()
    if config.freeze == "encoder":
        freeze_encoder(model)
    return TrainState(model, new_optimizer(model, loop_config.optimizer))


def _objective(config: FinetuneConfig, data: ClassificationData) -> Classification:
    if config.class_weights == "none":
        return Classification()
    return Classification(balanced_weights(data.train.ids, len(data.labels)))


class _Validation:
    """Scores on the validation rows, with what the model said of each kept for the evaluation at the end."""

    def __init__(self, model: Model, loader: TaskLoader, data: ClassificationData, device: Device) -> None:
        self._model = model
        self._loader = loader
        self._truth = data.validation.ids
        self._device = device
        self.log_probabilities = np.empty((0, len(data.labels)), np.float32)
        """Of the last call."""

    def __call__(self) -> dict[str, float]:
        self.log_probabilities = batch_log_probabilities(self._model, self._loader.in_order(), self._device)
        return classification_scores(self.log_probabilities, self._truth)


def _max_length(config: FinetuneConfig, source: Source) -> int:
    positions = source.num_positions
    if config.max_length is not None and config.max_length > positions:
        raise InputError(
            "--max-length must not exceed the positions of the model",
            f"{config.max_length}, and {source.folder} has {positions}",
            f"Use --max-length {positions} or less.",
        )
    return config.max_length or source.max_length


def _refuse_changed_data(run: RunFolder, data: ClassificationData) -> None:
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
    metrics: dict[str, float],
    evaluation: dict[str, Any],
) -> Run:
    record = run.record() | {"steps": state.step, "tokens": state.tokens, "metrics": metrics}
    write_json(run.evaluation, evaluation)
    write_file(run.report, finetune_report(run.path.name, config.written, record, evaluation, read_log(run.log)))
    run.write(record)
    with new_folder(run.model, seal={"kind": "model"}) as temporary:
        tokenizer = given.source.tokenizer
        write_model(temporary, state.model, tokenizer)
        # What the model was trained on is what it sees later too, here and elsewhere.
        tokenizer.save(temporary, max_length=given.max_length, long_texts=config.long_texts)
        write_file(temporary / CARD, classifier_card(state.model.config, record, evaluation))
    return run.finished(already=False)
