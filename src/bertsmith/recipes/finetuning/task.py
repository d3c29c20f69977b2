"""What a downstream task is to the recipe that trains it: its rows, its labels, its head, its scores."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_examples import LongTexts, TaskExamples
from bertsmith.inference.engine import Engine
from bertsmith.inference.predictor import Predictor
from bertsmith.model.config import HeadsConfig
from bertsmith.model.heads import Model
from bertsmith.objectives.report import Objective
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.tokenization.tokenizer import Tokenizer

Better = Literal["higher", "lower"]
MOST_ERRORS = 20
"""Errors that an evaluation tells where no number is asked for."""


@dataclass(frozen=True)
class TaskRows:
    """The rows of a file."""

    path: Path
    items: tuple[Any, ...]
    """Of the task's own type, each a `KeyedRow` of the look at the data."""
    columns: str
    """What was read from where, to be said."""
    notes: tuple[str, ...] = ()
    """What stands out in the rows as they were read."""
    layout: Any = None
    """What was read from where, as the task's own type has it; `like` of `Task.read` carries it on."""
    held_out: bool = False
    """Whether the rows are there to judge by, and not to learn from."""

    def some(self, numbers: Int[np.ndarray, " rows"]) -> "TaskRows":
        """Some of the rows."""
        return replace(self, items=tuple(self.items[number] for number in numbers))


@runtime_checkable
class Grouped(Protocol):
    """What a task is besides, if some of its rows are about the same."""

    def groups(self, rows: TaskRows) -> Sequence[Hashable]:
        """The text that each row is about: rows about the same are held out together, or none of them is."""
        ...


@runtime_checkable
class ReadForLabels(Protocol):
    """What a task is besides, if the labels of a model tell in which of several ways a file is meant."""

    def read_for(self, path: Path, data: TableConfig, labels: Sequence[str], *, options: OptionNames) -> TaskRows:
        """Read a file as `Task.read` does, for a model with these labels."""
        ...


@runtime_checkable
class Task(Protocol):
    """A downstream task. Labels are ordered; there are none where the task has none."""

    @property
    def name(self) -> str:
        """As it is typed."""
        ...

    def metrics(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Better]:
        """The scores of an evaluation, in the order in which they are shown, and which way is better. The first one
        decides which validation is the best."""
        ...

    def read(self, path: Path, data: TableConfig, *, like: TaskRows | None, options: OptionNames) -> TaskRows:
        """Read a file.

        Args:
            path: the file.
            data: how it is read.
            like: rows that were read before, whose columns are meant where none are named.
            options: what errors call the settings.

        Raises:
            InputError: if it cannot be read as rows of this task.
        """
        ...

    def labels(self, rows: TaskRows) -> tuple[str, ...]:
        """The labels that a model can learn from rows.

        Raises:
            InputError: if nothing can be learned from them.
        """
        ...

    def check(self, rows: TaskRows, labels: Sequence[str]) -> None:
        """Raise an `InputError` for a row that has a label which is none of these."""
        ...

    def strata(self, rows: TaskRows, labels: Sequence[str]) -> Int[np.ndarray, " rows"]:
        """A number for each row; rows are held out so that each number has its share. Zeros where all are alike."""
        ...

    def facts(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Any]:
        """Counts for the run's record."""
        ...

    def notes(self, rows: TaskRows, labels: Sequence[str]) -> list[str]:
        """What a person should know of training rows, a line each."""
        ...

    def heads(self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig) -> dict[str, Any]:
        """What `HeadsConfig` says of this task when its training begins, from training rows."""
        ...

    def examples(
        self,
        rows: TaskRows,
        labels: Sequence[str],
        tokenizer: Tokenizer,
        *,
        max_length: int,
        long_texts: LongTexts,
        heads: HeadsConfig,
    ) -> TaskExamples:
        """Rows as token sequences with their targets.

        Args:
            rows: the rows.
            labels: in the order of the head.
            tokenizer: the model's.
            max_length: most tokens of a sequence.
            long_texts: what is seen of a longer text, where the task leaves a choice.
            heads: what the model's config says of the task.
        """
        ...

    def objective(self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig) -> Objective:
        """What is minimised over training rows."""
        ...

    def evaluation(
        self,
        outputs: Float[np.ndarray, "units outputs"],
        examples: TaskExamples,
        rows: TaskRows,
        heads: HeadsConfig,
        *,
        most_errors: int | None = MOST_ERRORS,
    ) -> dict[str, Any]:
        """Everything that is found about rows, as plain values.

        Args:
            outputs: of the task's head, for every sequence or token of the examples in their order.
            examples: of the rows.
            rows: the rows.
            heads: with labels, and what was settled.
            most_errors: of the worst errors; None for every one.

        Returns:
            ``rows``; the scores of `metrics`; where they make sense ``per_class`` (precision, recall, f1 and rows by
            label; ``counted`` says what these rows are where they are none), ``labels`` with ``confusion`` (true by
            predicted), and ``worst_errors``, each with ``place``, ``text``, perhaps ``pair``, ``label``, ``predicted``
            and, where what was predicted has a probability, ``score``.
        """
        ...

    def settle(
        self, outputs: Float[np.ndarray, "units outputs"], examples: TaskExamples, rows: TaskRows, model: Model
    ) -> HeadsConfig:
        """What the last validation decides of the model, which may be changed in place: thresholds, for example."""
        ...

    def predictor(self, engine: Engine, tokenizer: Tokenizer) -> Predictor[Any, Any, Any]:
        """The predictor of a trained model."""
        ...
