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
    pair_labels: Int[np.ndarray, " examples"] | None
    """For sentence pairs: 0 where the second segment follows the first; 1 where it does not, being from elsewhere in
    next sentence prediction and the text before the first in sentence order. None without pairs."""
    inner_bounds: Int[np.ndarray, " bounds"] | None = None
    """Ascending token positions at which a further separator stands inside a range; None where there are none."""
    num_left_out: int = 0
    """Stretches of text of which no example could be made: single sentences, where two are needed."""

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
    units = _units(split, max_text_tokens)
    # For each unit: the first one that a sequence beginning here cannot hold, or that is of another document.
    end_of_document = np.searchsorted(units.documents, units.documents, side="right")
    end_of_room = np.searchsorted(units.starts[1:], units.starts[:-1] + max_text_tokens, side="right")
    return _gathered(units, np.minimum(end_of_room, end_of_document), None)


def full_sentences(split: Split, max_text_tokens: int) -> PretrainingExamples:
    """Whole sentences, gathered greedily across documents (Liu et al. 2019, FULL-SENTENCES).

    Where a sequence goes on with another document, a further separator stands, which takes its place in the room.

    Args:
        split: the tokens.
        max_text_tokens: room for text and inner separators in a sequence, the frame's special tokens already taken off.

    Returns:
        the examples in the order of the text. A sentence longer than a sequence is cut and goes on in the next.

    Raises:
        InputError: if the split holds no token.
    """
    units = _units(split, max_text_tokens)
    # The number of the document counts the separators before it.
    ends = units.starts[1:] + units.documents
    following = np.searchsorted(ends, units.starts[:-1] + units.documents + max_text_tokens, side="right")
    return _gathered(units, following, units.starts[1:-1][np.diff(units.documents) > 0])


def blocks(split: Split, max_text_tokens: int) -> PretrainingExamples:
    """All text in a row, cut wherever a sequence is full.

    Sequences are of one length, which is the fastest to train on, and end in the middle of a sentence as often as not,
    so that a model does not learn that the last token is a full stop. Between documents stands a further separator;
    where a cut falls on one, it is left out.

    Args:
        split: the tokens.
        max_text_tokens: room for text and inner separators in a sequence, the frame's special tokens already taken off.

    Returns:
        the examples in the order of the text; the last one is what remains.

    Raises:
        InputError: if the split holds no token.
    """
    document_starts = _document_starts(split)
    inner = document_starts[1:]
    # Places in a row that has the separators in it too.
    separators = inner + np.arange(len(inner))
    cuts = np.arange(0, split.num_tokens + len(inner), max_text_tokens)
    starts = cuts - np.searchsorted(separators, cuts)
    ends = np.append(starts[1:], split.num_tokens)
    return PretrainingExamples(starts, ends, ends, ends, None, inner)


@dataclass(frozen=True)
class _Units:
    """Sentences, or parts of those that are longer than a sequence; none is empty."""

    starts: Int[np.ndarray, " bounds"]
    documents: Int[np.ndarray, " units"]
    """Number of each one's document, documents without a token not counted."""


def _units(split: Split, most: int) -> _Units:
    sentence_starts = np.asarray(split.sentence_starts, np.int64)
    starts = _cut_long_units(sentence_starts, most)
    return _Units(starts, np.searchsorted(_document_starts(split), starts[:-1], side="right"))


def _document_starts(split: Split) -> Int[np.ndarray, " documents"]:
    """Position of the first token of every document that has one."""
    if split.num_tokens == 0:
        raise InputError("A corpus must hold at least one token", "none", "Give more text.")
    starts = np.unique(np.asarray(split.sentence_starts, np.int64)[np.asarray(split.document_starts, np.int64)])
    return starts[starts < split.num_tokens]


def _gathered(
    units: _Units, following: Int[np.ndarray, " units"], inner_bounds: Int[np.ndarray, " bounds"] | None
) -> PretrainingExamples:
    """Examples of one segment each, every one from a unit up to the unit that follows it."""
    next_unit = following.tolist()
    firsts = [0]
    while (after := next_unit[firsts[-1]]) < len(next_unit):
        firsts.append(after)
    starts = units.starts[firsts]
    ends = np.append(starts[1:], units.starts[-1])
    return PretrainingExamples(starts, ends, ends, ends, None, inner_bounds)


def _cut_long_units(starts: Int[np.ndarray, " bounds"], most: int) -> Int[np.ndarray, " finer_bounds"]:
    """Add bounds inside units longer than `most`; empty units vanish."""
    starts = np.unique(starts)
    lengths = np.diff(starts)
    parts = -(-lengths // most)
    if not len(parts) or parts.max() == 1:
        return starts
    part = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    return np.append(np.repeat(starts[:-1], parts) + part * most, starts[-1])
