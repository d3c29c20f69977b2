"""Rows of a task as tokens, those that are too long cut by a stated rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Int

from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.encoding import Encoding
from bertsmith.tokenization.tokenizer import Tokenizer

LongTexts = Literal["head", "tail"]
"""Which part of a text is kept where it is too long."""

_ENCODED_AT_ONCE = 1024


@dataclass(frozen=True)
class TaskExamples:
    """Token sequences, one after the other."""

    token_ids: Int[np.ndarray, " tokens"]
    segment_ids: Int[np.ndarray, " tokens"]
    sequence_starts: Int[np.ndarray, " examples_plus_one"]
    """First token of each sequence, and at the end the number of tokens."""
    num_cut: int
    """Sequences of which something was cut off."""

    def __len__(self) -> int:
        """How many there are."""
        return len(self.sequence_starts) - 1

    @property
    def lengths(self) -> Int[np.ndarray, " examples"]:
        """Tokens of each sequence, special ones included."""
        return np.diff(self.sequence_starts)


def task_examples(
    texts: Sequence[str | tuple[str, str]], tokenizer: Tokenizer, *, max_length: int, long_texts: LongTexts = "head"
) -> TaskExamples:
    """Encode texts or pairs.

    Args:
        texts: one a sequence.
        tokenizer: the model's.
        max_length: most tokens of a sequence, special ones included.
        long_texts: what is kept of a longer one.

    Raises:
        InputError: if `max_length` leaves no room for text.
    """
    ids: list[np.ndarray] = []
    segments: list[np.ndarray] = []
    num_cut = 0
    for first in range(0, len(texts), _ENCODED_AT_ONCE):
        for encoding in tokenizer.encode_batch(texts[first : first + _ENCODED_AT_ONCE]):
            kept = kept_tokens(encoding, max_length, long_texts)
            num_cut += len(kept) < len(encoding)
            # Half of what numpy takes by itself: a data set stays in memory as a whole.
            ids.append(encoding.token_ids[kept].astype(np.int32))
            segments.append(encoding.segment_ids[kept].astype(np.int8))
    starts = np.concatenate([[0], np.cumsum([len(part) for part in ids], dtype=np.int64)])
    empty = np.empty(0, np.int32)
    return TaskExamples(
        np.concatenate([empty, *ids]), np.concatenate([empty.astype(np.int8), *segments]), starts, num_cut
    )


def kept_tokens(encoding: Encoding, max_length: int, long_texts: LongTexts = "head") -> Int[np.ndarray, " kept"]:
    """Places of the tokens that are kept of a sequence so that it has at most `max_length`.

    Special tokens stay. Of two texts the longer one is cut first, until both are equal, as `Tokenizer.encode` does.

    Raises:
        InputError: if `max_length` leaves no room for text.
    """
    if len(encoding) <= max_length:
        return np.arange(len(encoding))
    places = [np.flatnonzero(encoding.sequence_ids == number) for number in (0, 1)]
    num_special = int((encoding.sequence_ids < 0).sum())
    room = max_length - num_special
    if room < 1:
        raise InputError(
            f"--max-length must leave room for text beside {num_special} special tokens",
            max_length,
            f"Use {num_special + 2} or more.",
        )
    shorter = min(len(part) for part in places)
    for_shorter = min(shorter, room // 2)
    # Of two equal texts, the second has the odd token.
    first_is_shorter = len(places[0]) <= len(places[1])
    counts = (for_shorter, room - for_shorter) if first_is_shorter else (room - for_shorter, for_shorter)
    kept = [
        part[:count] if long_texts == "head" else part[len(part) - count :]
        for part, count in zip(places, counts, strict=True)
    ]
    return np.sort(np.concatenate([np.flatnonzero(encoding.sequence_ids < 0), *kept]))
