"""Multiple choice: a score for each choice, a softmax within each question (Devlin et al. 2019, section 4.4)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from bertsmith.batches.batch import Batch
from bertsmith.model.heads import Model
from bertsmith.model.packed import PackedTokens
from bertsmith.objectives.classification import class_logits
from bertsmith.objectives.report import Counts, LossReport
from bertsmith.objectives.softmax import softmax

TERM = "choose"


@dataclass(frozen=True)
class Choice:
    """Mean negative log-probability of the right choice among those of its question, in nats."""

    @property
    def terms(self) -> tuple[str, ...]:
        """One term."""
        return (TERM,)

    def counts(self, batch: Batch) -> Counts:
        """Number of questions."""
        return {TERM: 0 if batch.group_starts is None else len(batch.group_starts) - 1}

    def report(self, model: Model, batch: Batch, *, with_hits: bool) -> LossReport:
        """Loss and hits of a batch."""
        if model.classifier is None or batch.labels is None or batch.group_starts is None:
            raise ValueError(
                "Choice needs a head for one number, and groups of sequences with the right one of each. Received: a "
                'model or batch without them. Build the model with heads.task="choose" and the batch from grouped '
                "sequences."
            )
        scores = by_group(choice_scores(model, batch.packed)[:, 0], batch.group_starts)
        total = functional.cross_entropy(scores, batch.labels, reduction="sum")
        hits = {TERM: (scores.argmax(-1) == batch.labels).sum()} if with_hits else {}
        return LossReport({TERM: total}, {TERM: len(batch.labels)}, hits)


def choice_scores(model: Model, packed: PackedTokens) -> Float[Tensor, "sequences one"]:
    """The score of each choice before the softmax over those of its question, in fp32 at least."""
    return class_logits(model, packed)


def by_group(
    scores: Float[Tensor, " sequences"], group_starts: Int[Tensor, " groups_plus_one"]
) -> Float[Tensor, "groups most"]:
    """A row of scores for each group; minus infinity stands where a group has fewer than the largest."""
    counts = group_starts.diff()
    group = torch.arange(len(counts), device=scores.device).repeat_interleave(counts)
    place = torch.arange(len(scores), device=scores.device) - group_starts[:-1][group]
    rows = scores.new_full((len(counts), int(counts.max())), -torch.inf)
    return rows.index_put((group, place), scores)


def group_probabilities(
    scores: Float[np.ndarray, " sequences"], group_starts: Int[np.ndarray, " groups_plus_one"]
) -> list[Float[np.ndarray, "..."]]:
    """Probability of each choice among those of its question, in double precision."""
    return [softmax(part) for part in np.split(scores, group_starts[1:-1])]


def choice_metrics(
    probabilities: Sequence[Float[np.ndarray, "..."]], right: Int[np.ndarray, " rows"]
) -> dict[str, float]:
    """How well choices were made.

    Args:
        probabilities: of the choices of each row.
        right: place of each row's right choice.

    Returns:
        ``accuracy``; ``loss``, in nats.
    """
    pairs = list(zip(probabilities, right.tolist(), strict=True))
    of_right = np.array([row[place] for row, place in pairs])
    return {
        "accuracy": float(np.mean([row.argmax() == place for row, place in pairs])),
        "loss": float(-np.log(np.maximum(of_right, np.finfo(np.float64).tiny)).mean()),
    }
