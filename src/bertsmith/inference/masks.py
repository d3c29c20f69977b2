"""Masks of a text, each with the part of the text around it that a model takes."""

from dataclasses import dataclass

import numpy as np

from bertsmith.inference.running import TokenWindow


@dataclass(frozen=True)
class MaskRequest:
    """A window around one mask."""

    text: str
    mask_index: int
    span: tuple[int, int]
    """The mask token's place in the text."""
    window: TokenWindow
    position: int
    """The mask's place in the window."""


def window_around(whole: TokenWindow, position: int, max_length: int) -> tuple[TokenWindow, int]:
    """The part of a sequence that the model takes, with a position as near to its middle as can be.

    Returns:
        the window, framed by the first and last token of the whole, and the position's place in it.
    """
    ids, segments = whole.token_ids, whole.segment_ids
    if len(ids) <= max_length:
        return whole, position
    room = max_length - 2
    start = int(np.clip(position - room // 2, 1, len(ids) - 1 - room))
    keep = np.concatenate([[0], np.arange(start, start + room), [len(ids) - 1]])
    return TokenWindow(ids[keep], segments[keep]), position - start + 1
