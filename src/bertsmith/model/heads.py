"""Heads on an encoder: those of pre-training, and a classifier of whole texts."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bertsmith.model.config import Activation, ModelConfig
from bertsmith.model.encoder import PackedEncoder
from bertsmith.model.layer import activation, norm
from bertsmith.model.packed import PackedTokens


class Transform(nn.Module):
    """Dense, activation and norm, which published BERT has before its projection on the vocabulary."""

    def __init__(self, config: ModelConfig, input_size: int, width: int) -> None:
        super().__init__()
        encoder = config.encoder
        # RoBERTa's head is GELU whatever its layers have.
        name: Activation = "gelu" if encoder.family == "roberta" else encoder.activation
        self.dense = nn.Linear(input_size, width, bias=encoder.has_biases)
        self.activation = activation(name)
        self.norm = norm(encoder, width)

    def forward(self, hidden: Float[Tensor, "tokens input"]) -> Float[Tensor, "tokens width"]:
        return self.norm(self.activation(self.dense(hidden)))


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


class TanhDense(nn.Module):
    """Dropout, dense and tanh: what RoBERTa's classifier does before it projects."""

    def __init__(self, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, first: Float[Tensor, "sequences hidden"]) -> Float[Tensor, "sequences hidden"]:
        return torch.tanh(self.dense(self.dropout(first)))


class ReluDense(nn.Module):
    """Dense and ReLU: what DistilBERT's classifier does before it projects."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, first: Float[Tensor, "sequences hidden"]) -> Float[Tensor, "sequences hidden"]:
        return torch.relu(self.dense(first))


class Classifier(nn.Module):
    """Scores each label for a sequence, from a summary of its first token or of its tokens' mean.

    The summary is the encoder's pooler where the family's published classifier reads that, and otherwise a part of the
    classifier.
    """

    def __init__(self, config: ModelConfig, pooler: Pooler | None) -> None:
        super().__init__()
        size, rate = config.encoder.hidden_size, config.heads.classifier_dropout
        # The pooler is the model's own part and must not be registered twice: a list hides it from torch.
        self._pooler = [pooler] if config.uses_pooler else []
        self.summary = None if config.uses_pooler else _summary(config)
        self.dropout = nn.Dropout(rate)
        self.output = nn.Linear(size, len(config.heads.labels))

    def forward(self, sequences: Float[Tensor, "sequences hidden"]) -> Float[Tensor, "sequences labels"]:
        summary = self._pooler[0] if self.summary is None else self.summary
        return self.output(self.dropout(summary(sequences)))  # pyright: ignore[reportOptionalCall]


def _summary(config: ModelConfig) -> nn.Module:
    size = config.encoder.hidden_size
    match config.encoder.family:
        case "distilbert":
            return ReluDense(size)
        case "modern":
            return Transform(config, size, size)
        case _:
            return TanhDense(size, config.heads.classifier_dropout)


class Model(nn.Module):
    """An encoder with its heads.

    The heads are parts, None where the config has none; an objective calls those that it needs.
    """

    def __init__(self, config: ModelConfig, encoder: PackedEncoder, token_embedding: nn.Embedding) -> None:
        super().__init__()
        heads = config.heads
        hidden_size = config.encoder.hidden_size
        self.config = config
        self.encoder = encoder
        self.pooler = Pooler(hidden_size) if heads.pooler else None
        self.masked_language_model = VocabularyHead(config, token_embedding) if heads.masked_language_model else None
        self.next_sentence = nn.Linear(hidden_size, 2) if heads.next_sentence else None
        self.sentence_order = nn.Linear(hidden_size, 2) if heads.sentence_order else None
        self.classifier = Classifier(config, self.pooler) if heads.labels else None
        self._head_input = self._all_layers if heads.mlm_head_input == "all_layers" else encoder.packed
        self._classifier_input = first_tokens if heads.classifier_input == "first" else mean_tokens

    def head_input(self, packed: PackedTokens) -> Float[Tensor, "tokens input"]:
        """What the vocabulary head reads; its last `hidden_size` columns are always the last layer's output."""
        return self._head_input(packed)

    def _all_layers(self, packed: PackedTokens) -> Tensor:
        return torch.cat(list(self.encoder.layer_outputs(packed)), dim=-1)

    def pooled(self, hidden: Float[Tensor, "tokens hidden"], packed: PackedTokens) -> Float[Tensor, "sequences hidden"]:
        """The pooler's output for each sequence.

        Raises:
            ValueError: if the model has no pooler.
        """
        if self.pooler is None:
            raise ValueError("The model has no pooler. Received: a call of pooled(). Build it with heads.pooler=true.")
        return self.pooler(first_tokens(hidden, packed))

    def classify(
        self, hidden: Float[Tensor, "tokens hidden"], packed: PackedTokens
    ) -> Float[Tensor, "sequences labels"]:
        """A score for each sequence and label, before softmax.

        Raises:
            ValueError: if the model has no classifier.
        """
        if self.classifier is None:
            raise ValueError(
                "The model has no classifier. Received: a call of classify(). Build it with heads.labels=(…)."
            )
        return self.classifier(self._classifier_input(hidden, packed))


def first_tokens(hidden: Float[Tensor, "tokens hidden"], packed: PackedTokens) -> Float[Tensor, "sequences hidden"]:
    """The first token of each sequence."""
    return hidden[packed.sequence_starts[:-1]]


def mean_tokens(hidden: Float[Tensor, "tokens hidden"], packed: PackedTokens) -> Float[Tensor, "sequences hidden"]:
    """The mean of each sequence's tokens, special ones included, summed in fp32 at least."""
    lengths = packed.sequence_starts.diff()
    sequence = torch.arange(packed.num_sequences, device=hidden.device).repeat_interleave(lengths)
    exact = torch.promote_types(hidden.dtype, torch.float32)
    sums = hidden.new_zeros((packed.num_sequences, hidden.shape[1]), dtype=exact)
    sums = sums.index_add(0, sequence, hidden[: packed.num_tokens].to(exact))
    return (sums / lengths[:, None]).to(hidden.dtype)
