"""Heads that pre-training puts on an encoder."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bertsmith.model.config import HeadsConfig, ModelConfig
from bertsmith.model.encoder import Encoder
from bertsmith.model.layer import activation
from bertsmith.model.packed import PackedTokens


class Transform(nn.Module):
    """Dense, activation and norm, which published BERT has before its projection on the vocabulary."""

    def __init__(self, config: ModelConfig, input_size: int) -> None:
        super().__init__()
        encoder = config.encoder
        self.dense = nn.Linear(input_size, encoder.hidden_size)
        self.activation = activation(encoder.activation)
        self.norm = nn.LayerNorm(encoder.hidden_size, eps=encoder.layer_norm_eps)

    def forward(self, hidden: Float[Tensor, "tokens input"]) -> Float[Tensor, "tokens hidden"]:
        return self.norm(self.activation(self.dense(hidden)))


class VocabularyHead(nn.Module):
    """Scores every token of the vocabulary.

    The projection is apart from what comes before it, so that a loss may run it in blocks: logits are
    ``features(hidden) @ projection.T + bias``.
    """

    def __init__(self, config: ModelConfig, token_embedding: nn.Embedding) -> None:
        super().__init__()
        encoder, heads = config.encoder, config.heads
        layers = encoder.num_hidden_layers if heads.mlm_head_input == "all_layers" else 1
        input_size = layers * encoder.hidden_size
        transforms = heads.mlm_head == "transform"
        self.transform = Transform(config, input_size) if transforms else nn.Identity()
        width = encoder.hidden_size if transforms else input_size
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


class Model(nn.Module):
    """An encoder with its heads.

    The heads are parts, None where the config has none; an objective calls those that it needs.
    """

    def __init__(self, config: ModelConfig, encoder: Encoder) -> None:
        super().__init__()
        heads: HeadsConfig = config.heads
        hidden_size = config.encoder.hidden_size
        self.config = config
        self.encoder = encoder
        self.pooler = Pooler(hidden_size) if heads.pooler else None
        self.masked_language_model = (
            VocabularyHead(config, encoder.embeddings.token) if heads.masked_language_model else None
        )
        self.next_sentence = nn.Linear(hidden_size, 2) if heads.next_sentence else None

    def head_input(self, packed: PackedTokens) -> Float[Tensor, "tokens input"]:
        """What the vocabulary head reads; its last `hidden_size` columns are always the last layer's output."""
        if self.config.heads.mlm_head_input == "all_layers":
            return torch.cat(list(self.encoder.layer_outputs(packed)), dim=-1)
        return self.encoder.packed(packed)

    def pooled(self, hidden: Float[Tensor, "tokens hidden"], packed: PackedTokens) -> Float[Tensor, "sequences hidden"]:
        """The pooler's output for each sequence.

        Raises:
            ValueError: if the model has no pooler.
        """
        if self.pooler is None:
            raise ValueError("The model has no pooler. Received: a call of pooled(). Build it with heads.pooler=true.")
        return self.pooler(hidden[packed.sequence_starts[:-1]])
