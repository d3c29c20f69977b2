"""The optimizers: AdamW for everything, or Muon for the encoder's matrices beside it."""

from typing import Any

import torch

from bertsmith.model.heads import Model
from bertsmith.training.config import OptimizerConfig

RATE_RATIO = "rate_ratio"
"""Key of a parameter group: its learning rate as a multiple of the run's."""


def new_optimizer(model: Model, config: OptimizerConfig) -> torch.optim.Optimizer:
    """The optimizer over all weights of a model. Matrices and embeddings decay, vectors do not.

    With ``matrices="muon"``, the matrices inside the encoder's layers are updated by Muon (Jordan et al. 2024): the
    momentum is made orthogonal, so that all directions of a matrix learn at the same speed. Embeddings, heads and
    vectors stay with AdamW.
    """
    weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    inner = {name for name, weight in weights.items() if config.matrices == "muon" and _is_inner_matrix(name, weight)}
    rest = [weight for name, weight in weights.items() if name not in inner]
    adamw = torch.optim.AdamW(
        [
            {"params": [weight for weight in rest if weight.ndim >= 2], "weight_decay": config.weight_decay},
            {"params": [weight for weight in rest if weight.ndim < 2], "weight_decay": 0.0},
        ],
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        fused=True,
    )
    if not inner:
        return adamw
    ratio = config.muon_learning_rate / config.learning_rate
    matrices = [weights[name] for name in sorted(inner)]
    muon = torch.optim.Muon(
        [{"params": matrices, RATE_RATIO: ratio}],
        lr=config.muon_learning_rate,
        weight_decay=config.weight_decay,
        adjust_lr_fn="original",
    )
    return _Together(adamw, muon)


def _is_inner_matrix(name: str, weight: torch.Tensor) -> bool:
    return weight.ndim == 2 and name.startswith("encoder.layers.")


class _Together(torch.optim.Optimizer):
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
