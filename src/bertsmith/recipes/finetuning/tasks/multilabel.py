"""Any number of labels for a text or a pair of texts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from bertsmith.examples.data_look import label_notes, table_notes
from bertsmith.examples.multilabel import (
    MultilabelTable,
    balanced_label_weights,
    label_names,
    label_set_notes,
    label_strata,
    label_targets,
    read_multilabel_table,
    refuse_other_labels,
    set_counts,
)
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_examples import LongTexts, TaskExamples, text_examples
from bertsmith.examples.windows import means_by_row
from bertsmith.foundation.errors import InputError
from bertsmith.inference.engine import Engine
from bertsmith.inference.multilabel import MultilabelPredictor
from bertsmith.model.config import HeadsConfig
from bertsmith.model.heads import Model
from bertsmith.objectives.multilabel import (
    Multilabelling,
    given_labels,
    label_details,
    label_probabilities,
    multilabel_scores,
    tuned_thresholds,
)
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.task import MOST_ERRORS, Better, TaskRows
from bertsmith.recipes.finetuning.tasks.task_rows import has_pairs
from bertsmith.recipes.finetuning.tasks.worst_errors import text_error, worst_of
from bertsmith.text.shown import listed_names
from bertsmith.tokenization.tokenizer import Tokenizer

_NO_LABEL = "no label"
_TUNED = "tuned_"


class Multilabel:
    """See the module. Validation tunes a threshold for each label."""

    name = "multilabel"

    def metrics(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Better]:
        """The loss first: while no score reaches a threshold, F1 tells nothing apart."""
        ways: dict[str, Better] = {"loss": "lower"}
        for prefix in (_TUNED, ""):
            for name in ("micro_f1", "macro_f1", "subset_accuracy"):
                ways[f"{prefix}{name}"] = "higher"
            ways[f"{prefix}hamming_loss"] = "lower"
        ways["label_ranking_average_precision"] = "higher"
        ways["calibration_error"] = "lower"
        return ways

    def read(self, path: Path, data: TableConfig, *, like: TaskRows | None, options: OptionNames) -> TaskRows:
        """Read a table of texts with labels."""
        before = None if like is None else _table(like)
        table = read_multilabel_table(path, data, options=options, like=before)
        rows = _rows(table)
        if before is not None and before.layout != table.layout:
            rows = replace(rows, notes=(f"{table.layout}", *rows.notes))
        return rows

    def read_for(self, path: Path, data: TableConfig, labels: Sequence[str], *, options: OptionNames) -> TaskRows:
        """Read a table of texts with the labels of a model, which tell what parts names in one text."""
        return _rows(read_multilabel_table(path, data, options=options, known=labels))

    def labels(self, rows: TaskRows) -> tuple[str, ...]:
        """Every label, ordered by name, or as its columns stand."""
        return label_names(_table(rows))

    def check(self, rows: TaskRows, labels: Sequence[str]) -> None:
        """Refuse unknown labels, and columns or lists of 0 and 1 that are of others."""
        refuse_other_labels(_table(rows), labels)
        _targets(rows, labels)

    def strata(self, rows: TaskRows, labels: Sequence[str]) -> Int[np.ndarray, " rows"]:
        """The rarest label of each row."""
        return label_strata(_targets(rows, labels))

    def facts(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Any]:
        """Rows of each label."""
        return {"label_counts": set_counts(_targets(rows, labels), labels)}

    def notes(self, rows: TaskRows, labels: Sequence[str]) -> list[str]:
        """Rows without a label, and labels that are rare or uneven."""
        targets = _targets(rows, labels)
        return label_set_notes(targets, labels) + label_notes(set_counts(targets, labels))

    def heads(self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig) -> dict[str, Any]:
        """A head with an output for each label.

        Raises:
            InputError: for a metric that is known at the end of a training alone.
        """
        if (config.training.metric or "").startswith(_TUNED):
            raise InputError(
                "training.metric must be a score of every validation, and thresholds are tuned at the end alone",
                config.training.metric,
                "Use loss, micro_f1, macro_f1 or label_ranking_average_precision.",
            )
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
        """Each text as one sequence, or as its windows, all of which have the text's labels."""
        texts = [row.texts for row in rows.items]
        targets = _targets(rows, labels)
        return text_examples(texts, targets, tokenizer, max_length=max_length, long_texts=long_texts)

    def objective(self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig) -> Multilabelling:
        """Binary cross-entropy, with balanced weights where they are asked for."""
        if config.class_weights == "none":
            return Multilabelling()
        return Multilabelling(balanced_label_weights(_targets(rows, labels)))

    def evaluation(
        self,
        outputs: Float[np.ndarray, "sequences labels"],
        examples: TaskExamples,
        rows: TaskRows,
        heads: HeadsConfig,
        *,
        most_errors: int | None = MOST_ERRORS,
    ) -> dict[str, Any]:
        """Scores, each label at its threshold, and the rows of whose wrong labels the model is the most certain.

        Thresholds are 0.5 until they are settled at the end of a training; scores at them come to the others then.
        """
        probabilities = label_probabilities(means_by_row(outputs, examples.rows))
        truth = _targets(rows, heads.labels) > 0
        given = given_labels(probabilities, heads.thresholds)
        settled = dict(zip(heads.labels, heads.thresholds, strict=True)) if heads.thresholds else None
        return {
            "rows": len(rows.items),
            **multilabel_scores(probabilities, truth, heads.thresholds),
            "per_class": label_details(given, truth, heads.labels),
            **({} if settled is None else {"thresholds": settled}),
            "worst_errors": _worst_errors(probabilities, given, truth, rows, heads.labels, most_errors),
        }

    def settle(
        self, outputs: Float[np.ndarray, "sequences labels"], examples: TaskExamples, rows: TaskRows, model: Model
    ) -> HeadsConfig:
        """The thresholds with the best F1 of each label."""
        heads = model.config.heads
        probabilities = label_probabilities(means_by_row(outputs, examples.rows))
        thresholds = tuned_thresholds(probabilities, _targets(rows, heads.labels) > 0)
        return heads.model_copy(update={"thresholds": thresholds})

    def predictor(self, engine: Engine, tokenizer: Tokenizer) -> MultilabelPredictor:
        """The predictor of a trained model."""
        return MultilabelPredictor(engine, tokenizer)


