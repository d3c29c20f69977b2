"""The right one of several choices for a context."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bertsmith.examples.choice import choice_examples, choice_notes, labels_are_texts, right_choices
from bertsmith.examples.choice_tables import ChoiceTable, read_choice_table
from bertsmith.examples.data_look import skipped_notes
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_examples import LongTexts, TaskExamples
from bertsmith.inference.choose import ChoosePredictor
from bertsmith.inference.engine import Engine
from bertsmith.model.config import HeadsConfig
from bertsmith.model.heads import Model
from bertsmith.objectives.choice import Choice, choice_metrics, group_probabilities
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.task import MOST_ERRORS, Better, TaskRows
from bertsmith.recipes.finetuning.tasks.class_weights import refuse_class_weights
from bertsmith.recipes.finetuning.tasks.worst_errors import worst_of
from bertsmith.tokenization.tokenizer import Tokenizer


class Choose:
    """See the module."""

    name = "choose"

    def metrics(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Better]:
        """Accuracy first."""
        return {"accuracy": "higher", "loss": "lower"}

    def read(self, path: Path, data: TableConfig, *, like: TaskRows | None, options: OptionNames) -> TaskRows:
        """Read a table of contexts with choices; the label of each row becomes the place of the right one."""
        table = read_choice_table(path, data, options=options, like=None if like is None else like.layout)
        # Whether labels are places or texts is told by all of them together, so that some alone could tell otherwise:
        # those of a part of the rows, or of another file.
        places = right_choices(table).tolist()
        columns = replace(table.columns, by_text=labels_are_texts(table))
        rows = tuple(replace(row, label=place) for row, place in zip(table.rows, places, strict=True))
        return TaskRows(path, rows, f"{table.columns}", tuple(skipped_notes(table.skipped)), columns)

    def labels(self, rows: TaskRows) -> tuple[str, ...]:
        """None: choices have no names."""
        return ()

    def check(self, rows: TaskRows, labels: Sequence[str]) -> None:
        """Nothing is left to check: what is no choice of its row was refused when it was read."""

    def strata(self, rows: TaskRows, labels: Sequence[str]) -> Int[np.ndarray, " rows"]:
        """All rows are alike."""
        return np.zeros(len(rows.items), np.int64)

    def facts(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Any]:
        """How many choices there are."""
        return {"train_choices": sum(len(row.item.choices) for row in rows.items)}

    def notes(self, rows: TaskRows, labels: Sequence[str]) -> list[str]:
        """How good guessing is, and what is odd about the choices."""
        return choice_notes(_table(rows))

    def heads(self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig) -> dict[str, Any]:
        """A head for one number, the score of a choice.

        Raises:
            InputError: for class weights.
        """
        refuse_class_weights(config, "choices have no classes")
        return {}

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
        """Each choice as one sequence, those of a row as a group."""
        items = [row.item for row in rows.items]
        return choice_examples(items, _right(rows), tokenizer, max_length=max_length, long_texts=long_texts)

    def objective(self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig) -> Choice:
        """Cross-entropy over the choices of each row."""
        return Choice()

    def evaluation(
        self,
        outputs: Float[np.ndarray, "sequences one"],
        examples: TaskExamples,
        rows: TaskRows,
        heads: HeadsConfig,
        *,
        most_errors: int | None = MOST_ERRORS,
    ) -> dict[str, Any]:
        """Scores, and the wrong rows whose wrong choice is the most certain."""
        if examples.group_starts is None:
            raise ValueError("The choices of a row must be a group. Received: none. Make them with choice_examples.")
        probabilities, right = group_probabilities(outputs[:, 0], examples.group_starts), _right(rows)
        return {
            "rows": len(rows.items),
            **choice_metrics(probabilities, right),
            "worst_errors": _worst_errors(probabilities, right, rows, most_errors),
        }

    def settle(
        self, outputs: Float[np.ndarray, "sequences one"], examples: TaskExamples, rows: TaskRows, model: Model
    ) -> HeadsConfig:
        """Nothing is left to decide."""
        return model.config.heads

    def predictor(self, engine: Engine, tokenizer: Tokenizer) -> ChoosePredictor:
        """The predictor of a trained model."""
        return ChoosePredictor(engine, tokenizer)


def _table(rows: TaskRows) -> ChoiceTable:
    return ChoiceTable(rows.path, rows.layout, rows.items)


def _right(rows: TaskRows) -> Int[np.ndarray, " rows"]:
    return np.array([row.label for row in rows.items], np.int64)


def _worst_errors(
    probabilities: Sequence[Float[np.ndarray, "..."]],
    right: Int[np.ndarray, " rows"],
    rows: TaskRows,
    most: int | None,
) -> list[dict[str, Any]]:
    chosen = np.array([part.argmax() for part in probabilities], np.int64)
    certainty = np.array([part.max() for part in probabilities], np.float64)
    wrong = np.flatnonzero(chosen != right)
    errors: list[dict[str, Any]] = []
    for number in worst_of(wrong, certainty[wrong], most):
        row = rows.items[number]
        start = {"pair": row.item.start} if row.item.start else {}
        errors.append(
            {
                "place": row.place,
                "text": row.item.text,
                **start,
                "label": row.item.choices[right[number]],
                "predicted": row.item.choices[chosen[number]],
                "score": float(certainty[number]),
            }
        )
    return errors
