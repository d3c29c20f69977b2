"""The masked language model: find the hidden tokens (Devlin et al. 2019, section 3.1)."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from bertsmith.batches.batch import Batch
from bertsmith.model.heads import Model
from bertsmith.objectives.report import Counts, LossReport
from bertsmith.objectives.vocabulary_loss import vocabulary_loss

TERM = "mlm"


@dataclass(frozen=True)
class MaskedLanguageModel:
    """Mean negative log-probability of the true tokens at the selected positions, in nats."""

    @property
    def terms(self) -> tuple[str, ...]:
        """One term."""
        return (TERM,)

    def counts(self, batch: Batch) -> Counts:
        """Number of selected positions."""
        return {TERM: batch.num_targets}

    def report(self, model: Model, batch: Batch, *, with_hits: bool) -> LossReport:
        """Loss and hits of a batch."""
        return masked_tokens_report(model, model.head_input(batch.packed), batch, with_hits=with_hits)


def masked_tokens_report(
    model: Model, hidden: Float[Tensor, "tokens input"], batch: Batch, *, with_hits: bool
) -> LossReport:
    """Loss and hits at the selected positions; the vocabulary head runs on these alone."""
    head = model.masked_language_model
    if head is None:
        raise ValueError(
            "A masked language model needs a head over the vocabulary. Received: a model without one. "
            "Build it with heads.masked_language_model=true."
        )
    loss = vocabulary_loss(
        head.features(hidden[batch.target_positions]),
        head.projection,
        head.bias,
        batch.target_ids,
        with_hits=with_hits,
    )
    hits = {} if loss.hits is None else {TERM: loss.hits}
    return LossReport({TERM: loss.total}, {TERM: batch.num_targets}, hits)
