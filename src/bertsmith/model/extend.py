"""Giving a trained model more tokens."""

from collections.abc import Sequence

import torch

from bertsmith.model.build import empty_model
from bertsmith.model.config import ModelConfig
from bertsmith.model.heads import Model

_BY_VOCABULARY = (
    "encoder.embeddings.token.weight",
    "masked_language_model.untied",
    "masked_language_model.bias",
)
"""Weights with a row for each token. A tied projection is the first of them, and so follows by itself."""


@torch.no_grad()
def with_more_tokens(model: Model, pieces: Sequence[Sequence[int]], *, first_id: int) -> Model:
    """A model with a row for each new token: the mean of the rows of the pieces that it was written with until now.

    So a new token means at first what its pieces meant, and its score is the mean of theirs (Hewitt 2021 shows why a
    mean is a better start than noise).

    Args:
        model: a trained model; it is not changed.
        pieces: for each new token, in the order of the ids, the old tokens that it replaces.
        first_id: id of the first new token. Rows that the model has from there on are overwritten: a vocabulary padded
            to a round number has some that belong to no token.

    Raises:
        ValueError: if a token has no pieces, or one that the model has no row for.
    """
    for number, old in enumerate(pieces):
        if not old or not all(0 <= piece < first_id for piece in old):
            raise ValueError(
                "Each new token must replace at least one old one. "
                f"Received: pieces {list(old)} for new token {number}, with old tokens below {first_id}. "
                "Give the ids that the old tokenizer writes the word with."
            )
    encoder = model.config.encoder
    vocab_size = max(encoder.vocab_size, first_id + len(pieces))
    config = ModelConfig(encoder=encoder.model_copy(update={"vocab_size": vocab_size}), heads=model.config.heads)
    larger = empty_model(config)
    larger.train(model.training)
    old_weights = model.state_dict()
    for name, weight in larger.state_dict().items():
        old = old_weights[name]
        if name not in _BY_VOCABULARY:
            weight.copy_(old)
            continue
        weight[: len(old)] = old
        for number, replaced in enumerate(pieces):
            weight[first_id + number] = old[list(replaced)].mean(0)
    return larger
