"""Learning a task from frozen features: a learned mix of the layers and a linear classifier (Peters et al. 2018)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from bertsmith.model.recurrent import LayerMix
from bertsmith.training.moment_optimizers import AdamW

_STEPS = 300
_LEARNING_RATE = 1e-2
_WEIGHT_DECAY = 1e-3
_BETAS = (0.9, 0.999)
_EPS = 1e-8


class LayerProbe(nn.Module):
    """Layers, each value standardised, mixed and classified.

    Args:
        features: the training texts' vectors; their mean and spread standardise all others.
        num_labels: how many classes there are.
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, features: Float[Tensor, "layers texts hidden"], num_labels: int) -> None:
        super().__init__()
        self.register_buffer("mean", features.mean(1, keepdim=True))
        self.register_buffer("spread", features.std(1, keepdim=True, correction=0) + 1e-6)
        self.mix = LayerMix(len(features))
        # From zero, and not by a draw: a probe has no luck in its beginning.
        self.projection = nn.Parameter(torch.zeros(num_labels, features.shape[-1]))
        self.bias = nn.Parameter(torch.zeros(num_labels))

    def forward(self, features: Float[Tensor, "layers texts hidden"]) -> Float[Tensor, "texts labels"]:
        return functional.linear(self.mix((features - self.mean) / self.spread), self.projection, self.bias)


@dataclass(frozen=True)
class ProbeResult:
    """A probe and how well it does."""

    accuracy: float
    """On the texts held out."""
    layer_weights: tuple[float, ...]
    """Share of each layer in the mix that was learned."""


def probe_layers(
    train: tuple[Float[Tensor, "layers texts hidden"], Int[Tensor, " texts"]],
    test: tuple[Float[Tensor, "layers held_out hidden"], Int[Tensor, " held_out"]],
    *,
    num_labels: int,
) -> ProbeResult:
    """Train a probe on all training texts at once, and score it on others. Nothing is drawn: there is no seed.

    Args:
        train: features and labels to learn from.
        test: features and labels to be judged by.
        num_labels: how many classes there are.
    """
    features, labels = train
    probe = LayerProbe(features, num_labels)
    group = {"params": list(probe.parameters()), "lr": _LEARNING_RATE, "weight_decay": _WEIGHT_DECAY}
    optimizer = AdamW([group], betas=_BETAS, eps=_EPS)
    for _ in range(_STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(probe(features), labels).backward()
        optimizer.step()
    with torch.no_grad():
        right = probe(test[0]).argmax(-1) == test[1]
        return ProbeResult(float(right.double().mean()), tuple(probe.mix.weights.tolist()))
