"""Positions as rotations of queries and keys (Su et al. 2021)."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bertsmith.model.encoder_config import EncoderConfig


@dataclass(frozen=True)
class Rotation:
    """The angle of each token and column of a head, as its cosine and sine, in fp32.

    Column i is paired with column i + head_size / 2, so both halves hold the same angles; the first half of the sines
    is negative, as the rotation wants it.
    """

    cosine: Float[Tensor, "tokens 1 1 head_size"]
    sine: Float[Tensor, "tokens 1 1 head_size"]


class LearnedPositions(nn.Module):
    """Stands where rotations would be made: positions were added to the embeddings, and attention turns nothing."""

    def forward(self, position_ids: Int[Tensor, " tokens"]) -> tuple[None]:
        return (None,)


class RotaryPositions(nn.Module):
    """The rotations of a batch: the first for layers that see all of a sequence, the second for those with a window."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        if config.rotary is None:
            raise ValueError("Rotary positions need config.rotary. Received: None. Use family modern.")
        self._thetas = (config.rotary.global_theta, config.rotary.local_theta)
        self._head_size = config.head_size

    def forward(self, position_ids: Int[Tensor, " tokens"]) -> tuple[Rotation, ...]:
        return tuple(self._rotation(theta, position_ids) for theta in self._thetas)

    def _rotation(self, theta: float, position_ids: Tensor) -> Rotation:
        exponents = torch.arange(0, self._head_size, 2, device=position_ids.device).float() / self._head_size
        angles = position_ids.float()[:, None, None, None] * (1.0 / theta**exponents)
        cosine, sine = angles.cos(), angles.sin()
        return Rotation(torch.cat([cosine, cosine], -1), torch.cat([-sine, sine], -1))


def rotate(
    query_key_value: Float[Tensor, "tokens 3 heads head_size"], rotation: Rotation
) -> Float[Tensor, "tokens 3 heads head_size"]:
    """Turn queries and keys; values stay."""
    kind = query_key_value.dtype
    return _Rotate.apply(query_key_value, rotation.cosine.to(kind), rotation.sine.to(kind))  # pyright: ignore[reportReturnType]


class _Rotate(torch.autograd.Function):
    """Few passes over memory, and nothing kept but the angles."""

    @staticmethod
    def forward(ctx: Any, query_key_value: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        ctx.save_for_backward(cosine, sine)
        return _turned(query_key_value, cosine, sine)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        cosine, sine = ctx.saved_tensors
        # A rotation's transpose turns the other way.
        return _turned(gradients[0], cosine, -sine), None, None


def _turned(query_key_value: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    turning = query_key_value[:, :2]
    partners = turning.roll(turning.shape[-1] // 2, -1)
    turned = torch.empty_like(query_key_value)
    torch.mul(turning, cosine, out=turned[:, :2])
    turned[:, :2].addcmul_(partners, sine)
    turned[:, 2] = query_key_value[:, 2]
    return turned
