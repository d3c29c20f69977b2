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


def members_of_batches(
    windows: Sequence[TokenWindow], max_tokens: int = MAX_BATCH_TOKENS, *, padded: bool = False
) -> Iterator[list[int]]:
    """Part windows into batches, those of like length together.

    Args:
        windows: of any length.
        max_tokens: a batch has at most so many tokens, or a single window.
        padded: whether the padding to the longest of a batch counts too.

    Yields:
        the numbers of the windows in a batch, the shortest first.
    """
    members: list[int] = []
    tokens = 0
    for number in sorted(range(len(windows)), key=lambda number: len(windows[number].token_ids)):
        length = len(windows[number].token_ids)
        # The one that comes is never shorter than those before it.
        total = length * (len(members) + 1) if padded else tokens + length
        if members and total > max_tokens:
            yield members
            members, total = [], length
        members.append(number)
        tokens = total
    if members:
        yield members


def token_budget_batches(
    windows: Sequence[TokenWindow], max_tokens: int = MAX_BATCH_TOKENS
) -> Iterator[tuple[list[int], PackedTokens]]:
    """Pack windows, those of like length together.

    Yields:
        the numbers of the windows in a batch, and the batch in the same order. A batch has at most `max_tokens` tokens,
        or a single window.
    """
    for members in members_of_batches(windows, max_tokens):
        yield members, _pack([windows[member] for member in members])


def _pack(windows: Sequence[TokenWindow]) -> PackedTokens:
    return PackedTokens.build(
        np.concatenate([window.token_ids for window in windows]),
        np.concatenate([window.segment_ids for window in windows]),
        np.concatenate([[0], np.cumsum([len(window.token_ids) for window in windows])]),
    )
