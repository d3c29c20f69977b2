"""Labels of words: loss, decoding of entities, and metrics (Devlin et al. 2019, section 5.3).

Entities count as found only with all their words and their type, as in the CoNLL-2003 task (Tjong Kim Sang and De
Meulder 2003). The scores are those of the program seqeval: in its default reading and, where `strict`, in its strict
one.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bertsmith.batches.batch import Batch
from bertsmith.examples.tag_schemes import Scheme, Span, entity_spans
from bertsmith.examples.targets import IGNORED
from bertsmith.model.heads import Model
from bertsmith.model.packed import PackedTokens
from bertsmith.objectives.report import Counts, LossReport

TERM = "tag"


@dataclass(frozen=True)
class Tagging:
    """Mean negative log-probability of the true label over the words that have one, in nats."""

    label_weights: tuple[float, ...] = ()
    """Weight of each label in the loss; all 1 where none are given. The mean is over words, whatever their weights, so
    that parts of a batch add up; weights should therefore be 1 on the average word."""

    @property
    def terms(self) -> tuple[str, ...]:
        """One term."""
        return (TERM,)

    def counts(self, batch: Batch) -> Counts:
        """Number of words with a label."""
        return {TERM: int((_labels(batch) != IGNORED).sum())}

    def report(self, model: Model, batch: Batch, *, with_hits: bool) -> LossReport:
        """Loss and hits of a batch."""
        if model.token_classifier is None:
            raise ValueError(
                "Tagging needs a head for labels of tokens. Received: a model without one. "
                'Build it with heads.task="tag" and heads.labels=(…).'
            )
        logits = tag_logits(model, batch.packed)
        truth = _labels(batch)[: batch.packed.num_tokens]
        weights = logits.new_tensor(self.label_weights) if self.label_weights else None
        total = functional.cross_entropy(logits, truth, weight=weights, ignore_index=IGNORED, reduction="sum")
        hits = {TERM: (logits.argmax(-1) == truth).sum()} if with_hits else {}
        return LossReport({TERM: total}, {TERM: int((truth != IGNORED).sum())}, hits)


def tag_logits(model: Model, packed: PackedTokens) -> Float[Tensor, "tokens labels"]:
    """Scores of each label for every real token before softmax, in fp32 at least."""
    logits = model.tag(model.encoder.packed(packed)[: packed.num_tokens])
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def decoded_entities(labels: Sequence[str], scores: Float[np.ndarray, " words"]) -> list[tuple[Span, float]]:
    """The entities that the labels of a sentence write, read leniently, each with the mean of its words' scores.

    Args:
        labels: one a word, in a scheme of entities.
        scores: probability of each word's label.
    """
    return [(span, float(scores[span.start : span.end].mean())) for span in entity_spans(labels)]


@dataclass(frozen=True)
class EntityCounts:
    """How many entities of a type there are, were predicted, and were predicted rightly."""

    true: int
    predicted: int
    right: int

    @property
    def scores(self) -> dict[str, float]:
        """``precision``, ``recall`` and ``f1``; 0 where there is nothing to divide by."""
        precision = self.right / self.predicted if self.predicted else 0.0
        recall = self.right / self.true if self.true else 0.0
        f1 = 2 * precision * recall / (precision + recall) if self.right else 0.0
        return {"precision": precision, "recall": recall, "f1": f1}


def count_entities(
    truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], *, strict: Scheme | None = None
) -> dict[str, EntityCounts]:
    """Entities by type, in alphabetical order.

    Args:
        truth: labels of each sentence's words.
        predicted: the same, as predicted.
        strict: the scheme in which entities must be written to count at all; read leniently where not given.
    """
    true, found, right = Counter[str](), Counter[str](), Counter[str]()
    for ours, theirs in zip(truth, predicted, strict=True):
        spans, predicted_spans = entity_spans(ours, strict), entity_spans(theirs, strict)
        true.update(span.label for span in spans)
        found.update(span.label for span in predicted_spans)
        right.update(span.label for span in set(spans) & set(predicted_spans))
    return {name: EntityCounts(true[name], found[name], right[name]) for name in sorted({*true, *found})}


def entity_scores(counts: dict[str, EntityCounts]) -> dict[str, float]:
    """Scores over all types.

    Returns:
        ``f1``, ``micro_precision`` and ``micro_recall`` of all entities together; ``macro_f1``, ``macro_precision`` and
        ``macro_recall``, the means over the types that occur in the truth or were predicted; 0 without any.
    """
    each = [one.scores for one in counts.values()]
    together = EntityCounts(
        sum(one.true for one in counts.values()),
        sum(one.predicted for one in counts.values()),
        sum(one.right for one in counts.values()),
    )
    means = {f"macro_{name}": float(np.mean([one[name] for one in each])) if each else 0.0 for name in together.scores}
    micro = together.scores
    return {"f1": micro["f1"], "micro_precision": micro["precision"], "micro_recall": micro["recall"], **means}


def entity_details(counts: dict[str, EntityCounts]) -> dict[str, dict[str, Any]]:
    """Precision, recall and F1 of each type, and under ``rows`` how many entities of it there are."""
    return {name: {**one.scores, "rows": one.true} for name, one in counts.items()}


def _labels(batch: Batch) -> Tensor:
    if batch.labels is None:
        raise ValueError(
            "Tagging needs the labels of tokens. Received: a batch without them. Build it from tagged sentences."
        )
    return batch.labels
