"""Linear layers whose weights are whole numbers of 8 bits, and whose input is counted in 255 steps a row."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertsmith.kernels.encoding import LinearWeights, to_int8

_STEPS = 255
_MIDDLE = 128


class Int8Linear(nn.Module):
    """A linear layer made of another one, which learns nothing; ``precision`` of what runs it doesn't count.

    Each output's weights are counted in a step of its own, 127 of which are the largest; each row of the input in 255
    steps from its smallest to its largest number, or from zero where that lies outside. So a row's result depends on no
    other row. Sums of products of the whole numbers are exact, here as in the kernels.
    """

    weight: Tensor
    steps: Tensor
    bias: Tensor | None

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        weight, steps = to_int8(layer.weight.detach().float())
        self.register_buffer("weight", weight)
        self.register_buffer("steps", steps)
        self.register_buffer("bias", None if layer.bias is None else layer.bias.detach().float().clone())

    @property
    def weights(self) -> LinearWeights:
        """As the kernels take it."""
        return LinearWeights(self.weight, self.bias, self.steps)

    def forward(self, input: Float[Tensor, "*rows in"]) -> Float[Tensor, "*rows out"]:
        with torch.autocast(input.device.type, enabled=False):
            values = input.float()
            low, high = (values.amin(-1, keepdim=True).clamp(max=0.0), values.amax(-1, keepdim=True).clamp(min=0.0))
            step = (high - low) / _STEPS
            counted = ((values - low) * (_STEPS / (high - low)).where(high > low, 0.0)).round()
            # Numbers around zero keep the sums of a product in fp32 below 2^24, up to which they are exact.
            weight = self.weight.float()
            sums = (counted - _MIDDLE) @ weight.T
            result = sums * self.steps * step + weight.sum(1) * self.steps * (low + _MIDDLE * step)
            return result if self.bias is None else result + self.bias


def to_int8_layers(module: nn.Module) -> None:
    """Every linear layer under `module` becomes one with numbers of 8 bits."""
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, Int8Linear(child))
        else:
            to_int8_layers(child)
