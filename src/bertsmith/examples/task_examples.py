"""Rows of a task as tokens; those that are too long are cut, or read in windows, by a stated rule."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Int, Shaped

from bertsmith.examples.windows import OVERLAP_SHARE, windows_of
from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.encoding import Encoding
from bertsmith.tokenization.tokenizer import Tokenizer

LongTexts = Literal["head", "tail", "windows"]
"""What is seen of a text that is too long: its beginning, its end, or all of it, a window at a time."""
TargetsBy = Literal["sequence", "token", "group"]

_ENCODED_AT_ONCE = 1024


@dataclass(frozen=True)
class TaskExamples:
    """Token sequences, one after the other, and what must be found in them."""

    token_ids: Int[np.ndarray, " tokens"]
    segment_ids: Int[np.ndarray, " tokens"]
    sequence_starts: Int[np.ndarray, " sequences_plus_one"]
    """First token of each sequence, and at the end the number of tokens."""
    rows: Int[np.ndarray, " sequences"]
    """Number of the row that each sequence is of, ascending: the windows of a row follow each other."""
    targets: Shaped[np.ndarray, "..."] = field(default_factory=lambda: np.empty(0, np.int64))
    """What must be found, of each sequence, token or group; empty where nothing is known."""
    targets_by: TargetsBy = "sequence"
    group_starts: Int[np.ndarray, " groups_plus_one"] | None = None
    """First sequence of each group, where sequences belong together: the choices of a question, the sides of a pair."""
    num_cut: int = 0
    """Rows of which something is not seen."""
    notes: tuple[str, ...] = ()
    """What else a person should know of the rows as they became sequences, a line each."""

    @classmethod
    def of(
        cls,
        sequences: Sequence[tuple[np.ndarray, np.ndarray]],
        rows: Sequence[int] | Int[np.ndarray, " sequences"],
        *,
        targets: Shaped[np.ndarray, "..."] | None = None,
        targets_by: TargetsBy = "sequence",
        group_starts: Int[np.ndarray, " groups_plus_one"] | None = None,
        num_cut: int = 0,
    ) -> "TaskExamples":
        """Join sequences, each given as its token ids and its segment ids. The rest is as in the class."""
        # Half of what numpy takes by itself: a data set stays in memory as a whole.
        ids = [np.empty(0, np.int32), *(tokens.astype(np.int32) for tokens, _ in sequences)]
        segments = [np.empty(0, np.int8), *(segment.astype(np.int8) for _, segment in sequences)]
        starts = np.cumsum([len(part) for part in ids], dtype=np.int64)
        return cls(
            np.concatenate(ids),
            np.concatenate(segments),
            starts,
            np.asarray(rows, np.int64),
            np.empty(0, np.int64) if targets is None else targets,
            targets_by,
            group_starts,
            num_cut,
        )

    def __len__(self) -> int:
        """How many sequences there are."""
        return len(self.sequence_starts) - 1

    @property
    def lengths(self) -> Int[np.ndarray, " sequences"]:
        """Tokens of each sequence, special ones included."""
        return np.diff(self.sequence_starts)


def text_examples(
    texts: Sequence[str | tuple[str, str]],
    row_targets: Shaped[np.ndarray, "rows ..."],
    tokenizer: Tokenizer,
    *,
    max_length: int,
    long_texts: LongTexts = "head",
) -> TaskExamples:
    """Encode texts or pairs that each have one target.

    Args:
        texts: one a row.
        row_targets: what must be found, one a row, or nothing. Each window of a row is to give the row's.
        tokenizer: the model's.
        max_length: most tokens of a sequence, special ones included.
        long_texts: what is seen of a longer one.

    Raises:
        InputError: if `max_length` leaves no room for text.
    """
    sequences: list[tuple[np.ndarray, np.ndarray]] = []
    rows: list[int] = []
    num_cut = 0
    for first in range(0, len(texts), _ENCODED_AT_ONCE):
        for row, encoding in enumerate(tokenizer.encode_batch(texts[first : first + _ENCODED_AT_ONCE]), first):
            windows = kept_windows(encoding, max_length, long_texts)
            num_cut += is_cut(encoding, windows)
            sequences += [(encoding.token_ids[kept], encoding.segment_ids[kept]) for kept in windows]
            rows += [row] * len(windows)
    targets = row_targets[rows] if len(row_targets) else None
    return TaskExamples.of(sequences, rows, targets=targets, num_cut=num_cut)


def refuse_long_texts(long_texts: LongTexts, known: Sequence[LongTexts], reason: str) -> None:
    """Raise an `InputError` for a treatment of long texts that would do nothing.

    Args:
        long_texts: what was asked for.
        known: what may be.
        reason: why nothing else may be.
    """
    if long_texts not in known:
        raise InputError(f"long_texts must be {' or '.join(known)}: {reason}", long_texts, f"Use {known[-1]}.")


def is_cut(encoding: Encoding, windows: Sequence[Int[np.ndarray, "..."]]) -> bool:
    """Whether something of an encoding stands in none of its windows."""
    shown = windows[0] if len(windows) == 1 else np.unique(np.concatenate(windows))
    return len(shown) < len(encoding)


def kept_windows(encoding: Encoding, max_length: int, long_texts: LongTexts = "head") -> list[Int[np.ndarray, " kept"]]:
    """Places of the tokens that stand in each sequence of at most `max_length` that an encoding becomes.

    Special tokens stay in every one. Of two texts the longer one is cut first, until both are equal, as
    `Tokenizer.encode` does; in windows, the longer one moves along and the shorter one is cut at its end if it must be.

    Raises:
        InputError: if `max_length` leaves no room for text.
    """
    if len(encoding) <= max_length:
        return [np.arange(len(encoding))]
    places = [np.flatnonzero(encoding.sequence_ids == number) for number in (0, 1)]
    special = np.flatnonzero(encoding.sequence_ids < 0)
    room = max_length - len(special)
    if room < 1:
        raise InputError(
            f"--max-length must leave room for text beside {len(special)} special tokens",
            max_length,
            f"Use {len(special) + 2} or more.",
        )
    shorter = min(len(part) for part in places)
    for_shorter = min(shorter, room // 2)
    # Of two equal texts, the second has the odd token.
    first_is_shorter = len(places[0]) <= len(places[1])
    counts = (for_shorter, room - for_shorter) if first_is_shorter else (room - for_shorter, for_shorter)
    if long_texts == "windows":
        moving = int(first_is_shorter)
        still = places[1 - moving][: counts[1 - moving]]
        of_moving = windows_of(len(places[moving]), counts[moving], int(OVERLAP_SHARE * counts[moving]))
        return [np.sort(np.concatenate([special, still, places[moving][start:end]])) for start, end in of_moving]
    kept = [
        part[:count] if long_texts == "head" else part[len(part) - count :]
        for part, count in zip(places, counts, strict=True)
    ]
    return [np.sort(np.concatenate([special, *kept]))]
