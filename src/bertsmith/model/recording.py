"""Attention weights of a model that was built without keeping them: by its recording twin, over the same weights."""

import torch
from jaxtyping import Float
from torch import Tensor

from bertsmith.model.encoder import Encoder, PackedEncoder
from bertsmith.model.packed import PackedTokens


def recording_twin(encoder: PackedEncoder) -> Encoder:
    """An encoder that computes the same by the book and keeps its attention weights.

    It has the parameters of `encoder` itself, not a copy: nothing is held twice, and a change shows in both. Nothing
    is dropped out in it.

    Raises:
        ValueError: if the encoder has no attention, or is frozen.
    """
    if encoder.precision is not None:
        raise ValueError(
            "Attention weights need an encoder whose weights are all there. Received: one that is frozen in "
            f"{encoder.precision}. Use the model that it was made of."
        )
    if not isinstance(encoder, Encoder):
        raise ValueError(
            "Attention weights need an encoder with attention. "
            f"Received: one of family {encoder.config.family}, which has none. Use a model of another family."
        )
    with torch.device("meta"):
        twin = Encoder(encoder.config, attention="recording")
    twin.load_state_dict(encoder.state_dict(), assign=True)
    return twin.eval()


@torch.no_grad()
def attention_weights(twin: Encoder, packed: PackedTokens) -> Float[Tensor, "layers heads tokens tokens"]:
    """How much of each token (last axis) every token (the axis before) takes into its vector, in each layer and head.

    Args:
        twin: an encoder that keeps its weights.
        packed: a single sequence, filled up with nothing.

    Returns:
        weights of at least 0, of which each row sums to 1.

    Raises:
        ValueError: for more than one sequence, or an encoder that keeps no weights.
    """
    if packed.num_sequences != 1 or len(packed.token_ids) != packed.num_tokens:
        raise ValueError(
            "Attention weights are those of one sequence, without filling. "
            f"Received: {packed.num_sequences} sequences in {len(packed.token_ids)} tokens. Give them one by one."
        )
    # The layout of one sequence is one block of one row, as long as the sequence.
    return torch.stack([blocks[0][0] for blocks in twin.attention_weights(packed)])
