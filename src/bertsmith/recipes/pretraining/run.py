"""Pre-training from raw text in one call: tokenizer, corpus, model, loop, model folder, report."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bertsmith.batches.loader import Prefetcher
from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.checkpoints.checkpoint import CheckpointStore
from bertsmith.corpus.corpus import Corpus
from bertsmith.engine.device import Device, choose_device, notes_on_kernels
from bertsmith.engine.evaluation import evaluate
from bertsmith.folders.model_folder import CARD, write_model
from bertsmith.foundation.files import new_folder, write_file
from bertsmith.foundation.folder_lock import locked_folder
from bertsmith.inference.fill import FillPredictor
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.recipes.pretraining.begin import (
    DEFAULT_EPOCHS,
    data_of_run,
    first_state,
    new_state,
    validation_tokens_of_run,
)
from bertsmith.recipes.pretraining.checks import refuse_early
from bertsmith.recipes.pretraining.choosing import chosen_settings, is_to_be_chosen, with_settings
from bertsmith.recipes.pretraining.corpus import corpus_of_run, tokenizer_of_model
from bertsmith.recipes.pretraining.data import OBJECTIVES, PretrainingData
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.sampling import Sampler, WritingSampler
from bertsmith.recipes.pretraining.start_defaults import with_start_defaults
from bertsmith.recipes.pretraining.start_encoder import refuse_unknown_start
from bertsmith.recipes.results import Run
from bertsmith.recipes.run_folder import RunFolder, holds_run, record_of, remove_earlier
from bertsmith.recipes.run_record import versions
from bertsmith.recipes.step_budget import MORE_MINUTES, step_budget
from bertsmith.recipes.text_sources import is_corpus
from bertsmith.reports.model_card import model_card
from bertsmith.reports.run_report import run_report
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.training.events import Observer
from bertsmith.training.log import LogWriter, read_log
from bertsmith.training.loop import Bookkeeping, TrainingLoop, restored
from bertsmith.training.step import TrainState
from bertsmith.training.stopping import stop_requests

Notify = Callable[[str], None]
_PREPARE_BEFOREHAND = "Give more minutes, or prepare the corpus beforehand with bertsmith prepare."


def pretrain_run(
    config: PretrainConfig,
    out: str | Path,
    *,
    restart: bool = False,
    observers: Sequence[Observer] = (),
    notify: Notify = lambda message: None,
    started_at: float | None = None,
) -> Run:
    """Run, or go on with, a pre-training.

    Args:
        config: what is to run.
        out: the run's folder. Where it holds the same run, unfinished, that goes on; finished, nothing is done.
        restart: remove what `out` holds of an earlier run first.
        observers: are told of progress, validations, samples and checkpoints.
        notify: is told in a line what is being done.
        started_at: when the run began, on the monotonic clock, for one whose length is a time; now where not given.

    Raises:
        InputError: if something given cannot be used, or another process works in `out`; mostly before any work begins.
        Stopped: if a stop was asked for. The same call goes on.
    """
    started_at = time.monotonic() if started_at is None else started_at
    refuse_unknown_start(config.model)
    with locked_folder(Path(out)):
        return _locked_run(config, Path(out), restart, started_at, observers, notify)


def _locked_run(
    config: PretrainConfig,
    folder: Path,
    restart: bool,
    started_at: float,
    observers: Sequence[Observer],
    notify: Notify,
) -> Run:
    if restart and holds_run(folder):
        refuse_early(with_start_defaults(config))  # A slip of the pen must not cost the earlier run.
        remove_earlier(folder, config, (*config.sources, config.tokenizer_folder, config.model.start))
    if config.runtime.threads is not None:
        torch.set_num_threads(config.runtime.threads)
    config, chosen = _with_choice(config, folder, notify)
    run = RunFolder(folder, config)
    if run.is_finished:
        return run.finished()
    refuse_early(config, has_begun=run.has_checkpoint)
    device = choose_device(config.runtime.device, run.record().get("precision", config.runtime.precision))
    with run.absent_if_refused():
        run.write(run.record() | ({"chosen": chosen} if chosen else {}) | {"precision": device.precision})
        return _train(config, run, device, started_at, observers, notify)


def _with_choice(config: PretrainConfig, folder: Path, notify: Notify) -> tuple[PretrainConfig, dict[str, Any]]:
    """The config with all that nobody gave, and what of it was chosen for the time; an earlier choice stands."""
    chosen: dict[str, Any] = {}
    if is_to_be_chosen(config):
        if holds_run(folder):
            chosen = record_of(folder).get("chosen", {})
        else:
            refuse_early(with_start_defaults(config))
            chosen = chosen_settings(config, choose_device(config.runtime.device, config.runtime.precision), notify)
        config = with_settings(config, chosen)
    return with_start_defaults(config), chosen


def _train(
    config: PretrainConfig,
    run: RunFolder,
    device: Device,
    started_at: float,
    observers: Sequence[Observer],
    notify: Notify,
) -> Run:
    corpus, tokenizer = corpus_of_run(config, run, notify)
    for note in (*(f"note: {warning}" for warning in corpus.warnings), *notes_on_kernels(device)):
        notify(note)
    tokenizer = tokenizer_of_model(config, tokenizer)
    run.write(run.record() | versions() | _facts(corpus, tokenizer))
    with stop_requests() as stop:
        pieces = _assemble(config, run, corpus, tokenizer, device, started_at, notify)
        with pieces.prefetcher:
            loop = TrainingLoop(
                state=pieces.state,
                books=pieces.books,
                objective=OBJECTIVES[config.objective],
                fetch=pieces.prefetcher.get,
                batches_per_epoch=pieces.data.train.batches_per_epoch,
                config=config.training,
                device=device,
                tokenizer=tokenizer,
                checkpoints=CheckpointStore(run.checkpoints, keep=config.training.keep_checkpoints),
                validate=pieces.validate,
                sample=_sampler(config.objective, corpus, pieces, tokenizer, device),
                observers=[LogWriter(run.log, resumed_at=pieces.state.step), *observers],
                stop=stop,
            )
            metrics = loop.run()
    return _finish(config, run, tokenizer, pieces.state, metrics)


def _sampler(
    objective: str, corpus: Corpus, pieces: "_Pieces", tokenizer: Tokenizer, device: Device
) -> Callable[[], list[str]] | None:
    """What shows people how far the model is; None for an ELMo, which fills nothing and writes nothing."""
    validation, model = corpus.split("validation"), pieces.state.model
    match objective:
        case "causal":
            return WritingSampler(validation, model, tokenizer, device)
        case "bilm":
            return None
        case _:
            predictor = FillPredictor(TorchEngine(model, device), tokenizer)
            return Sampler(validation, predictor, tokenizer, pieces.sequence_format)


@dataclass(frozen=True)
class _Pieces:
    state: TrainState
    books: Bookkeeping
    data: PretrainingData
    sequence_format: SequenceFormat
    prefetcher: Prefetcher
    validate: Callable[[], dict[str, float]]


def _assemble(
    config: PretrainConfig,
    run: RunFolder,
    corpus: Corpus,
    tokenizer: Tokenizer,
    device: Device,
    started_at: float,
    notify: Notify,
) -> _Pieces:
    """Data, model and state: from the newest checkpoint where there is one."""
    sequence_format = SequenceFormat.of(tokenizer)
    data = data_of_run(config, corpus, sequence_format)
    validation_tokens = validation_tokens_of_run(config, data.train.batches_per_epoch)
    checkpoint = CheckpointStore(run.checkpoints).newest()
    if checkpoint is not None:
        read, saved = checkpoint.read()
        state = new_state(read.model, config, device)
        books = restored(state, saved)
        notify(f"goes on from step {state.step}")
    else:
        state = first_state(config, corpus, tokenizer, device, notify)
        budget = step_budget(
            config.length,
            default_epochs=DEFAULT_EPOCHS,
            batches_per_epoch=data.train.batches_per_epoch,
            measure=(state.model, OBJECTIVES[config.objective], lambda step: data.train.micro_batches(step, 1), device),
            validation_share=validation_tokens / config.training.batch_tokens,
            validate_every_share=config.training.validate_every_share,
            started_at=started_at,
            advice=MORE_MINUTES if is_corpus(config.sources[0]) else _PREPARE_BEFOREHAND,
        )
        books = Bookkeeping(budget)
    objective = OBJECTIVES[config.objective]

    def validate() -> dict[str, float]:
        batches = data.validation_batches(validation_tokens)
        metrics = evaluate(state.model, objective, batches, device)
        return metrics | data.pair_facts

    return _Pieces(state, books, data, sequence_format, Prefetcher(data.train.micro_batches), validate)


def _facts(corpus: Corpus, tokenizer: Tokenizer) -> dict[str, Any]:
    manifest = corpus.manifest
    facts = {
        "corpus_sha256": corpus.fingerprint,
        "tokenizer_sha256": tokenizer.fingerprint,
        "vocab_size": tokenizer.vocab_size,
        "train_tokens": manifest.train.tokens,
        "train_documents": manifest.train.documents,
        "validation_tokens": manifest.validation.tokens,
        "train_entropy": manifest.train_entropy,
        "context_free_loss": manifest.context_free_loss,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _finish(
    config: PretrainConfig,
    run: RunFolder,
    tokenizer: Tokenizer,
    state: TrainState,
    metrics: dict[str, float],
) -> Run:
    record = run.record() | {"steps": state.step, "tokens": state.tokens, "metrics": metrics}
    write_file(run.report, run_report(run.path.name, config.written, record, read_log(run.log)))
    run.write(record)
    with new_folder(run.model, seal={"kind": "model"}) as temporary:
        write_model(temporary, state.model, tokenizer)
        card = model_card(
            state.model.config,
            objective=config.objective,
            max_length=config.max_length,
            mask_token=tokenizer.mask_token,
            record=record,
        )
        write_file(temporary / CARD, card)
    return run.finished(already=False)
