"""Which way a model reads, by trial: one token is changed, and every vector is looked at for whether it moved."""

import numpy as np
import torch
from jaxtyping import Float, Int

from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluating
from bertsmith.inference.running import TokenWindow, token_budget_batches
from bertsmith.model.heads import Model


def influence(
    model: Model,
    token_ids: Int[np.ndarray, " tokens"],
    *,
    replacement: int,
    device: Device = Device("cpu", "fp32"),
    columns: slice = slice(None),
) -> Float[np.ndarray, "changed moved"]:
    """How far the vector of each token moves when another token is replaced, as a share of its length.

    Args:
        model: any model on `device`.
        token_ids: one sequence.
        replacement: the id that takes the place of each token in turn; where it stands already, nothing moves.
        device: where and how it runs.
        columns: the part of a vector that is looked at; all of it where not given.

    Returns:
        a row for each token that is changed, a column for each whose vector is looked at.
    """
    changed = [
        token_ids,
        *(np.where(np.arange(len(token_ids)) == place, replacement, token_ids) for place in range(len(token_ids))),
    ]
    windows = [TokenWindow(ids, np.zeros_like(ids)) for ids in changed]
    vectors = torch.empty(len(windows), len(token_ids), model.config.encoder.hidden_size)[..., columns]
    with evaluating(model), torch.inference_mode(), device.matrix_precision():
        for members, packed in token_budget_batches(windows):
            hidden = model.encoder.packed(packed.to(device.name))[:, columns].float().cpu()
            vectors[members] = hidden.view(len(members), len(token_ids), -1)
    moved = (vectors[1:] - vectors[0]).norm(dim=-1) / vectors[0].norm(dim=-1)
    return moved.double().numpy()


def reach(moved: Float[np.ndarray, "changed moved"], *, tolerance: float = 1e-4) -> dict[str, float | bool]:
    """What an `influence` says of the direction of reading.

    Returns:
        ``later_to_earlier`` and ``earlier_to_later``: the largest movement of a vector by a token behind it, and before
        it; ``sees_later`` and ``sees_earlier``: whether these are more than rounding.
    """
    later_to_earlier = float(np.tril(moved, -1).max(initial=0.0))
    earlier_to_later = float(np.triu(moved, 1).max(initial=0.0))
    return {
        "later_to_earlier": later_to_earlier,
        "earlier_to_later": earlier_to_later,
        "sees_later": later_to_earlier > tolerance,
        "sees_earlier": earlier_to_later > tolerance,
    }
