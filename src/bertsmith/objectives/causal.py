"""The causal language model: at every place, the next token (Radford et al. 2018, section 3.1)."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from bertsmith.batches.batch import Batch
from bertsmith.examples.targets import IGNORED
from bertsmith.model.heads import Model
from bertsmith.model.packed import PackedTokens
from bertsmith.model.pretraining_heads import VocabularyHead
from bertsmith.objectives.report import Counts, LossReport
from bertsmith.objectives.vocabulary_loss import vocabulary_loss

TERM = "causal"


@dataclass(frozen=True)
class CausalLanguageModel:
    """Mean negative log-probability of each token given those before it, in nats.

    Every token but the first of its sequence is predicted, the separator at the end too. What the batch says of
    targets is not read: the tokens themselves are the targets, so they must stand in it unmasked.
    """

    @property
    def terms(self) -> tuple[str, ...]:
        """One term."""
        return (TERM,)

    def counts(self, batch: Batch) -> Counts:
        """Number of tokens that have one before them."""
        return {TERM: num_neighbours(batch.packed)}

    def report(self, model: Model, batch: Batch, *, with_hits: bool) -> LossReport:
        """Loss and hits of a batch.

        Raises:
            ValueError: if the model has no head over the vocabulary, or sees the tokens that it must predict.
        """
        if not model.config.encoder.causal:
            raise ValueError(
                "A causal language model must not see what it predicts. Received: an encoder that reads in both "
                "directions. Build it with encoder.causal=true."
            )
        head = vocabulary_head(model)
        packed = batch.packed
        loss = vocabulary_loss(
            head.features(model.head_input(packed)),
            head.projection,
            head.bias,
            next_tokens(packed),
            with_hits=with_hits,
        )
        hits = {} if loss.hits is None else {TERM: loss.hits}
        return LossReport({TERM: loss.total}, self.counts(batch), hits)


def vocabulary_head(model: Model) -> VocabularyHead:
    """The model's head over the vocabulary.

    Raises:
        ValueError: if it has none.
    """
    if model.masked_language_model is None:
        raise ValueError(
            "A language model needs a head over the vocabulary. Received: a model without one. "
            "Build it with heads.masked_language_model=true."
        )
    return model.masked_language_model


def num_neighbours(packed: PackedTokens) -> int:
    """Pairs of tokens that stand side by side in a sequence."""
    return packed.num_tokens - packed.num_sequences


def next_tokens(packed: PackedTokens) -> Int[Tensor, " tokens"]:
    """The token behind each; `IGNORED` at the end of a sequence and in what only fills up the shape."""
    targets = torch.full_like(packed.token_ids, IGNORED)
    targets[: packed.num_tokens - 1] = packed.token_ids[1 : packed.num_tokens]
    targets[packed.sequence_starts[1:] - 1] = IGNORED
    return targets


def previous_tokens(packed: PackedTokens) -> Int[Tensor, " tokens"]:
    """The token before each; `IGNORED` at the start of a sequence and in what only fills up the shape."""
    targets = torch.full_like(packed.token_ids, IGNORED)
    targets[1 : packed.num_tokens] = packed.token_ids[: packed.num_tokens - 1]
    targets[packed.sequence_starts[:-1]] = IGNORED
    return targets
