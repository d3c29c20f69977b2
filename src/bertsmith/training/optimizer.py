"""Which weight is updated how: by whom, at which rate, with decay or without."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bertsmith.model.heads import Model
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.moment_optimizers import AdamW, Lamb, PublishedAdam, StableAdamW
from bertsmith.training.muon import Muon
from bertsmith.training.stacked import NUM_STACKED, num_stacked
from bertsmith.training.uncompiled import UncompiledOptimizer

RATE_RATIO = "rate_ratio"
"""Key of a parameter group: its learning rate as a multiple of the run's."""


class Place(NamedTuple):
    """What the weights of one parameter group have in common."""

    by_muon: bool
    decays: bool
    rate_ratio: float
    num_stacked: int


def new_optimizer(model: Model, config: OptimizerConfig) -> torch.optim.Optimizer:
    """The optimizer over all weights of a model that want a gradient.

    Matrices decay, embeddings among them, as in published BERT; biases, norms and other vectors do not. With
    ``matrices="muon"``, the matrices inside the encoder's layers are Muon's, and all else stays with `kind`.

    With a `layer_decay` below 1, a weight learns the slower the farther it is from the heads: heads at the full rate,
    the top layer at `layer_decay` of it, each layer below at `layer_decay` of the one above, and the embeddings lowest
    (Clark et al. 2020, ELECTRA; counted as in Bao et al. 2022, BEiT). Layers that share their weights are one layer
    here, since they can have only one rate; so ALBERT's one group stands one step below the heads, and its embeddings
    two. A projection that is tied to the token embedding has the embedding's rate.
    """
    groups: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for place, weights in weights_by_place(model, config).items():
        groups[place.by_muon].append(
            {
                "params": weights,
                "lr": config.learning_rate * place.rate_ratio,
                "weight_decay": config.weight_decay if place.decays else 0.0,
                RATE_RATIO: place.rate_ratio,
                NUM_STACKED: place.num_stacked,
            }
        )
    parts: list[torch.optim.Optimizer] = []
    if groups[False]:
        parts.append(_adam_kind(groups[False], config))
    if groups[True]:
        parts.append(Muon(groups[True]))
    return parts[0] if len(parts) == 1 else _Together(*parts)


def weights_by_place(model: Model, config: OptimizerConfig) -> dict[Place, list[Tensor]]:
    """The weights that are trained, those that are updated alike together."""
    names = [name for name, _ in model.named_parameters()]
    num_layers = 1 + max((_layer(name) for name in names if _in_layers(name)), default=-1)
    places: dict[Place, list[Tensor]] = {}
    for name, weight in model.named_parameters():
        if not weight.requires_grad:
            continue
        by_muon = config.matrices == "muon" and weight.ndim == 2 and _in_layers(name)
        ratio = config.layer_decay ** _distance_from_top(name, num_layers)
        place = Place(
            by_muon=by_muon,
            decays=weight.ndim >= 2,
            rate_ratio=ratio * config.muon_learning_rate / config.learning_rate if by_muon else ratio,
            num_stacked=num_stacked(model, name),
        )
        places.setdefault(place, []).append(weight)
    return places


def size_of_layer_weights(model: Model) -> float:
    """Root mean square of the matrices inside the encoder's layers, which is what a learning rate stands beside."""
    matrices = [weight.detach() for name, weight in model.named_parameters() if weight.ndim == 2 and _in_layers(name)]
    squares = sum(float(weight.square().sum(dtype=torch.float64)) for weight in matrices)
    return math.sqrt(squares / max(sum(weight.numel() for weight in matrices), 1))


def _in_layers(name: str) -> bool:
    return name.startswith("encoder.layers.")


def _layer(name: str) -> int:
    return int(name.split(".")[2])


def _distance_from_top(name: str, num_layers: int) -> int:
    if name.startswith("encoder.embeddings."):
        return num_layers + 1
    return num_layers - _layer(name) if _in_layers(name) else 0


def _adam_kind(groups: list[dict[str, Any]], config: OptimizerConfig) -> torch.optim.Optimizer:
    betas = (config.beta1, config.beta2)
    match config.kind:
        case "adamw":
            return AdamW(groups, betas=betas, eps=config.eps)
        case "adam_published":
            return PublishedAdam(groups, betas=betas, eps=config.eps)
        case "lamb":
            return Lamb(groups, betas=betas, eps=config.eps)
        case "stable_adamw":
            return StableAdamW(groups, betas=betas, eps=config.eps)


class _Together(UncompiledOptimizer):
    """Two optimizers over different weights, as one."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        super().__init__([group for part in parts for group in part.param_groups], defaults={})
        self._parts = parts
        for part in parts:
            # One state for all, so that whoever saves and restores it need not know of the parts.
            part.param_groups = [group for group in self.param_groups if _holds(part, group)]
            part.state = self.state

    def step(self, closure: Any = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take a step with each part."""
        for part in self._parts:
            part.step()


def _holds(part: torch.optim.Optimizer, group: dict[str, Any]) -> bool:
    own = {id(weight) for known in part.param_groups for weight in known["params"]}
    return all(id(weight) in own for weight in group["params"])
