"""Validation while a fine-tuning goes on, and what it decides: which model is kept, and what the task settles."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bertsmith.checkpoints.checkpoint import CheckpointStore
from bertsmith.engine.device import Device
from bertsmith.inference.task_outputs import batch_outputs
from bertsmith.model.config import HeadsConfig
from bertsmith.model.heads import Model
from bertsmith.recipes.finetuning.data import Loaded
from bertsmith.recipes.finetuning.given import Given
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.task import Better
from bertsmith.training.loop import Bookkeeping
from bertsmith.training.step import TrainState


class Validation:
    """Scores on the validation rows, and what they decide at the end."""

    def __init__(self, model: Model, batches: Loaded, given: Given, device: Device) -> None:
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


def badness(metrics: dict[str, float], ways: dict[str, Better]) -> tuple[float, ...]:
    """Lower for a better validation, the loss deciding among equals; a score that is no number is the worst."""
    name, better = next(iter(ways.items()))
    score = metrics.get(name, math.nan)
    if math.isnan(score):
        return (math.inf, math.inf)
    loss = metrics.get("loss", math.inf)
    return (score if better == "lower" else -score, math.inf if math.isnan(loss) else loss)


def keep_best(
    config: FinetuneConfig,
    state: TrainState,
    books: Bookkeeping,
    checkpoints: CheckpointStore,
    notify: Callable[[str], None],
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
