"""Heads of pre-training: the one over the vocabulary, and the pooler that tasks over whole sequences read."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bertsmith.kernels.activations import activate
from bertsmith.kernels.linear import Linear
from bertsmith.model.config import ModelConfig
from bertsmith.model.encoder_config import Activation
from bertsmith.model.layer import norm


class Transform(nn.Module):
    """Dense, activation and norm, which published BERT has before its projection on the vocabulary."""

    def __init__(self, config: ModelConfig, input_size: int, width: int) -> None:
        super().__init__()
        encoder = config.encoder
        # RoBERTa's head is GELU whatever its layers have.
        self.activation: Activation = "gelu" if encoder.family == "roberta" else encoder.activation
        self.dense = Linear(input_size, width, bias=encoder.has_biases)
        self.norm = norm(encoder, width)

    def forward(self, hidden: Float[Tensor, "tokens input"]) -> Float[Tensor, "tokens width"]:
        return self.norm(activate(self.dense(hidden), self.activation))


class VocabularyHead(nn.Module):
    """Scores every token of the vocabulary.

    The projection is apart from what comes before it, so that a loss may run it in blocks: logits are
    ``features(hidden) @ projection.T + bias``.
    """

    def __init__(self, config: ModelConfig, token_embedding: nn.Embedding) -> None:
        super().__init__()
        encoder, heads = config.encoder, config.heads
        input_size = config.vocabulary_input_size
        transforms = heads.mlm_head == "transform"
        width = encoder.embedding_width if transforms else input_size
        self.transform = Transform(config, input_size, width) if transforms else nn.Identity()
        # A tied projection is the embedding itself and must not be registered twice: a list hides it from torch.
        self._tied = [token_embedding] if heads.tie_embeddings else []
        self.untied = None if heads.tie_embeddings else nn.Parameter(torch.empty(encoder.vocab_size, width))
        self.bias = nn.Parameter(torch.empty(encoder.vocab_size))

    @property
    def projection(self) -> Float[Tensor, "vocabulary width"]:
        """The matrix from features to the vocabulary."""
        return self._tied[0].weight if self.untied is None else self.untied

    def features(self, hidden: Float[Tensor, "tokens input"]) -> Float[Tensor, "tokens width"]:
        """What is projected on the vocabulary."""
        return self.transform(hidden)

    def forward(self, hidden: Float[Tensor, "tokens input"]) -> Float[Tensor, "tokens vocabulary"]:
        return functional.linear(self.features(hidden), self.projection, self.bias)


class Pooler(nn.Module):
    """Dense and tanh on the first token of each sequence."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, first: Float[Tensor, "sequences hidden"]) -> Float[Tensor, "sequences hidden"]:
        return torch.tanh(self.dense(first))
