"""The training loop: steps, and between them validations, samples, checkpoints and questions whether to stop."""

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bertsmith.batches.batch import Batch
from bertsmith.checkpoints.checkpoint import CheckpointStore, TrainingState
from bertsmith.engine.device import Device
from bertsmith.engine.memory import keep_freed_memory
from bertsmith.foundation.errors import BertsmithError, Stopped
from bertsmith.objectives.report import Objective
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.training.config import LoopConfig
from bertsmith.training.events import (
    CheckpointWritten,
    EndedEarly,
    Event,
    Observer,
    Progress,
    RunStarted,
    Sampled,
    StepsDecided,
    Validated,
)
from bertsmith.training.schedule import StepBudget, rate_share, validate_every
from bertsmith.training.step import StepReport, TrainState, restore_tensors, state_tensors, train_step
from bertsmith.training.stopping import StopRequest

_MOST_SKIPPED_UPDATES = 20


def _loss(metrics: dict[str, float]) -> tuple[float, ...]:
    loss = metrics["loss"]
    return (loss if math.isfinite(loss) else math.inf,)


@dataclass
class Bookkeeping:
    """What the loop itself must remember over a resume."""

    budget: StepBudget
    elapsed_seconds: float = 0.0
    """Time that training has taken, over all sessions."""
    interval: dict[str, tuple[float, int]] = field(default_factory=dict)
    """Sum and count of each loss term since the last progress event."""
    validations: dict[int, tuple[float, ...]] = field(default_factory=dict)
    """By step, how bad a validation was: what counts first, then what decides among equals. Lower is better."""
    skipped_updates: int = 0
    """Steps in a row whose gradient was not finite."""

    def to_json(self) -> dict[str, Any]:
        """Plain values for the training state."""
        return {
            "budget": self.budget.to_json(),
            "elapsed_seconds": self.elapsed_seconds,
            "interval": {name: list(value) for name, value in self.interval.items()},
            "validations": {str(step): list(badness) for step, badness in self.validations.items()},
            "skipped_updates": self.skipped_updates,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Bookkeeping":
        """As it was when the checkpoint was written."""
        return cls(
            StepBudget.from_json(values["budget"]),
            values["elapsed_seconds"],
            {name: (total, count) for name, (total, count) in values["interval"].items()},
            {int(step): tuple(badness) for step, badness in values["validations"].items()},
            values["skipped_updates"],
        )

    @property
    def best_step(self) -> int | None:
        """Step of the best validation so far, the first one among equals."""
        return min(self.validations, key=lambda step: self.validations[step]) if self.validations else None

    @property
    def validations_since_best(self) -> int:
        """How many came after the best one."""
        return sum(step > self.best_step for step in self.validations) if self.best_step is not None else 0


@dataclass(frozen=True, kw_only=True)
class TrainingLoop:
    """Everything that a run is made of, put together by a recipe."""

    state: TrainState
    books: Bookkeeping
    objective: Objective
    fetch: Callable[[int, int], Sequence[Batch]]
    """From a step and the last step to that step's micro-batches; the last one bounds what is made ahead."""
    batches_per_epoch: int
    config: LoopConfig
    device: Device
    tokenizer: Tokenizer
    checkpoints: CheckpointStore
    validate: Callable[[], dict[str, float]]
    sample: Callable[[], Sequence[str]] | None
    """Completions by the model as it is, as lines to show; None where there is nothing to sample."""
    observers: Sequence[Observer]
    stop: StopRequest
    badness: Callable[[dict[str, float]], tuple[float, ...]] = _loss
    """How bad the scores of a validation are, what counts first before what decides among equals; the least bad one is
    the best."""
    patience: int | None = None
    """Validations in a row without a better one after which training ends; None: only at the last step."""

    def run(self) -> dict[str, float]:
        """Train to the end, and leave the model with the mean of its weights where one is kept.

        Returns:
            the metrics of the last validation.

        Raises:
            Stopped: if a stop was asked for; a checkpoint stands at the step reached.
            BertsmithError: if gradients stay without a finite value.
        """
        if self.device.kind == "cpu":
            keep_freed_memory()
        state, budget = self.state, self.books.budget
        resumed = state.step > 0
        self._tell(RunStarted(state.step, budget.total_steps, resumed, self.device.precision, self.device.name))
        clock = _Clock(self.books.elapsed_seconds)
        metrics: dict[str, float] = {}
        interval_start = (state.tokens, clock.elapsed_seconds)
        checkpoint_due = clock.elapsed_seconds + 60 * self.config.checkpoint_every_minutes
        while state.step < budget.total_steps and not self._gets_no_better:
            self._step(clock)
            if state.step % self.config.log_every_steps == 0 or state.step == budget.total_steps:
                self._tell_progress(interval_start, clock.elapsed_seconds)
                interval_start = (state.tokens, clock.elapsed_seconds)
            if state.step % self._validate_every_steps == 0 or state.step == budget.total_steps:
                metrics = self._validate(clock)
                checkpoint_due = clock.elapsed_seconds
            if self.stop.requested or clock.elapsed_seconds >= checkpoint_due:
                self.books.elapsed_seconds = clock.elapsed_seconds
                self._write_checkpoint()
                checkpoint_due = clock.elapsed_seconds + 60 * self.config.checkpoint_every_minutes
            if self._gets_no_better and state.step < budget.total_steps:
                self._tell(EndedEarly(state.step, self.books.best_step or 0))
                break
            if self.stop.requested and state.step < budget.total_steps:
                raise Stopped(
                    f"Stopped at step {state.step} of {budget.total_steps}. The same command goes on from here."
                )
        self.books.elapsed_seconds = clock.elapsed_seconds
        if state.average is not None:
            state.average.settle()
        return metrics or self.validate()

    @property
    def _validate_every_steps(self) -> int:
        return validate_every(self.config.validate_every_share, self.books.budget.total_steps)

    @property
    def _gets_no_better(self) -> bool:
        return self.patience is not None and self.books.validations_since_best >= self.patience

    def _step(self, clock: "_Clock") -> None:
        state, books = self.state, self.books
        total_steps = books.budget.total_steps
        optimizer = self.config.optimizer
        report = train_step(
            state,
            self.fetch(state.step, total_steps - 1),
            self.objective,
            device=self.device,
            learning_rate=optimizer.learning_rate * rate_share(self.config.schedule, state.step, total_steps),
            clip_norm=optimizer.clip_norm,
            seed=self.config.seed,
        )
        if state.average is not None:
            state.average.update(state.step, total_steps)
        self._note(report)
        if books.budget.review(state.step, clock.elapsed_seconds):
            self._tell(StepsDecided(state.step, books.budget.total_steps))

    def _note(self, report: StepReport) -> None:
        books = self.books
        diverged = bool(report.parts) and not report.updated
        for part in report.parts if not diverged else ():
            for term, total in part.totals.items():
                before, count = books.interval.get(term, (0.0, 0))
                books.interval[term] = (before + float(total), count + part.counts[term])
        books.skipped_updates = books.skipped_updates + 1 if diverged else 0
        if books.skipped_updates > _MOST_SKIPPED_UPDATES:
            raise BertsmithError(
                "Gradients must be finite. "
                f"Received: {books.skipped_updates} steps in a row whose gradients were not, "
                f"up to step {self.state.step}. "
                "Begin anew with a lower rate: --restart --set training.optimizer.learning_rate=…"
            )

    def _tell_progress(self, interval_start: tuple[int, float], elapsed_seconds: float) -> None:
        state, books = self.state, self.books
        losses = {term: total / count if count else 0.0 for term, (total, count) in books.interval.items()}
        books.interval = {}
        if not losses:
            return  # No step since the last event had a loss that could be told.
        tokens_before, seconds_before = interval_start
        total_steps = books.budget.total_steps
        rate = self.config.optimizer.learning_rate
        self._tell(
            Progress(
                step=state.step,
                total_steps=total_steps,
                epoch=state.step / self.batches_per_epoch,
                tokens=state.tokens,
                loss=math.fsum(losses.values()),
                losses=losses,
                learning_rate=rate * rate_share(self.config.schedule, state.step - 1, total_steps),
                tokens_per_second=(state.tokens - tokens_before) / max(elapsed_seconds - seconds_before, 1e-9),
                seconds_left=elapsed_seconds / state.step * (total_steps - state.step),
            )
        )

    def _validate(self, clock: "_Clock") -> dict[str, float]:
        began_at = clock.elapsed_seconds
        average = self.state.average
        with contextlib.nullcontext() if average is None else average.in_place():
            metrics = self.validate()
            samples = None if self.sample is None else tuple(self.sample())
        self.books.validations[self.state.step] = self.badness(metrics)
        self._tell(Validated(self.state.step, metrics))
        if samples is not None:
            self._tell(Sampled(self.state.step, samples))
        self.books.budget.validated(clock.elapsed_seconds - began_at)
        return metrics

    def _write_checkpoint(self) -> None:
        state = self.state
        values = {"tokens": state.tokens, **self.books.to_json()}
        written = self.checkpoints.write(
            state.model,
            self.tokenizer,
            TrainingState(state.step, values, state_tensors(state)),
            best_step=self.books.best_step,
        )
        self._tell(CheckpointWritten(state.step, str(written.folder)))

    def _tell(self, event: Event) -> None:
        for observer in self.observers:
            observer(event)


def restored(state: TrainState, saved: TrainingState) -> Bookkeeping:
    """Set a state to what a checkpoint says, its weights excepted, and give back the loop's books."""
    restore_tensors(state, saved.tensors)
    state.step = saved.step
    state.tokens = saved.values["tokens"]
    return Bookkeeping.from_json(saved.values)


class _Clock:
    """Seconds of training over all sessions of a run."""

    def __init__(self, elapsed_before: float) -> None:
        self._started_at = time.monotonic() - elapsed_before

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self._started_at
