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
"""Time that writing the model and the report takes, on top of the last validation."""


def step_budget(
    length: LengthConfig,
    *,
    default_epochs: float,
    batches_per_epoch: int,
    measure: tuple[Model, Objective, Callable[[int], Sequence[Batch]], Device],
    validation_share: float,
    started_at: float,
) -> StepBudget:
    """Decide the number of steps.

    Args:
        length: what was asked for.
        default_epochs: passes over the data where nothing was.
        batches_per_epoch: steps of one pass.
        measure: the model, its objective, the batches by step and the device, to measure a step's time.
        validation_share: tokens of a validation as a multiple of a step's.
        started_at: when the run began, on the monotonic clock.

    Raises:
        InputError: if the time leaves none to train.
    """
    if length.steps is not None:
        return StepBudget(length.steps)
    if length.minutes is None:
        return StepBudget(max(1, round((length.epochs or default_epochs) * batches_per_epoch)))
    model, objective, batches, device = measure
    step_seconds = seconds_per_step(model, objective, batches(0), device)
    # A validation runs forward alone, a third of a step's work for each token.
    validation_seconds = step_seconds / 3 * validation_share
    seconds = 60 * length.minutes - (time.monotonic() - started_at)
    reserved = validation_seconds + _FINISHING_SECONDS
    if seconds - reserved < step_seconds:
        raise InputError(
            "--minutes must leave time to train",
            f"{length.minutes:g} minutes, of which {max(seconds, 0):.0f} s are left after preparing the text",
            "Give more minutes, or for pre-training prepare the corpus beforehand with bertsmith prepare.",
        )
    return StepBudget(max(1, int((seconds - reserved) / step_seconds)), seconds=seconds, reserved_seconds=reserved)
