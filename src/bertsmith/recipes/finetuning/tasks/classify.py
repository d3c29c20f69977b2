"""One label of several for a text or a pair of texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bertsmith.examples.classification import balanced_weights, label_counts, label_ids, labels_of
from bertsmith.examples.data_look import label_notes
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_examples import LongTexts, TaskExamples, text_examples
from bertsmith.examples.task_tables import TaskTable
from bertsmith.examples.windows import means_by_row
from bertsmith.inference.classify import ClassifyPredictor
from bertsmith.inference.engine import Engine
from bertsmith.model.config import HeadsConfig
from bertsmith.model.heads import Model
from bertsmith.objectives.calibration import calibration
from bertsmith.objectives.classification import (
    Classification,
    class_details,
    classification_scores,
)
from bertsmith.objectives.softmax import softmax
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.task import MOST_ERRORS, Better, TaskRows
from bertsmith.recipes.finetuning.tasks.task_rows import has_pairs, table_rows
from bertsmith.recipes.finetuning.tasks.worst_errors import text_error, worst_of
from bertsmith.tokenization.tokenizer import Tokenizer


class Classify:
    """See the module."""

    name = "classify"

    def metrics(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Better]:
        """Accuracy first."""
        return {
            "accuracy": "higher",
            "macro_f1": "higher",
            "matthews": "higher",
            "loss": "lower",
            "calibration_error": "lower",
        }

    def read(self, path: Path, data: TableConfig, *, like: TaskRows | None, options: OptionNames) -> TaskRows:
        """Read a table of texts with labels."""
        return table_rows(path, data, like=like, options=options)

    def labels(self, rows: TaskRows) -> tuple[str, ...]:
        """Every label, ordered by name."""
        return labels_of(_table(rows))

    def check(self, rows: TaskRows, labels: Sequence[str]) -> None:
        """Refuse unknown labels."""
        label_ids(_table(rows), labels)

    def strata(self, rows: TaskRows, labels: Sequence[str]) -> Int[np.ndarray, " rows"]:
        """The labels."""
        return label_ids(_table(rows), labels)

    def facts(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Any]:
        """Rows of each label."""
        return {"label_counts": label_counts(label_ids(_table(rows), labels), labels)}

    def notes(self, rows: TaskRows, labels: Sequence[str]) -> list[str]:
        """Rare and uneven labels."""
        return label_notes(label_counts(label_ids(_table(rows), labels), labels))

    def heads(self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig) -> dict[str, Any]:
        """A classifier of the labels."""
        return {"labels": tuple(labels), "windows": config.long_texts == "windows", "pairs": has_pairs(rows)}

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
        """Each text as one sequence, or as its windows, all of which have the text's label."""
        texts = [row.texts for row in rows.items]
        ids = label_ids(_table(rows), labels)
        return text_examples(texts, ids, tokenizer, max_length=max_length, long_texts=long_texts)

    def objective(self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig) -> Classification:
        """Cross-entropy, with balanced weights where they are asked for."""
        if config.class_weights == "none":
            return Classification()
        return Classification(balanced_weights(label_ids(_table(rows), labels), len(labels)))

    def evaluation(
        self,
        outputs: Float[np.ndarray, "sequences labels"],
        examples: TaskExamples,
        rows: TaskRows,
        heads: HeadsConfig,
        *,
        most_errors: int | None = MOST_ERRORS,
    ) -> dict[str, Any]:
        """Scores, each class, what was taken for what, and the wrong rows whose wrong label is the most certain."""
        probabilities = softmax(means_by_row(outputs, examples.rows))
        truth = label_ids(_table(rows), heads.labels)
        return {
            "rows": len(rows.items),
            **classification_scores(probabilities, truth),
            **calibration(probabilities, truth),
            **class_details(probabilities.argmax(1), truth, heads.labels),
            "labels": list(heads.labels),
            "worst_errors": _worst_errors(probabilities, truth, rows, heads.labels, most_errors),
        }

    def settle(
        self, outputs: Float[np.ndarray, "sequences labels"], examples: TaskExamples, rows: TaskRows, model: Model
    ) -> HeadsConfig:
        """Nothing is left to decide."""
        return model.config.heads

    def predictor(self, engine: Engine, tokenizer: Tokenizer) -> ClassifyPredictor:
        """The predictor of a trained model."""
        return ClassifyPredictor(engine, tokenizer)


def _table(rows: TaskRows) -> TaskTable:
    return TaskTable(rows.path, rows.layout, rows.items)


def _worst_errors(
    probabilities: Float[np.ndarray, "rows labels"],
    truth: Int[np.ndarray, " rows"],
    rows: TaskRows,
    labels: Sequence[str],
    most: int | None,
) -> list[dict[str, Any]]:
    predicted: np.ndarray = probabilities.argmax(1)
    wrong = np.flatnonzero(predicted != truth)
    certainty = probabilities[wrong, predicted[wrong]]
    return [
        text_error(
            rows.items[number],
            labels[int(truth[number])],
            labels[int(predicted[number])],
            float(probabilities[number, predicted[number]]),
        )
        for number in worst_of(wrong, certainty, most)
    ]
