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
    """Cut sequences into runs of at most `most` tokens each, as even as can be; one sequence at least."""
    total = int(sequence_starts[-1])
    most = max(most, int(np.diff(sequence_starts).max(initial=0)))
    parts = -(-total // most)
    while True:
        wanted = np.arange(1, parts) * total / parts
        cuts = np.unique(np.concatenate([[0], np.searchsorted(sequence_starts, wanted), [len(sequence_starts) - 1]]))
        if np.diff(sequence_starts[cuts]).max(initial=0) <= most:
            return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
        parts += 1
