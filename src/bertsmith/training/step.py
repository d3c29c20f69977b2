"""One step of training: a function of the state and the batch."""

# pyright: reportPrivateImportUsage=false
# torch has no public name for its operations on lists of tensors.

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from bertsmith.batches.batch import Batch
from bertsmith.engine.device import Device
from bertsmith.foundation.random_streams import derived_seed
from bertsmith.kernels.linear import weights_held
from bertsmith.kernels.norms import total_norm
from bertsmith.model.heads import Model
from bertsmith.objectives.report import LossReport, Objective, add_counts
from bertsmith.training.moment_optimizers import AdamW
from bertsmith.training.optimizer import RATE_RATIO, new_optimizer
from bertsmith.training.row_gradients import RowGradients
from bertsmith.training.weight_average import WeightAverage, is_average

__all__ = [
    "StepPhase",
    "StepReport",
    "TrainState",
    "new_optimizer",
    "restore_tensors",
    "state_tensors",
    "train_step",
]

StepPhase = Literal["forward", "backward", "optimizer"]
"""What a step does: forward and backward for each micro-batch in turn, then the optimizer, clipping included."""


@dataclass
class TrainState:
    """What a step changes."""

    model: Model
    optimizer: torch.optim.Optimizer
    step: int = 0
    """Steps taken."""
    tokens: int = 0
    """Real tokens seen, special ones included."""
    average: WeightAverage | None = None
    """The mean of the weights, where one is kept."""
    rows: RowGradients = field(init=False)
    """What backward passes leave of the token embedding's gradient."""

    def __post_init__(self) -> None:
        self.rows = RowGradients(self.model.token_embedding)


@dataclass(frozen=True)
class StepReport:
    """What came of a step."""

    parts: tuple[LossReport, ...]
    """Without gradients; one a micro-batch."""
    gradient_norm: float
    """Before clipping; 0 where nothing was predicted."""
    updated: bool
    """False where nothing was predicted or a gradient was not finite: the weights then stay as they are."""


def state_tensors(state: TrainState) -> dict[str, Tensor]:
    """The tensors beside the weights, those of the optimizer and the means, as ``<weight>/<part>``."""
    parts = {
        f"{name}/{part}": tensor
        for name, parameter in state.model.named_parameters()
        for part, tensor in state.optimizer.state.get(parameter, {}).items()
    }
    return parts if state.average is None else parts | state.average.tensors


def restore_tensors(state: TrainState, tensors: dict[str, Tensor]) -> None:
    """Put back what `state_tensors` gave."""
    if state.average is not None:
        state.average.restore(tensors)
    parts: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if not is_average(name):
            weight, part = name.rsplit("/", 1)
            parts.setdefault(weight, {})[part] = tensor
    for name, parameter in state.model.named_parameters():
        if name in parts:
            state.optimizer.state[parameter] = {
                part: tensor.to(parameter.device) for part, tensor in parts[name].items()
            }


def train_step(
    state: TrainState,
    micro_batches: Sequence[Batch],
    objective: Objective,
    *,
    device: Device,
    learning_rate: float,
    clip_norm: float,
    seed: int,
    on_phase: Callable[[StepPhase], None] = lambda phase: None,
) -> StepReport:
    """Take one step.

    The loss is the mean over all predictions of all micro-batches, whatever their sizes. Dropout is a pure function of
    the seed, the step and the micro-batch; torch's own random state is left as it was. `on_phase` is told what begins.
    """
    counts = add_counts(objective.counts(batch) for batch in micro_batches)
    parts: list[LossReport] = []
    if any(counts.values()):
        with weights_held():
            for number, batch in enumerate(micro_batches):
                with _dropout_seed(derived_seed(seed, "dropout", state.step, number), device):
                    on_phase("forward")
                    with device.matrix_precision():
                        report = objective.report(state.model, batch.to(device.name), with_hits=False)
                    on_phase("backward")
                    report.loss(counts).backward()
                parts.append(report.detached())
    gradient_norm, updated = 0.0, False
    if parts:
        for group in state.optimizer.param_groups:
            group["lr"] = learning_rate * group.get(RATE_RATIO, 1.0)
        # The last of the backward pass: autograd leaves the token embedding's gradient in rows.
        state.rows.add_to_gradient()
        on_phase("optimizer")
        gradient_norm = _update(state, clip_norm)
        updated = math.isfinite(gradient_norm)
    state.optimizer.zero_grad(set_to_none=True)
    state.step += 1
    state.tokens += sum(batch.packed.num_tokens for batch in micro_batches)
    return StepReport(tuple(parts), gradient_norm, updated)


def _update(state: TrainState, longest: float) -> float:
    """Move the weights by gradients that are together no longer than `longest`; gives how long they were. Where that is
    no finite number, the weights stay."""
    gradients = [weight.grad for weight in state.model.parameters() if weight.grad is not None]
    norm = total_norm(gradients)
    if math.isfinite(norm):
        # As torch clips.
        share = longest / (norm + 1e-6)
        if share < 1.0:
            _take_scaled_step(state.optimizer, gradients, share)
        else:
            state.optimizer.step()
    return norm


def _take_scaled_step(optimizer: torch.optim.Optimizer, gradients: list[Tensor], share: float) -> None:
    if isinstance(optimizer, AdamW) and gradients[0].dtype == torch.float32:
        optimizer.step_with_share(share)
    else:
        torch._foreach_mul_(gradients, share)
        optimizer.step()


@contextlib.contextmanager
def _dropout_seed(seed: int, device: Device) -> Iterator[None]:
    with device.random_state_kept():
        torch.manual_seed(seed)
        yield
