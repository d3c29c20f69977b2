"""Weights that hold several matrices, one above the other, for the sake of one larger product.

An optimizer that looks at a matrix as a whole, its norm or its directions, must look at each of them by itself.
"""

from collections.abc import Sequence

from torch import Tensor, nn

NUM_STACKED = "num_stacked"
"""Key of a parameter group: how many matrices of equal height each of its weights holds."""

_QUERY_KEY_VALUE = ".query_key_value.weight"
_GATES = (".weight_ih_l0", ".weight_hh_l0")
_UP, _DOWN = ".feed_forward.up.weight", ".feed_forward.down.weight"


def num_stacked(model: nn.Module, name: str) -> int:
    """How many matrices the weight of that name holds.

    Three where attention computes query, key and value at once; two where a feed-forward computes a value and its gate
    at once, told from `up` being twice as high as `down` is wide; four in an LSTM, its gates and cell; else one.
    """
    if name.endswith(_QUERY_KEY_VALUE):
        return 3
    if name.endswith(_GATES):
        return 4
    if name.endswith(_UP):
        down = model.get_parameter(name.removesuffix(_UP) + _DOWN)
        return model.get_parameter(name).shape[0] // down.shape[1]
    return 1


def apart(weights: Sequence[Tensor], num_matrices: int) -> list[Tensor]:
    """The matrices in each weight, as views: ``[num_matrices x rows, columns]`` becomes as many ``[rows, columns]``."""
    return [matrix for weight in weights for matrix in weight.chunk(num_matrices)]
