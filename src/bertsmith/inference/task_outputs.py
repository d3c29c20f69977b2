"""What a model's head says of sequences or of their tokens, as numbers."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bertsmith.batches.batch import Batch
from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluating
from bertsmith.inference.running import TokenWindow, token_budget_batches
from bertsmith.model.heads import Model
from bertsmith.model.packed import PackedTokens
from bertsmith.objectives.answering import span_logits
from bertsmith.objectives.choice import choice_scores
from bertsmith.objectives.classification import class_logits
from bertsmith.objectives.embedding import sentence_vectors
from bertsmith.objectives.regression import sequence_values
from bertsmith.objectives.tagging import tag_logits

Head = Callable[[Model, PackedTokens], Tensor]
"""Gives a row of outputs for each sequence, or for each real token, in fp32 at least."""
HEADS: dict[str, Head] = {
    "classify": class_logits,
    "multilabel": class_logits,
    "regress": sequence_values,
    "choose": choice_scores,
    "tag": tag_logits,
    "answer": span_logits,
    "embed": sentence_vectors,
}
"""What a model says in each task, in training as in use."""


@torch.inference_mode()
def batch_outputs(
    model: Model, batches: Iterable[Batch], device: Device, head: Head
) -> Float[np.ndarray, "rows outputs"]:
    """A head's outputs for every sequence, or token, of some batches, in their order.

    Raises:
        ValueError: if there is no batch.
    """
    with evaluating(model):
        found = [_outputs(model, batch.packed, device, head) for batch in batches]
    if not found:
        raise ValueError("batch_outputs needs one batch at least. Received: none. Give it some.")
    return np.concatenate(found)


@torch.inference_mode()
def window_outputs(
    model: Model, windows: Sequence[TokenWindow], device: Device, head: Head, *, per_token: bool
) -> list[Float[np.ndarray, "..."]]:
    """A head's outputs for each window, in order.

    Args:
        model: the model.
        windows: of any length.
        device: where and how it runs.
        head: what is asked of it.
        per_token: whether the head gives a row for each token, and not for each sequence. Their number does not say so:
            windows may have one token.

    Returns:
        ``[tokens, outputs]`` of each window where `per_token`, else ``[outputs]``.

    Raises:
        ValueError: if the head gives another number of rows.
    """
    found: list[np.ndarray] = [np.empty(0, np.float32)] * len(windows)
    with evaluating(model):
        for members, packed in token_budget_batches(windows):
            outputs = _outputs(model, packed, device, head)
            rows = packed.num_tokens if per_token else len(members)
            if len(outputs) != rows:
                raise ValueError(
                    f"A head must give a row for each {'token' if per_token else 'sequence'}, {rows}. "
                    f"Received: {len(outputs)} rows. Say with per_token which of them it reads."
                )
            parts = np.split(outputs, packed.sequence_starts[1:-1].cpu().numpy()) if per_token else list(outputs)
            for member, part in zip(members, parts, strict=True):
                found[member] = part
    return found


def _outputs(model: Model, packed: PackedTokens, device: Device, head: Head) -> np.ndarray:
    with device.matrix_precision():
        outputs = head(model, packed.to(device.name))
    return outputs.float().cpu().numpy()
