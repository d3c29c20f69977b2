"""Packing windows under a token budget."""

import numpy as np

from bertsmith.inference.running import TokenWindow, token_budget_batches


def _windows(lengths: list[int]) -> list[TokenWindow]:
    return [TokenWindow(np.full(length, number), np.zeros(length, np.int64)) for number, length in enumerate(lengths)]


def test_every_window_is_in_one_batch_in_the_order_that_is_told() -> None:
    lengths = [5, 90, 3, 40, 41, 7, 200, 1]
    seen: list[int] = []
    for members, packed in token_budget_batches(_windows(lengths), max_tokens=100):
        starts = packed.sequence_starts.tolist()
        assert packed.num_tokens <= 100 or len(members) == 1
        for member, start, end in zip(members, starts[:-1], starts[1:], strict=True):
            assert packed.token_ids[start:end].tolist() == [member] * lengths[member]
        seen += members
    assert sorted(seen) == list(range(len(lengths)))


def test_windows_of_like_length_stand_together() -> None:
    batches = [members for members, _ in token_budget_batches(_windows([10, 50, 10, 50, 10]), max_tokens=60)]
    assert batches == [[0, 2, 4], [1], [3]]


def test_no_window_is_no_batch() -> None:
    assert list(token_budget_batches([])) == []
