"""What a model says of whole sequences: class probabilities."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from jaxtyping import Float

from bertsmith.batches.batch import Batch
from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluating
from bertsmith.inference.running import TokenWindow, token_budget_batches
from bertsmith.model.heads import Model
from bertsmith.model.packed import PackedTokens
from bertsmith.objectives.classification import class_logits


@torch.inference_mode()
def batch_log_probabilities(
    model: Model, batches: Iterable[Batch], device: Device
) -> Float[np.ndarray, "sequences labels"]:
    """Log-probability of each class for every sequence of some batches, in their order."""
    with evaluating(model):
        rows = [_log_probabilities(model, batch.packed, device) for batch in batches]
    return np.concatenate(rows) if rows else np.empty((0, len(model.config.heads.labels)), np.float32)


@torch.inference_mode()
def window_log_probabilities(
    model: Model, windows: Sequence[TokenWindow], device: Device
) -> Float[np.ndarray, "windows labels"]:
    """Log-probability of each class for every window, in their order."""
    found = np.empty((len(windows), len(model.config.heads.labels)), np.float32)
    with evaluating(model):
        for members, packed in token_budget_batches(windows):
            found[members] = _log_probabilities(model, packed, device)
    return found


def _log_probabilities(model: Model, packed: PackedTokens, device: Device) -> np.ndarray:
    with device.matrix_precision():
        logits = class_logits(model, packed.to(device.name))
    return logits.log_softmax(-1).float().cpu().numpy()
