"""One label of several for a text or a pair of texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bertsmith.engine.device import Device
from bertsmith.examples.classification import balanced_weights, label_counts, label_ids, labels_of
from bertsmith.examples.data_look import label_notes, table_notes
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_examples import LongTexts, TaskExamples, text_examples
from bertsmith.examples.task_tables import TaskTable, read_task_table
from bertsmith.examples.windows import means_by_row
from bertsmith.inference.classify import ClassifyPredictor
from bertsmith.model.config import HeadsConfig
from bertsmith.model.heads import Model
from bertsmith.objectives.calibration import calibration
from bertsmith.objectives.classification import (
    Classification,
    class_details,
    class_logits,
    class_probabilities,
    classification_scores,
)
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.task import Better, TaskRows
from bertsmith.tokenization.tokenizer import Tokenizer

_MOST_ERRORS = 20


class Classify:
    """See the module."""

    name = "classify"
    head = staticmethod(class_logits)

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
        return {"labels": tuple(labels), "windows": config.long_texts == "windows"}

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
        self, outputs: Float[np.ndarray, "sequences labels"], examples: TaskExamples, rows: TaskRows, heads: HeadsConfig
    ) -> dict[str, Any]:
        """Scores, each class, what was taken for what, and the wrong rows whose wrong label is the most certain."""
        probabilities = class_probabilities(means_by_row(outputs, examples.rows))
        truth = label_ids(_table(rows), heads.labels)
        return {
            "rows": len(rows.items),
            **classification_scores(probabilities, truth),
            **calibration(probabilities, truth),
            **class_details(probabilities.argmax(1), truth, heads.labels),
            "labels": list(heads.labels),
            "worst_errors": _worst_errors(probabilities, truth, rows, heads.labels),
        }

    def settle(
        self, outputs: Float[np.ndarray, "sequences labels"], examples: TaskExamples, rows: TaskRows, model: Model
    ) -> HeadsConfig:
        """Nothing is left to decide."""
        return model.config.heads

    def predictor(self, model: Model, tokenizer: Tokenizer, device: Device) -> ClassifyPredictor:
        """The predictor of a trained model."""
        return ClassifyPredictor(model, tokenizer, device)


def table_rows(path: Path, data: TableConfig, *, like: TaskRows | None, options: OptionNames) -> TaskRows:
    """Rows with a text or a pair and a label; the columns of `like` are meant where it is given."""
    if like is not None:
        columns = like.layout
        data = data.model_copy(update={"text": columns.text, "pair": columns.pair, "label": columns.label})
    table = read_task_table(path, data, options=options)
    return TaskRows(path, table.rows, f"{table.columns}", tuple(table_notes(table)), table.columns)


def _table(rows: TaskRows) -> TaskTable:
    return TaskTable(rows.path, rows.layout, rows.items)


def _worst_errors(
    probabilities: Float[np.ndarray, "rows labels"],
    truth: Int[np.ndarray, " rows"],
    rows: TaskRows,
    labels: Sequence[str],
) -> list[dict[str, Any]]:
    predicted: np.ndarray = probabilities.argmax(1)
    wrong = np.flatnonzero(predicted != truth)
    certainty = probabilities[wrong, predicted[wrong]]
    worst = wrong[np.argsort(-certainty, kind="stable")[:_MOST_ERRORS]]
    errors: list[dict[str, Any]] = []
    for number in worst.tolist():
        row = rows.items[number]
        pair = {} if row.pair is None else {"pair": row.pair}
        errors.append(
            {
                "place": row.place,
                "text": row.text,
                **pair,
                "label": labels[int(truth[number])],
                "predicted": labels[int(predicted[number])],
                "score": float(probabilities[number, predicted[number]]),
            }
        )
    return errors
