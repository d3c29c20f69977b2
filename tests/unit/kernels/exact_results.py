"""What an exact result, in float64, allows as its narrower ones."""

import torch
from torch import Tensor

TYPES = [torch.float32, torch.bfloat16]


def assert_rounded(given: Tensor, exact: Tensor, *, within: float = 2e-6, roundings: int = 1) -> None:
    """Hold that a tensor is the rounding, in its own type, of numbers that are so near the exact ones.

    Args:
        given: in fp32 or bf16.
        exact: in float64.
        within: the distance, before rounding.
        roundings: how often a number was rounded on its way; more than once is allowed for by the spacing of its type.
    """
    assert given.shape == exact.shape
    near = within + (roundings - 1) * exact.abs() * torch.finfo(given.dtype).eps
    low, high = (exact - near).to(given.dtype), (exact + near).to(given.dtype)
    wrong = ~((low <= given) & (given <= high))
    assert not wrong.any(), f"{int(wrong.sum())} wrong, as {given[wrong][0].item()} for {exact[wrong][0].item()}"


def relative_error(given: Tensor, exact: Tensor) -> float:
    """Length of the error as a share of the exact length."""
    return float((given.double() - exact).norm() / exact.norm())


def random(*shape: int, seed: int = 0) -> Tensor:
    """Normally distributed numbers in fp32."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def within_one(*shape: int, seed: int = 0) -> Tensor:
    """Numbers from -1 to 1 in fp32."""
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def is_a_share_of(count: int, total: int, share: float) -> bool:
    """Whether a count of draws is within five standard deviations of what is expected of them."""
    return abs(count - total * share) <= 5 * (total * share * (1 - share)) ** 0.5
