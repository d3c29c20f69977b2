"""What runs a model for the predictors: torch over a model's own weights, or onnxruntime over an exported graph."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float

from bertsmith.foundation.errors import InputError
from bertsmith.inference.running import TokenWindow
from bertsmith.model.config import ModelConfig, TaskName

Job = TaskName | Literal["fill"]
"""What is asked of a model: one of the tasks, or the words behind masks."""
TASKS_OF_TOKENS: frozenset[TaskName] = frozenset({"tag", "answer"})
"""Tasks whose head says something of each token, and not of each sequence."""


class Engine(ABC):
    """Runs a model. Whatever runs it, the same windows give the same numbers, but for rounding.

    No result depends on the windows beside its own, beyond rounding (1e-5 in fp32).
    """

    @property
    @abstractmethod
    def config(self) -> ModelConfig:
        """What the model is."""

    @property
    @abstractmethod
    def precision(self) -> str:
        """Of its matrix products: ``fp32``, ``bf16`` or ``int8``."""

    @abstractmethod
    def refuse_other(self, job: Job) -> None:
        """Raise an `InputError` unless the model can do a job."""

    @abstractmethod
    def outputs(self, task: TaskName, windows: Sequence[TokenWindow]) -> list[Float[np.ndarray, "..."]]:
        """What the head of a task says of each window, in order.

        Args:
            task: one that `refuse_other` lets pass.
            windows: of any length, up to the model's positions.

        Returns:
            for each window in fp32: scores of its labels before softmax or sigmoid, the one number of a regression or a
            choice, or its embedding; in the tasks of tokens a row of scores for each token.
        """

    @abstractmethod
    def vocabulary(
        self, windows: Sequence[TokenWindow], positions: Sequence[Sequence[int]]
    ) -> list[Float[np.ndarray, "_ vocabulary"]]:
        """Scores over the vocabulary, before softmax and in fp32, at some positions of each window."""


def job_of(config: ModelConfig) -> Job:
    """What a model is for: its task; without one, filling masks where it has a head for that, else embedding."""
    heads = config.heads
    return heads.task or ("fill" if heads.masked_language_model else "embed")


def refuse_unfit(task: Job, known: TaskName | None) -> None:
    """Raise an `InputError` where a model's head is that of another task, or of none.

    Args:
        task: what is wanted.
        known: what the model was trained to do.
    """
    if task == known:
        return
    raise InputError(
        f"{task} needs a model that was trained for it",
        "an encoder without a trained head for it" if known is None else f"a model trained to {known}",
        f"Train one: bertsmith finetune {task} TRAIN --model DIR --out DIR."
        if known is None
        else f"Use: bertsmith {known} DIR.",
    )
