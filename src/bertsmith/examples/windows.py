"""A text that is longer than a sequence, as several that overlap."""

import numpy as np
from jaxtyping import Float, Int

from bertsmith.foundation.errors import InputError

OVERLAP_SHARE = 0.25
"""How much of a window's room it shares with the one before it, where that is not said."""


def windows_of(length: int, room: int, overlap: int) -> list[tuple[int, int]]:
    """Ranges ``[start, end)`` that cover a text.

    Args:
        length: tokens of the text.
        room: most tokens of a range.
        overlap: tokens that a range shares with the one before it, at least. The last range ends with the text and is
            as long as the others, so that it shares more.

    Returns:
        one range where the text fits, also where it is empty; else ranges of `room` tokens each.

    Raises:
        InputError: if ranges of such a room and overlap would not move forward.
    """
    if length <= room:
        return [(0, length)]
    if overlap < 0 or overlap >= room:
        raise InputError(
            "The windows of a long text must each bring new tokens, so their overlap must be smaller than their room",
            f"an overlap of {overlap} tokens, and room for {room}",
            "Use a smaller overlap, or a larger --max-length.",
        )
    starts = [*range(0, length - room, room - overlap), length - room]
    return [(start, start + room) for start in starts]


def means_by_row(
    outputs: Float[np.ndarray, "sequences outputs"], rows: Int[np.ndarray, " sequences"]
) -> Float[np.ndarray, "rows outputs"]:
    """The mean over each row's windows.

    Args:
        outputs: what a model says of each window.
        rows: number of each one's row, ascending, none left out.
    """
    firsts = np.flatnonzero(np.diff(rows, prepend=-1))
    counts = np.diff(np.append(firsts, len(rows)))
    return (np.add.reduceat(outputs, firsts, axis=0) / counts[:, None]).astype(outputs.dtype) if len(rows) else outputs
