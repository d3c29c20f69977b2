"""Targets: what is to be scored in the place of a mask instead of the likeliest pieces."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from bertsmith.foundation.errors import InputError
from bertsmith.inference.masks import MaskRequest, window_around
from bertsmith.inference.running import TokenWindow
from bertsmith.text.shown import shortened
from bertsmith.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class TargetRequest:
    """A target in a mask's place: its pieces in a row of as many masks, each asked for with those before it known."""

    target: str
    filled: str
    pieces: Int[np.ndarray, " pieces"]
    steps: tuple[tuple[TokenWindow, int], ...]
    """For each piece a window, and the place in it that is asked for."""


def listed_targets(given: str | Iterable[str]) -> list[str]:
    """Targets as a list; none where none were given.

    Raises:
        InputError: for a string that names none, or what is no text.
    """
    parts = [part.strip() for part in given.split(",") if part.strip()] if isinstance(given, str) else list(given)
    if isinstance(given, str) and not parts:
        raise InputError("--targets must name words", f"“{given}”", "For example --targets cat,dog; or leave it out.")
    for part in parts:
        if not isinstance(part, str):
            raise InputError("Targets must be texts", repr(part)[:60], 'For example targets=["cat", "dog"].')
    return parts


def target_request(request: MaskRequest, target: str, tokenizer: Tokenizer, max_length: int) -> TargetRequest:
    """A target that is to be scored whole, in a window around it.

    Args:
        request: the mask.
        target: what may stand in its place.
        tokenizer: the model's, which has a mask token.
        max_length: most tokens of a window.

    Raises:
        InputError: for a target that the vocabulary cannot write, that grows together with the letters beside the mask,
            or that is longer than a window.
    """
    assert tokenizer.mask_token is not None
    start, end = request.span
    filled = request.text[:start] + target + request.text[end:]
    encoding = tokenizer.encode(filled, mask_is_special=True)
    places = np.flatnonzero(
        (encoding.offsets[:, 0] < start + len(target)) & (encoding.offsets[:, 1] > start) & (encoding.word_ids >= 0)
    )
    # From the first to the last, so that a piece of mere space between two words counts too.
    pieces = encoding.token_ids[places[0] : places[-1] + 1] if len(places) else places
    if not len(pieces) or tokenizer.unk_id in pieces or tokenizer.mask_token in target:
        raise InputError(
            "A target must be written in the model's vocabulary",
            f"“{target}”, which becomes {tokenizer.tokens(pieces) or 'nothing'}",
            "Leave it out of --targets.",
        )
    first, last = int(encoding.offsets[places[0], 0]), int(encoding.offsets[places[-1], 1])
    if filled[first:start].strip() or filled[start + len(target) : last].strip():
        raise InputError(
            "A target must not grow together with the letters beside the mask",
            f"“{target}” within the piece “{filled[first:last]}”",
            "Put a space beside the mask, or leave it out of --targets.",
        )
    if len(pieces) > max_length - 2:
        raise InputError(
            "A target must fit the model",
            f"“{shortened(target)}”, {len(pieces)} pieces and longer than {max_length - 2}",
            "Leave it out of --targets.",
        )
    middle = len(pieces) // 2
    whole = TokenWindow(encoding.token_ids, encoding.segment_ids)
    window, place = window_around(whole, int(places[0]) + middle, max_length)
    first = place - middle
    hidden = window.token_ids.copy()
    hidden[first : first + len(pieces)] = tokenizer.mask_id
    steps: list[tuple[TokenWindow, int]] = []
    for known in range(len(pieces)):
        token_ids = hidden.copy()
        token_ids[first : first + known] = pieces[:known]
        steps.append((TokenWindow(token_ids, window.segment_ids), first + known))
    return TargetRequest(target, filled, pieces, tuple(steps))
