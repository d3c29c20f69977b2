"""Heads of the tasks: one for whole sequences, one for each token."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertsmith.model.config import ModelConfig
from bertsmith.model.pretraining_heads import Pooler, Transform


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
    """Scores each output for a sequence, from a summary of its first token or of its tokens' mean.

    Outputs are labels, or the one number of a regression or of a choice.

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
        self.output = nn.Linear(size, config.heads.num_outputs)

    def forward(self, sequences: Float[Tensor, "sequences hidden"]) -> Float[Tensor, "sequences outputs"]:
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


class TokenHead(nn.Module):
    """Scores each output for every token: labels, or start and end of an answer.

    ModernBERT's has a transform before its projection, all others project what the encoder gives.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        size = config.encoder.hidden_size
        self.transform = Transform(config, size, size) if config.encoder.family == "modern" else nn.Identity()
        self.dropout = nn.Dropout(config.heads.classifier_dropout)
        self.output = nn.Linear(size, config.heads.num_outputs)

    def forward(self, hidden: Float[Tensor, "tokens hidden"]) -> Float[Tensor, "tokens outputs"]:
        return self.output(self.dropout(self.transform(hidden)))
