"""Masked language model and an objective over sentence pairs, trained jointly: next sentence prediction (Devlin et al.
2019, appendix A.2) or sentence order (Lan et al. 2020, section 3.1)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn
from torch.nn import functional

from bertsmith.batches.batch import Batch
from bertsmith.model.heads import Model
from bertsmith.objectives.masked_language_model import TERM as MLM_TERM
from bertsmith.objectives.masked_language_model import masked_tokens_report
from bertsmith.objectives.report import Counts, LossReport

PairTerm = Literal["nsp", "sop"]


@dataclass(frozen=True)
class MaskedLanguageModelWithPairs:
    """The sum of both mean losses, in nats. Label 0: the second segment follows the first; 1: it does not, being random
    with nsp and the text before the first with sop."""

    pair_term: PairTerm

    @property
    def terms(self) -> tuple[str, ...]:
        """Two terms."""
        return (MLM_TERM, self.pair_term)

    def counts(self, batch: Batch) -> Counts:
        """Number of selected positions, and of sequences."""
        return {MLM_TERM: batch.num_targets, self.pair_term: batch.packed.num_sequences}

    def report(self, model: Model, batch: Batch, *, with_hits: bool) -> LossReport:
        """Losses and hits of a batch."""
        labels = batch.pair_labels
        if labels is None:
            raise ValueError(
                f"{self.pair_term} needs sentence pairs. Received: a batch without labels of pairs. "
                "Build it from sentence pairs."
            )
        head = self._head(model)
        inputs = model.head_input(batch.packed)
        masked = masked_tokens_report(model, inputs, batch, with_hits=with_hits)
        last = inputs[:, -model.config.encoder.hidden_size :]
        logits = head(model.pooled(last, batch.packed))
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        total = functional.cross_entropy(logits, labels, reduction="sum")
        hits = dict(masked.hits)
        if with_hits:
            hits[self.pair_term] = (logits.argmax(-1) == labels).sum()
        return LossReport(masked.totals | {self.pair_term: total}, masked.counts | {self.pair_term: len(labels)}, hits)

    def _head(self, model: Model) -> nn.Linear:
        match self.pair_term:
            case "nsp":
                name, head = "next_sentence", model.next_sentence
            case "sop":
                name, head = "sentence_order", model.sentence_order
        if head is None:
            raise ValueError(
                f"{self.pair_term} needs its head. Received: a model without one. Build it with heads.{name}=true."
            )
        return head