def _rows(table: MultilabelTable) -> TaskRows:
    columns = replace(table, table=replace(table.table, rows=()))
    return TaskRows(table.table.path, table.rows, f"{table}", tuple(table_notes(table.table)), columns)


def _table(rows: TaskRows) -> MultilabelTable:
    columns: MultilabelTable = rows.layout
    return replace(columns, table=replace(columns.table, rows=rows.items))


def _targets(rows: TaskRows, labels: Sequence[str]) -> Float[np.ndarray, "rows labels"]:
    return label_targets(rows.items, labels, rows.path)


def _worst_errors(
    probabilities: Float[np.ndarray, "rows labels"],
    given: Bool[np.ndarray, "rows labels"],
    truth: Bool[np.ndarray, "rows labels"],
    rows: TaskRows,
    labels: Sequence[str],
    most: int | None,
) -> list[dict[str, Any]]:
    wrong = np.flatnonzero((given != truth).any(1))
    # How certain a model was of the worst of a row's wrong decisions.
    certainty = np.where(given, probabilities, 1 - probabilities)
    certainty = np.where(given != truth, certainty, 0.0).max(1)

    def names(flags: Bool[np.ndarray, " labels"]) -> str:
        return listed_names(labels[place] for place in np.flatnonzero(flags).tolist()) or _NO_LABEL

    return [
        text_error(rows.items[number], names(truth[number]), names(given[number]), float(certainty[number]))
        for number in worst_of(wrong, certainty[wrong], most)
    ]
