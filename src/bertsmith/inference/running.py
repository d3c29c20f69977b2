"""Token sequences of any length in batches under a token budget, without dependence on neighbours."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from bertsmith.model.packed import PackedTokens

MAX_BATCH_TOKENS = 16_384


@dataclass(frozen=True)
class TokenWindow:
    """One sequence as the encoder takes it."""

    token_ids: Int[np.ndarray, " tokens"]
    segment_ids: Int[np.ndarray, " tokens"]


def token_budget_batches(
    windows: Sequence[TokenWindow], max_tokens: int = MAX_BATCH_TOKENS
) -> Iterator[tuple[list[int], PackedTokens]]:
    """Pack windows, those of like length together.

    Yields:
        the numbers of the windows in a batch, and the batch in the same order. A batch has at most `max_tokens` tokens,
        or a single window.
    """
    order = sorted(range(len(windows)), key=lambda number: len(windows[number].token_ids))
    members: list[int] = []
    tokens = 0
    for number in order:
        length = len(windows[number].token_ids)
        if members and tokens + length > max_tokens:
            yield members, _pack([windows[member] for member in members])
            members, tokens = [], 0
        members.append(number)
        tokens += length
    if members:
        yield members, _pack([windows[member] for member in members])


def _pack(windows: Sequence[TokenWindow]) -> PackedTokens:
    return PackedTokens.build(
        np.concatenate([window.token_ids for window in windows]),
        np.concatenate([window.segment_ids for window in windows]),
        np.concatenate([[0], np.cumsum([len(window.token_ids) for window in windows])]),
    )
