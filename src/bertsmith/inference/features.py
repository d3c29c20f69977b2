"""Texts as vectors of every layer, with the encoder left as it is."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluating
from bertsmith.inference.running import TokenWindow, token_budget_batches
from bertsmith.model.heads import Model
from bertsmith.model.packed import PackedTokens
from bertsmith.model.pooling import mean_tokens
from bertsmith.model.recurrent import RecurrentEncoder


@torch.no_grad()
def layer_means(model: Model, windows: Sequence[TokenWindow], device: Device) -> Float[Tensor, "layers windows hidden"]:
    """The mean over a window's tokens of what each layer gives, in fp32 on the CPU.

    An ELMo gives its embedding as layer 0 too, as its `LayerMix` wants it.
    """
    found: Tensor | None = None
    with evaluating(model), device.matrix_precision():
        for members, packed in token_budget_batches(windows):
            packed = packed.to(device.name)
            layers = torch.stack([mean_tokens(hidden.float(), packed) for hidden in _layers(model, packed)]).cpu()
            if found is None:
                found = layers.new_empty(len(layers), len(windows), layers.shape[-1])
            found[:, members] = layers
    if found is None:
        raise ValueError("layer_means needs one window at least. Received: none. Give it some.")
    return found


def _layers(model: Model, packed: PackedTokens) -> list[Float[Tensor, "tokens hidden"]]:
    encoder = model.encoder
    return (
        encoder.representations(packed)
        if isinstance(encoder, RecurrentEncoder)
        else list(encoder.layer_outputs(packed))
    )
