"""A vector for each text, near for texts that belong together."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bertsmith.examples.embedding import embed_notes, embedding_examples, refuse_unlearnable
from bertsmith.examples.embedding_tables import EmbedColumns, read_embed_table
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_examples import LongTexts, TaskExamples
from bertsmith.foundation.errors import InputError
from bertsmith.inference.embed import EmbedPredictor
from bertsmith.inference.engine import Engine
from bertsmith.model.config import HeadsConfig
from bertsmith.model.heads import Model
from bertsmith.objectives.correlation import ranks, spearman
from bertsmith.objectives.embedding import (
    EmbedConfig,
    InBatchNegatives,
    RankedPairs,
    Retrieval,
    pair_cosines,
    retrieval,
    validation_loss,
)
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.task import MOST_ERRORS, Better, TaskRows
from bertsmith.recipes.finetuning.tasks.class_weights import refuse_class_weights
from bertsmith.recipes.finetuning.tasks.worst_errors import worst_of, written_number
from bertsmith.text.shown import counted
from bertsmith.tokenization.tokenizer import Tokenizer

_FEW_ROWS = 1000


class Embed:
    """See the module. Rows are pairs, graded pairs or texts alone; training and validation may differ in that."""

    name = "embed"

    def metrics(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Better]:
        """For graded pairs Spearman's coefficient; else how well the partner, or other half, of a text is found."""
        if _columns(rows).kind == "scored":
            return {"spearman": "higher", "loss": "lower"}
        return {
            "mrr": "higher",
            "recall_at_1": "higher",
            "recall_at_5": "higher",
            "recall_at_10": "higher",
            "loss": "lower",
        }

    def read(self, path: Path, data: TableConfig, *, like: TaskRows | None, options: OptionNames) -> TaskRows:
        """Read a table of pairs or graded pairs, or texts alone."""
        table = read_embed_table(path, data, like=None if like is None else _columns(like), options=options)
        notes = embed_notes(table)
        if like is not None and table.columns != _columns(like):
            notes.insert(0, f"read as {table.columns}")
        return TaskRows(path, table.rows, f"{table.columns}", tuple(notes), table.columns)

    def labels(self, rows: TaskRows) -> tuple[str, ...]:
        """None, where rows leave something to learn."""
        refuse_unlearnable(rows.items, _columns(rows).kind, rows.path)
        return ()

    def check(self, rows: TaskRows, labels: Sequence[str]) -> None:
        """There are no labels that could be wrong."""

    def strata(self, rows: TaskRows, labels: Sequence[str]) -> Int[np.ndarray, " rows"]:
        """All rows are alike."""
        return np.zeros(len(rows.items), np.int64)

    def facts(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Any]:
        """What the rows are."""
        return {"rows_are": _columns(rows).kind}

    def notes(self, rows: TaskRows, labels: Sequence[str]) -> list[str]:
        """Rows that are few."""
        if _columns(rows).kind == "texts" and len(rows.items) < _FEW_ROWS:
            few = counted(len(rows.items), "text is", "texts are")
            return [f"{few} few to learn from without pairs: thousands are usual"]
        return []

    def heads(self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig) -> dict[str, Any]:
        """How vectors are pooled; there are no weights beside the encoder's.

        Raises:
            InputError: for a frozen encoder, which leaves nothing to train, class weights, a direction of graded pairs,
                which have none, or texts alone without dropout.
        """
        if config.freeze == "encoder":
            raise InputError(
                "An embedder has no weights beside its encoder's, so freeze must be nothing",
                "freeze=encoder",
                "Leave it out, or use the encoder as it is: bertsmith embed DIR.",
            )
        refuse_class_weights(config, "texts have no classes")
        settings, kind = config.embed or EmbedConfig(), _columns(rows).kind
        if kind == "scored" and settings.direction != "both":
            raise InputError(
                "The setting embed.direction belongs to pairs without grades: a cosine is the same either way",
                f"embed.direction={settings.direction}, and {rows.path} with grades",
                "Leave it out.",
            )
        if kind == "texts" and config.dropout == 0:
            raise InputError(
                "Texts alone are learned from two readings that dropout makes differ",
                f"dropout=0, and {rows.path} with texts alone",
                "Leave it out, or give pairs.",
            )
        return {"pooling": settings.pooling, "normalize": settings.normalize}

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
        """A group of sequences for each row. Texts alone stand there twice; held out, by their two halves."""
        return embedding_examples(
            rows.items,
            _columns(rows).kind,
            tokenizer,
            max_length=max_length,
            long_texts=long_texts,
            in_halves=rows.held_out,
        )

    def objective(
        self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig
    ) -> InBatchNegatives | RankedPairs:
        """CoSENT for graded pairs, in-batch negatives for everything else."""
        settings, kind = config.embed or EmbedConfig(), _columns(rows).kind
        if kind == "scored":
            return RankedPairs(settings.temperature)
        return InBatchNegatives(settings.temperature, both=settings.direction == "both")

    def evaluation(
        self,
        outputs: Float[np.ndarray, "sequences size"],
        examples: TaskExamples,
        rows: TaskRows,
        heads: HeadsConfig,
        *,
        most_errors: int | None = MOST_ERRORS,
    ) -> dict[str, Any]:
        """Spearman's coefficient and the pairs ranked worst, or how partners were found and the worst misses."""
        assert examples.group_starts is not None
        starts, targets = examples.group_starts, examples.targets
        if _columns(rows).kind == "scored":
            cosines = pair_cosines(outputs, starts[:-1])
            return {
                "rows": len(rows.items),
                "spearman": spearman(cosines, targets),
                "loss": validation_loss(outputs, starts, scores=targets),
                "worst_errors": _worst_ranked(cosines, targets, rows, most_errors),
            }
        found = retrieval(outputs, starts, targets)
        return {
            "rows": len(rows.items),
            **found.scores,
            "loss": validation_loss(outputs, starts, texts=targets),
            "candidates": found.num_candidates,
            "worst_errors": _worst_found(found, examples, rows, most_errors),
        }

    def settle(
        self, outputs: Float[np.ndarray, "sequences size"], examples: TaskExamples, rows: TaskRows, model: Model
    ) -> HeadsConfig:
        """Nothing is left to decide."""
        return model.config.heads

    def predictor(self, engine: Engine, tokenizer: Tokenizer) -> EmbedPredictor:
        """The predictor of any encoder."""
        return EmbedPredictor(engine, tokenizer)


