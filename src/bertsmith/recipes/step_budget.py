"""How many steps a run has: from epochs, from a number, or from a time and the speed measured here."""

import time
from collections.abc import Callable, Sequence

from bertsmith.batches.batch import Batch
from bertsmith.engine.device import Device
from bertsmith.engine.speed import seconds_per_step
from bertsmith.foundation.errors import InputError
from bertsmith.model.heads import Model
from bertsmith.objectives.report import Objective
from bertsmith.training.config import LengthConfig
from bertsmith.training.schedule import StepBudget

_FINISHING_SECONDS = 2.0
"""Time that writing the model and the report takes, on top of the validations."""
MORE_MINUTES = "Give more minutes, or leave --minutes out for a length that fits the data."
"""What to do where a time is too short for any recipe."""


class TooShort(InputError):
    """A time in which nothing can be trained."""


def refuse_too_short(length: LengthConfig, *, started_at: float) -> None:
    """Refuse a time of which nothing is left, before anything is measured.

    Args:
        length: what was asked for.
        started_at: when the run began, on the monotonic clock.

    Raises:
        TooShort: if the time leaves none to train.
    """
    if length.minutes is not None:
        _seconds_left(length.minutes, started_at, least=_FINISHING_SECONDS, advice=MORE_MINUTES)


def steps_without_clock(length: LengthConfig, *, default_epochs: float, batches_per_epoch: int) -> int:
    """Steps of a run; of one whose length is a time, which the clock decides, those where nothing was asked for.

    Args:
        length: what was asked for.
        default_epochs: passes over the data where nothing was.
        batches_per_epoch: steps of one pass.
    """
    return length.steps or max(1, round((length.epochs or default_epochs) * batches_per_epoch))


def step_budget(
    length: LengthConfig,
    *,
    default_epochs: float,
    batches_per_epoch: int,
    measure: tuple[Model, Objective, Callable[[int], Sequence[Batch]], Device],
    validation_share: float,
    validate_every_share: float,
    closing_validations: int = 0,
    validate: Callable[[], object] | None = None,
    started_at: float,
    advice: str = MORE_MINUTES,
) -> StepBudget:
    """Decide the number of steps.

    Args:
        length: what was asked for.
        default_epochs: passes over the data where nothing was.
        batches_per_epoch: steps of one pass.
        measure: the model, its objective, the batches by step and the device, to measure a step's time.
        validation_share: tokens of a validation as a multiple of a step's, from which its time is guessed.
        validate_every_share: share of the steps after which there is a validation.
        closing_validations: validations that follow the one after the last step.
        validate: a validation, to measure its time where the guess lets it fit; None: the guess will do.
        started_at: when the run began, on the monotonic clock.
        advice: what to do where the time is too short.

    Raises:
        TooShort: if the time leaves none to train.
    """
    if length.minutes is None:
        steps = steps_without_clock(length, default_epochs=default_epochs, batches_per_epoch=batches_per_epoch)
        return StepBudget(steps)
    model, objective, batches, device = measure
    step_seconds = seconds_per_step(model, objective, batches(0), device)
    # A validation runs forward alone, a third of a step's work for each token.
    validation_seconds = step_seconds / 3 * validation_share
    least = step_seconds + _FINISHING_SECONDS
    ends = 1 + closing_validations
    seconds = _seconds_left(length.minutes, started_at, least=least + ends * validation_seconds, advice=advice)
    if validate is not None:
        validation_seconds = _seconds_of(validate)
        seconds = _seconds_left(length.minutes, started_at, least=least + ends * validation_seconds, advice=advice)
    reserved = _FINISHING_SECONDS
    budget = StepBudget(1, seconds, reserved, validate_every_share, closing_validations, validation_seconds)
    budget.begin(step_seconds)
    return budget


def _seconds_of(action: Callable[[], object]) -> float:
    began_at = time.monotonic()
    action()
    return time.monotonic() - began_at


def _seconds_left(minutes: float, started_at: float, *, least: float, advice: str) -> float:
    """What is left of a time; refused if that is less than one step and the end of a run take."""
    left = 60 * minutes - (time.monotonic() - started_at)
    if left < least:
        raise TooShort(
            "--minutes must leave time to train",
            f"{minutes:g} minutes, of which {max(left, 0):.0f} s are left after preparing the data, where one step and "
            f"what ends a run take {least:.0f} s",
            advice,
        )
    return left
