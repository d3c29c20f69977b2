"""A model that torch runs, over its own weights."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float

from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluating
from bertsmith.foundation.errors import InputError
from bertsmith.inference.engine import TASKS_OF_TOKENS, Engine, Job, refuse_unfit
from bertsmith.inference.running import TokenWindow, token_budget_batches
from bertsmith.inference.task_outputs import HEADS, window_outputs
from bertsmith.model.config import ModelConfig, TaskName
from bertsmith.model.heads import Model


class TorchEngine(Engine):
    """Runs a model with torch.

    A model that is in training is asked without dropout, and is in training afterwards.

    Args:
        model: any model, on the device.
        device: where and how it runs.
    """

    def __init__(self, model: Model, device: Device) -> None:
        self._model = model
        self._device = device

    @property
    def config(self) -> ModelConfig:
        """What the model is."""
        return self._model.config

    @property
    def precision(self) -> str:
        """Of its matrix products."""
        return self._model.precision or self._device.precision

    def refuse_other(self, job: Job) -> None:
        """Raise an `InputError` unless the model can do a job. Every encoder embeds."""
        if job == "fill":
            if self._model.masked_language_model is None:
                raise InputError(
                    "Filling masks needs a masked language model",
                    "a model without a head over the vocabulary",
                    "Use the folder of a pre-trained model.",
                )
        elif job != "embed":
            refuse_unfit(job, self.config.heads.task)

    def outputs(self, task: TaskName, windows: Sequence[TokenWindow]) -> list[Float[np.ndarray, "..."]]:
        """What the head of a task says of each window."""
        return window_outputs(self._model, windows, self._device, HEADS[task], per_token=task in TASKS_OF_TOKENS)

    @torch.inference_mode()
    def vocabulary(
        self, windows: Sequence[TokenWindow], positions: Sequence[Sequence[int]]
    ) -> list[Float[np.ndarray, "_ vocabulary"]]:
        """Scores over the vocabulary at some positions of each window; no others are made."""
        head = self._model.masked_language_model
        if head is None:
            raise ValueError("The model has no head over the vocabulary. Received: a call of vocabulary().")
        found: dict[int, np.ndarray] = {}
        with evaluating(self._model):
            for members, packed in token_budget_batches(windows):
                starts = packed.sequence_starts[:-1].tolist()
                wanted = [
                    start + place for start, member in zip(starts, members, strict=True) for place in positions[member]
                ]
                with self._device.matrix_precision():
                    hidden = self._model.head_input(packed.to(self._device.name))
                    logits = head(hidden[torch.tensor(wanted, dtype=torch.long, device=hidden.device)])
                splits = np.cumsum([len(positions[member]) for member in members])[:-1]
                found |= dict(zip(members, np.split(logits.float().cpu().numpy(), splits), strict=True))
        return [found[number] for number in range(len(windows))]
