"""One vector for each sequence, out of the vectors of its tokens."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertsmith.model.config import Pooling
from bertsmith.model.packed import PackedTokens


def first_tokens(hidden: Float[Tensor, "tokens hidden"], packed: PackedTokens) -> Float[Tensor, "sequences hidden"]:
    """The first token of each sequence."""
    return hidden[packed.sequence_starts[:-1]]


def mean_tokens(hidden: Float[Tensor, "tokens hidden"], packed: PackedTokens) -> Float[Tensor, "sequences hidden"]:
    """The mean of each sequence's tokens, special ones included, summed in fp32 at least."""
    lengths = packed.sequence_starts.diff()
    exact = torch.promote_types(hidden.dtype, torch.float32)
    sums = hidden.new_zeros((packed.num_sequences, hidden.shape[1]), dtype=exact)
    sums = sums.index_add(0, _sequence_of_tokens(packed), hidden[: packed.num_tokens].to(exact))
    return (sums / lengths[:, None]).to(hidden.dtype)


def largest_of_tokens(
    hidden: Float[Tensor, "tokens hidden"], packed: PackedTokens
) -> Float[Tensor, "sequences hidden"]:
    """The largest value of each column over a sequence's tokens, special ones included."""
    rows = _sequence_of_tokens(packed)[:, None].expand(-1, hidden.shape[1])
    found = hidden.new_zeros((packed.num_sequences, hidden.shape[1]))
    return found.scatter_reduce(0, rows, hidden[: packed.num_tokens], "amax", include_self=False)


def pooled_tokens(
    hidden: Float[Tensor, "tokens hidden"], packed: PackedTokens, pooling: Pooling
) -> Float[Tensor, "sequences hidden"]:
    """The embedding of each sequence, in fp32 at least: no filling and no neighbour has a part in it."""
    exact = hidden.to(torch.promote_types(hidden.dtype, torch.float32))
    match pooling:
        case "mean":
            return mean_tokens(exact, packed)
        case "first":
            return first_tokens(exact, packed)
        case "max":
            return largest_of_tokens(exact, packed)


def _sequence_of_tokens(packed: PackedTokens) -> Int[Tensor, " tokens"]:
    lengths = packed.sequence_starts.diff()
    return torch.arange(packed.num_sequences, device=lengths.device).repeat_interleave(lengths)
