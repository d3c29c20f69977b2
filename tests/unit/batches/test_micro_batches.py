"""Cutting a step's sequences into parts."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.batches.micro_batches import micro_bounds


def _tokens(lengths: list[int], most: int) -> list[int]:
    """Tokens of each part, all sequences being in one of them, in order."""
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    bounds = micro_bounds(starts, most)
    assert [first for first, _ in bounds] + [len(lengths)] == [0] + [end for _, end in bounds]
    return [int(starts[end] - starts[first]) for first, end in bounds]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(1, 200))
def test_parts_fit_and_are_the_fewest(lengths: list[int], most: int) -> None:
    tokens = _tokens(lengths, most)
    assert max(tokens) <= max(most, *lengths)
    if len(tokens) > 1:  # Two neighbours in one would not have fitted, wherever one begins.
        assert sum(tokens) > max(most, *lengths) * (len(tokens) - 1) / 2


@pytest.mark.parametrize(
    ("lengths", "most", "parts"),
    [
        ([5] * 12, 60, [60]),
        ([5] * 12, 59, [30, 30]),
        ([5] * 12, 25, [20, 20, 20]),
        ([1, 1, 50, 1, 1], 50, [2, 50, 2]),
        ([7], 3, [7]),
    ],
)
def test_parts_are_even(lengths: list[int], most: int, parts: list[int]) -> None:
    assert _tokens(lengths, most) == parts


def test_sequences_as_long_as_a_part_cost_neither_parts_nor_time() -> None:
    stream = np.random.default_rng(0)
    lengths = np.where(stream.random(20_000) < 0.02, 512, stream.integers(5, 40, 20_000)).tolist()
    started_at = time.process_time()
    tokens = _tokens(lengths, 512)
    assert time.process_time() - started_at < 2
    assert len(tokens) < 2.2 * sum(lengths) / 512
