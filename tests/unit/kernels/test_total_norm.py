"""The length of all gradients against torch's."""

import math

import pytest
import torch
from exact_results import random

from bertsmith.kernels.norms import total_norm


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "shapes", [[(1,)], [(3, 5), (4096,), (4097,)], [(0,), (7,)], [(300, 301), (20_000,), (2, 3, 4)]]
)
def test_it_is_the_root_of_the_sum_of_all_squares(shapes: list[tuple[int, ...]]) -> None:
    tensors = [random(*shape, seed=number) for number, shape in enumerate(shapes)]
    exact = math.sqrt(sum(float(values.double().square().sum()) for values in tensors))
    assert float(total_norm(tensors)) == pytest.approx(exact, rel=1e-6)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("spoilt", [math.nan, math.inf])
def test_it_is_not_finite_where_a_number_is_not(spoilt: float) -> None:
    values = random(100)
    values[50] = spoilt
    assert not math.isfinite(float(total_norm([random(5), values])))


def test_without_tensors_it_is_nothing() -> None:
    assert float(total_norm([])) == 0


def test_exact_numbers_are_taken_exactly() -> None:
    assert float(total_norm([torch.full((10,), 1e-12, dtype=torch.float64)])) == pytest.approx(
        10**0.5 * 1e-12, rel=1e-12
    )
