"""Masked language model and next sentence prediction, trained jointly (Devlin et al. 2019, appendix A.2)."""

from dataclasses import dataclass

import torch
from torch.nn import functional

from bertsmith.batches.batch import Batch
from bertsmith.model.heads import Model
from bertsmith.objectives.masked_language_model import TERM as MLM_TERM
from bertsmith.objectives.masked_language_model import masked_tokens_report
from bertsmith.objectives.report import Counts, LossReport

TERM = "nsp"


@dataclass(frozen=True)
class MaskedLanguageModelWithNextSentence:
    """The sum of both mean losses, in nats. Label 0: the second segment follows the first; 1: it is from elsewhere."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Two terms."""
        return (MLM_TERM, TERM)

    def counts(self, batch: Batch) -> Counts:
        """Number of selected positions, and of sequences."""
        return {MLM_TERM: batch.num_targets, TERM: batch.packed.num_sequences}

    def report(self, model: Model, batch: Batch, *, with_hits: bool) -> LossReport:
        """Losses and hits of a batch."""
        if model.next_sentence is None or batch.next_sentence_labels is None:
            raise ValueError(
                "Next sentence prediction needs its head and sentence pairs. Received: a model or batch without them. "
                "Build the model with heads.next_sentence=true and the batch from sentence pairs."
            )
        inputs = model.head_input(batch.packed)
        masked = masked_tokens_report(model, inputs, batch, with_hits=with_hits)
        last = inputs[:, -model.config.encoder.hidden_size :]
        logits = model.next_sentence(model.pooled(last, batch.packed))
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        labels = batch.next_sentence_labels
        total = functional.cross_entropy(logits, labels, reduction="sum")
        hits = dict(masked.hits)
        if with_hits:
            hits[TERM] = (logits.argmax(-1) == labels).sum()
        return LossReport(masked.totals | {TERM: total}, masked.counts | {TERM: len(labels)}, hits)
