"""The language model of ELMo: one direction predicts the next token, the other the one before (Peters et al. 2018)."""

from dataclasses import dataclass

import torch

from bertsmith.batches.batch import Batch
from bertsmith.model.heads import Model
from bertsmith.objectives.causal import next_tokens, num_neighbours, previous_tokens, vocabulary_head
from bertsmith.objectives.report import Counts, LossReport
from bertsmith.objectives.vocabulary_loss import vocabulary_loss

TERM = "bilm"


@dataclass(frozen=True)
class BidirectionalLanguageModel:
    """Mean negative log-probability over both directions' predictions, in nats.

    The head over the vocabulary is the same for both. Tokens must stand unmasked in the batch.
    """

    @property
    def terms(self) -> tuple[str, ...]:
        """One term: both directions predict equally many tokens, so their mean is the mean of all."""
        return (TERM,)

    def counts(self, batch: Batch) -> Counts:
        """Number of tokens with one before them, and of those with one behind them."""
        return {TERM: 2 * num_neighbours(batch.packed)}

    def report(self, model: Model, batch: Batch, *, with_hits: bool) -> LossReport:
        """Loss and hits of a batch.

        Raises:
            ValueError: if the model has no head over the vocabulary, or its directions see each other.
        """
        if model.config.encoder.family != "elmo":
            raise ValueError(
                "A language model of two directions must not see what it predicts. Received: an encoder of family "
                f"{model.config.encoder.family}. Build it with encoder.family='elmo'."
            )
        head = vocabulary_head(model)
        packed = batch.packed
        # One below the other, so that the projection is read once.
        states = torch.cat(model.head_input(packed).chunk(2, dim=-1))
        loss = vocabulary_loss(
            head.features(states),
            head.projection,
            head.bias,
            torch.cat([next_tokens(packed), previous_tokens(packed)]),
            with_hits=with_hits,
        )
        hits = {} if loss.hits is None else {TERM: loss.hits}
        return LossReport({TERM: loss.total}, self.counts(batch), hits)
