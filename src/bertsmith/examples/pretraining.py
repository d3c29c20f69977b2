"""What a model is shown while pre-training: ranges of a corpus's tokens, as plain columns.

A row is one sequence: a first segment and, for sentence pairs, a second one. Rows hold token positions and not tokens,
so that an epoch of any size is a few columns of integers.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from bertsmith.corpus.corpus import Split
from bertsmith.foundation.errors import InputError


@dataclass(frozen=True)
class PretrainingExamples:
    """Sequences as ranges ``[start, end)`` of token positions in one split of a corpus."""

    first_starts: Int[np.ndarray, " examples"]
    first_ends: Int[np.ndarray, " examples"]
    second_starts: Int[np.ndarray, " examples"]
    """Equal to `second_ends` where an example has one segment only."""
    second_ends: Int[np.ndarray, " examples"]
    next_sentence_labels: Int[np.ndarray, " examples"] | None
    """For sentence pairs: 0 where the second segment really follows the first, 1 where it is from elsewhere."""

    def __len__(self) -> int:
        return len(self.first_starts)

    @property
    def text_lengths(self) -> Int[np.ndarray, " examples"]:
        """Tokens of both segments together, without special ones."""
        return self.first_ends - self.first_starts + self.second_ends - self.second_starts


def document_sentences(split: Split, max_text_tokens: int) -> PretrainingExamples:
    """Whole sentences, gathered greedily inside a document (Liu et al. 2019, DOC-SENTENCES).

    Args:
        split: the tokens.
        max_text_tokens: room for text in a sequence, its special tokens already taken off.

    Returns:
        the examples in the order of the text. A sentence longer than a sequence is cut and goes on in the next.

    Raises:
        InputError: if the split holds no token.
    """
    sentence_starts = np.asarray(split.sentence_starts, np.int64)
    document_ends = sentence_starts[np.asarray(split.document_starts, np.int64)[1:]]
    unit_starts = _cut_long_units(sentence_starts, max_text_tokens)
    if len(unit_starts) < 2:
        raise InputError("A corpus must hold at least one token", "none", "Give more text.")
    # For each unit: the furthest unit that a sequence beginning here may end before, inside its document.
    furthest_token = np.minimum(
        unit_starts[:-1] + max_text_tokens,
        document_ends[np.searchsorted(document_ends, unit_starts[:-1], side="right")],
    )
    next_unit = (np.searchsorted(unit_starts, furthest_token, side="right") - 1).tolist()
    firsts = [0]
    last = len(unit_starts) - 1
    while (following := next_unit[firsts[-1]]) < last:
        firsts.append(following)
    starts = unit_starts[firsts]
    ends = np.append(starts[1:], unit_starts[-1])
    return PretrainingExamples(starts, ends, ends, ends, None)


def _cut_long_units(starts: Int[np.ndarray, " bounds"], most: int) -> Int[np.ndarray, " finer_bounds"]:
    """Add bounds inside units longer than `most`; empty units vanish."""
    starts = np.unique(starts)
    lengths = np.diff(starts)
    parts = -(-lengths // most)
    if not len(parts) or parts.max() == 1:
        return starts
    part = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    return np.append(np.repeat(starts[:-1], parts) + part * most, starts[-1])
