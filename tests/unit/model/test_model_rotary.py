"""Rotary positions against the same by complex numbers in float64."""

import torch
from small_models import KINDS, encoder_config

from bertsmith.model import RotaryConfig
from bertsmith.model.rotary import LearnedPositions, RotaryPositions, Rotation, rotate

HEAD_SIZE = 4
POSITIONS = torch.tensor([0, 1, 2, 50, 3, 99, 0])


def rotations() -> tuple[Rotation, ...]:
    rotary = RotaryConfig(global_theta=5000.0, local_theta=70.0)
    return RotaryPositions(encoder_config(**KINDS["modern"] | {"rotary": rotary}))(POSITIONS)


def turned_by_the_book(values: torch.Tensor, positions: torch.Tensor, theta: float) -> torch.Tensor:
    """Columns i and i + half of each head are one complex number, turned by position x theta^(-2i / head size)."""
    half = values.shape[-1] // 2
    exponents = torch.arange(half, dtype=torch.float64) * 2 / values.shape[-1]
    angles = positions.double()[:, None, None] * theta**-exponents
    numbers = torch.complex(values[..., :half], values[..., half:]) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([numbers.real, numbers.imag], -1)


def random_rows(positions: int = len(POSITIONS)) -> torch.Tensor:
    return torch.randn(positions, 3, 2, HEAD_SIZE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_queries_and_keys_are_turned_as_the_book_says_and_values_stay() -> None:
    rows = random_rows()
    for rotation, theta in zip(rotations(), (5000.0, 70.0), strict=True):
        given = rotate(rows, rotation)
        for part in (0, 1):
            expected = turned_by_the_book(rows[:, part], POSITIONS, theta)
            torch.testing.assert_close(given[:, part], expected, atol=2e-5, rtol=0)
        assert torch.equal(given[:, 2], rows[:, 2])
        assert torch.equal(given[0], rows[0]), "position 0 turns nothing"


def test_a_score_depends_on_the_distance_alone() -> None:
    rows = random_rows(1).expand(len(POSITIONS), -1, -1, -1)
    query, key, _ = rotate(rows.contiguous(), rotations()[1]).unbind(1)
    scores = torch.einsum("qhd,khd->qk", query, key)
    # Positions 1 and 2 are as far from each other as 2 and 3.
    torch.testing.assert_close(scores[1, 2], scores[2, 4], atol=1e-5, rtol=0)
    assert abs(scores[1, 2] - scores[2, 1]) > 1e-3


def test_the_backward_pass_turns_back() -> None:
    rotation = rotations()[0]
    assert torch.autograd.gradcheck(lambda rows: rotate(rows, rotation), random_rows().requires_grad_())


def test_a_lower_precision_stays_what_it_is_and_near() -> None:
    rows = random_rows()
    given = rotate(rows.to(torch.bfloat16), rotations()[0])
    assert given.dtype == torch.bfloat16
    # Angles, products and sums are each rounded to 8 bits.
    limit = 3 * 2**-8 * rows.abs().max().item()
    torch.testing.assert_close(given.double(), rotate(rows, rotations()[0]), atol=limit, rtol=0)


def test_learned_positions_turn_nothing() -> None:
    assert LearnedPositions()(POSITIONS) == (None,)
