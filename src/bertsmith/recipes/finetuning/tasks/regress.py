"""A number for a text or a pair of texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bertsmith.examples.regression import VALUE_COLUMNS, value_notes, value_scale, value_strata, values_of
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_examples import LongTexts, TaskExamples, text_examples
from bertsmith.examples.task_tables import TaskTable
from bertsmith.examples.windows import means_by_row
from bertsmith.inference.engine import Engine
from bertsmith.inference.regress import RegressPredictor
from bertsmith.model.config import HeadsConfig
from bertsmith.model.heads import Model
from bertsmith.objectives.regression import Regression, regression_scores, rescale, standardised
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.task import MOST_ERRORS, Better, TaskRows
from bertsmith.recipes.finetuning.tasks.class_weights import refuse_class_weights
from bertsmith.recipes.finetuning.tasks.task_rows import has_pairs, table_rows
from bertsmith.recipes.finetuning.tasks.worst_errors import text_error, worst_of, written_number
from bertsmith.tokenization.tokenizer import Tokenizer


class Regress:
    """See the module. What is learned are distances from the mean in spreads; the finished head gives the values."""

    name = "regress"

    def metrics(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Better]:
        """The loss first, which is never undefined."""
        return {
            "loss": "lower",
            "pearson": "higher",
            "spearman": "higher",
            "r2": "higher",
            "mae": "lower",
            "mse": "lower",
        }

    def read(self, path: Path, data: TableConfig, *, like: TaskRows | None, options: OptionNames) -> TaskRows:
        """Read a table of texts with numbers."""
        return table_rows(path, data, like=like, options=options, label_columns=VALUE_COLUMNS)

    def labels(self, rows: TaskRows) -> tuple[str, ...]:
        """None; values that cannot be learned are refused."""
        value_scale(_values(rows), rows.path)
        return ()

    def check(self, rows: TaskRows, labels: Sequence[str]) -> None:
        """Refuse what is no number."""
        _values(rows)

    def strata(self, rows: TaskRows, labels: Sequence[str]) -> Int[np.ndarray, " rows"]:
        """Tenths of the rows by their value."""
        return value_strata(_values(rows))

    def facts(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Any]:
        """Mean and spread of the values, which may all be equal where nothing is learned from them."""
        values = _values(rows)
        return {"value_mean": float(values.mean()), "value_spread": float(values.std())}

    def notes(self, rows: TaskRows, labels: Sequence[str]) -> list[str]:
        """The range of the values, and what is odd about them."""
        return value_notes(_values(rows))

    def heads(self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig) -> dict[str, Any]:
        """A head for one number, and the scale on which it is trained.

        Raises:
            InputError: for class weights.
        """
        refuse_class_weights(config, "values have no classes")
        scale = value_scale(_values(rows), rows.path)
        return {"value_scale": scale, "windows": config.long_texts == "windows", "pairs": has_pairs(rows)}

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
        """Each text as one sequence, or as its windows, all of which have the text's value."""
        texts = [row.texts for row in rows.items]
        targets = standardised(_values(rows), heads.value_scale)
        return text_examples(texts, targets, tokenizer, max_length=max_length, long_texts=long_texts)

    def objective(self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig) -> Regression:
        """Squared error."""
        return Regression()

    def evaluation(
        self,
        outputs: Float[np.ndarray, "sequences one"],
        examples: TaskExamples,
        rows: TaskRows,
        heads: HeadsConfig,
        *,
        most_errors: int | None = MOST_ERRORS,
    ) -> dict[str, Any]:
        """Scores, and the rows that are farthest off.

        The ``loss`` is counted in squared spreads of the training values, as in the steps of the training. Of a model
        from elsewhere, which does not know them, it is ``mse``.
        """
        found, truth = means_by_row(outputs, examples.rows)[:, 0], _values(rows)
        errors = np.abs(found - truth)
        worst = worst_of(np.arange(len(errors)), errors, most_errors)
        spread = heads.value_scale[1] if heads.value_scale is not None else heads.value_spread or 1.0
        return {
            "rows": len(rows.items),
            **regression_scores(found, truth, spread=spread),
            "worst_errors": [
                text_error(rows.items[number], written_number(truth[number]), written_number(found[number]), None)
                for number in worst
            ],
        }

    def settle(
        self, outputs: Float[np.ndarray, "sequences one"], examples: TaskExamples, rows: TaskRows, model: Model
    ) -> HeadsConfig:
        """Write the scale into the head's weights, so that what it gives are values wherever the model is opened."""
        heads = model.config.heads
        if heads.value_scale is None:
            return heads
        rescale(model, heads.value_scale, None)
        return heads.model_copy(update={"value_scale": None, "value_spread": heads.value_scale[1]})

    def predictor(self, engine: Engine, tokenizer: Tokenizer) -> RegressPredictor:
        """The predictor of a trained model."""
        return RegressPredictor(engine, tokenizer)


def _values(rows: TaskRows) -> Float[np.ndarray, " rows"]:
    return values_of(TaskTable(rows.path, rows.layout, rows.items))
