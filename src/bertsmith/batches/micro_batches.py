"""A step's sequences in parts that each fit one forward pass."""

import numpy as np
from jaxtyping import Int

_FEW_TOKENS, _FINE, _COARSE = 2048, 32, 128


def token_multiple(num_tokens: int) -> int:
    """What the tokens of a part are filled up to a multiple of, so that shapes come from a short list.

    Few tokens are filled up less: in fine-tuning a step may have 500, of which half a coarse multiple is an eighth.
    """
    return _FINE if num_tokens <= _FEW_TOKENS else _COARSE


def micro_bounds(sequence_starts: Int[np.ndarray, " bounds"], most: int) -> list[tuple[int, int]]:
    """Cut sequences into runs of at most `most` tokens each, few and even ones; one sequence at least."""
    total = int(sequence_starts[-1])
    longest = int(np.diff(sequence_starts).max(initial=0))
    most = max(most, longest)
    few = len(_filled_runs(sequence_starts, most))
    # The least limit with which there are as few.
    lower, upper = max(longest, -(-total // max(few, 1))), most
    while lower < upper:
        middle = (lower + upper) // 2
        if len(_filled_runs(sequence_starts, middle)) > few:
            lower = middle + 1
        else:
            upper = middle
    return _filled_runs(sequence_starts, upper)


def _filled_runs(sequence_starts: Int[np.ndarray, " bounds"], most: int) -> list[tuple[int, int]]:
    """Runs that are filled in turn, with at most `most` tokens, which hold the longest sequence."""
    runs: list[tuple[int, int]] = []
    first, last = 0, len(sequence_starts) - 1
    while first < last:
        end = int(np.searchsorted(sequence_starts, sequence_starts[first] + most, side="right")) - 1
        runs.append((first, end))
        first = end
    return runs