def _columns(rows: TaskRows) -> EmbedColumns:
    return rows.layout


def _worst_ranked(
    cosines: Float[np.ndarray, " pairs"], scores: Float[np.ndarray, " pairs"], rows: TaskRows, most: int | None
) -> list[dict[str, Any]]:
    """The pairs whose rank among the cosines is farthest from that among the scores, by the ranks of Spearman's
    coefficient."""
    worst = worst_of(np.arange(len(cosines)), np.abs(ranks(cosines) - ranks(scores)), most)
    return [
        {
            "place": rows.items[number].place,
            "text": rows.items[number].texts[0],
            "pair": rows.items[number].texts[1],
            "label": written_number(scores[number]),
            "predicted": f"cosine {cosines[number]:.3f}",
        }
        for number in worst
    ]


def _worst_found(found: Retrieval, examples: TaskExamples, rows: TaskRows, most: int | None) -> list[dict[str, Any]]:
    """Rows whose partner was not found first, those first where it lies the farthest behind."""
    assert examples.group_starts is not None
    errors: list[dict[str, Any]] = []
    missed = np.flatnonzero(found.ranks > 1)
    for number in worst_of(missed, found.ranks[missed].astype(np.float64), most):
        row, nearest = rows.items[number], int(found.nearest[number])
        other = rows.items[int(examples.rows[nearest])]
        side = nearest - int(examples.group_starts[examples.rows[nearest]])
        errors.append(
            {
                "place": row.place,
                "text": row.texts[0],
                "label": row.texts[-1] if _columns(rows).kind == "texts" else row.texts[1],
                "predicted": other.texts[min(side, len(other.texts) - 1)],
            }
        )
    return errors
