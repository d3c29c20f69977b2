"""Validation while a fine-tuning goes on, and what it decides: which model is kept, and what the task settles."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bertsmith.checkpoints.checkpoint import CheckpointStore
from bertsmith.engine.device import Device
from bertsmith.foundation.errors import BertsmithError
from bertsmith.inference.task_outputs import HEADS, batch_outputs
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
        self._last_outputs: np.ndarray | None = None

    def __call__(self) -> dict[str, float]:
        """The scores of the model as it is; none of them is a number where its outputs are no finite numbers."""
        self._last_outputs = self._outputs()
        if not _is_finite(self._last_outputs):
            return dict.fromkeys(self._given.metrics, math.nan)
        return self._given.scores(self._evaluation(self._last_outputs, self._model.config.heads))

    def settle(self, *, has_other_weights: bool) -> dict[str, Any]:
        """Let the task decide what it decides on validation, and evaluate the model as it then is.

        Args:
            has_other_weights: whether the model's weights are others than at the last validation, whose outputs are
                the model's own otherwise.

        Raises:
            BertsmithError: if what the model gives are no finite numbers.
        """
        model, given = self._model, self._given
        outputs = self._outputs() if has_other_weights or self._last_outputs is None else self._last_outputs
        if not _is_finite(outputs):
            raise BertsmithError(
                "A fine-tuned model must give finite numbers. "
                "Received: outputs on the validation rows that are not. "
                "Begin anew with a lower rate: --restart --learning-rate …"
            )
        heads = given.task.settle(outputs, given.examples.validation, given.data.validation, model)
        is_rewritten = heads.value_scale != model.config.heads.value_scale
        model.config = model.config.model_copy(update={"heads": heads})
        if is_rewritten:  # Thresholds judge outputs, and leave them as they are; a scale goes into the weights.
            outputs = self._outputs()
        return self._evaluation(outputs, heads)

    def _outputs(self) -> np.ndarray:
        return batch_outputs(
            self._model, self._batches.validation.in_order(), self._device, HEADS[self._given.task.name]
        )

    def _evaluation(self, outputs: np.ndarray, heads: HeadsConfig) -> dict[str, Any]:
        given = self._given
        return given.task.evaluation(outputs, given.examples.validation, given.data.validation, heads)


def _is_finite(outputs: np.ndarray) -> bool:
    return bool(np.isfinite(outputs).all())


def closing_validations(config: FinetuneConfig, heads: HeadsConfig) -> int:
    """How many validations may follow the one after the last step.

    That is one where the weights of an earlier one may be kept, and one where the task writes a scale into weights.
    """
    return (config.training.keep == "best") + (heads.value_scale is not None)


def badness(metrics: dict[str, float], ways: dict[str, Better]) -> tuple[float, ...]:
    """Lower for a better validation, the loss deciding among equals.

    The worst are those whose score is absent or, like the loss, no finite number.
    """
    name, better = next(iter(ways.items()))
    score, loss = metrics.get(name, math.nan), metrics.get("loss")
    if not math.isfinite(score) or (loss is not None and not math.isfinite(loss)):
        return (math.inf, math.inf)
    return (score if better == "lower" else -score, math.inf if loss is None else loss)


def _is_worst(badness: tuple[float, ...]) -> bool:
    return not math.isfinite(badness[0])


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
    if config.training.keep == "last" or best is None or best == state.step or _is_worst(books.validations[best]):
        return state.step
    checkpoint = checkpoints.at(best)
    if checkpoint is None:
        notify(f"the best validation was at step {best}, whose checkpoint is gone: the last model is kept")
        return state.step
    read, saved = checkpoint.read()
    state.model.load_state_dict(read.model.state_dict())
    if state.average is not None:  # What was validated.
        state.average.restore(saved.tensors)
        state.average.settle()
    notify(f"the model of step {best} is kept, whose {metric.replace('_', ' ')} was the best")
    return best
