"""Sentence pairs: for next sentence prediction (Devlin et al. 2019, section 3.1 and appendix A.2) and for sentence
order (Lan et al. 2020, section 3.1).

Two things differ from the published generators. A random second segment always comes from another document, so that no
true continuation is called random, and sentence order never has random segments. And the target length is drawn for
each example, not once a document: with few, long documents a single draw would decide the lengths of a whole book.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from bertsmith.corpus.corpus import Split
from bertsmith.examples.pretraining import PretrainingExamples
from bertsmith.foundation.errors import InputError

_SHORT_SEQUENCE_SHARE = 0.1
_RANDOM_SHARE = 0.5
_SWAPPED_SHARE = 0.5
_BLOCK_ROWS = 1 << 16
"""Rows are made as tuples, which take much memory, and kept as columns: so many are tuples at a time."""

_Row = tuple[int, int, int, int, int]
"""Token bounds of both segments, not yet cut to length, and the label."""


@dataclass(frozen=True)
class _Sentences:
    """Sentence bounds as lists: an epoch of pairs is built one chunk at a time, where lists are fast."""

    starts: list[int]
    documents: list[int]

    @classmethod
    def of(cls, split: Split) -> "_Sentences":
        return cls(np.asarray(split.sentence_starts).tolist(), np.asarray(split.document_starts).tolist())

    @property
    def num_documents(self) -> int:
        return len(self.documents) - 1

    def chunk(self, position: int, end: int, target: int) -> int:
        """Where a chunk from sentence `position` on ends: when it has the target's tokens, or with the document."""
        return bisect_left(self.starts, self.starts[position] + target, position + 1, end)


def sentence_pairs(split: Split, max_text_tokens: int, stream: np.random.Generator) -> PretrainingExamples:
    """One epoch of pairs for next sentence prediction. Label 0: the second segment follows the first; 1: it is random.

    Args:
        split: the tokens, with at least two documents.
        max_text_tokens: room for both segments together, special tokens already taken off; at least 2.
        stream: decides lengths, cuts and random segments.

    Raises:
        InputError: if there are fewer than two documents.
    """
    if split.num_documents < 2:
        raise InputError(
            "Next sentence prediction needs at least two documents, since a random sentence must come from another one",
            f"{split.num_documents} in the {split.folder.name} part",
            "Part documents by a blank line, hold out a larger share of them, or train with --objective mlm.",
        )
    sentences = _Sentences.of(split)
    rows = _columns(sentences, lambda document: _next_sentence_rows(sentences, document, max_text_tokens, stream))
    return _examples(rows, max_text_tokens, stream)


def sentence_order_pairs(split: Split, max_text_tokens: int, stream: np.random.Generator) -> PretrainingExamples:
    """One epoch of pairs for sentence order. Label 0: two neighbouring segments as they stand; 1: swapped.

    A chunk of a single sentence has no order. It is left out and counted in `num_left_out`.

    Args:
        split: the tokens.
        max_text_tokens: room for both segments together, special tokens already taken off; at least 2.
        stream: decides lengths, cuts and which pairs are swapped.

    Raises:
        InputError: if there is no pair of sentences at all.
    """
    sentences = _Sentences.of(split)
    rows = _columns(sentences, lambda document: _in_order_rows(sentences, document, max_text_tokens, stream))
    has_two = rows[1] < rows[3]
    left_out = int((~has_two).sum())
    rows = rows[:, has_two]
    if rows.shape[1] == 0:
        raise InputError(
            "Sentence order needs two sentences side by side that fit a sequence",
            f"{left_out} single sentences in the {split.folder.name} part",
            "Part documents and not sentences by a blank line, give a larger --max-length, or train with "
            "--objective mlm.",
        )
    return _examples(_some_swapped(rows, stream), max_text_tokens, stream, num_left_out=left_out)


def _columns(sentences: _Sentences, rows_of: Callable[[int], list[_Row]]) -> Int[np.ndarray, "5 rows"]:
    """The rows of all documents as columns."""
    blocks: list[np.ndarray] = [np.zeros((0, 5), np.int64)]
    rows: list[_Row] = []
    for document in range(sentences.num_documents):
        rows += rows_of(document)
        if len(rows) >= _BLOCK_ROWS:
            blocks.append(np.array(rows, np.int64))
            rows = []
    blocks.append(np.array(rows, np.int64).reshape(-1, 5))
    return np.concatenate(blocks).T


def _examples(
    rows: Int[np.ndarray, "5 rows"], max_text_tokens: int, stream: np.random.Generator, num_left_out: int = 0
) -> PretrainingExamples:
    first_starts, first_ends, second_starts, second_ends, labels = np.ascontiguousarray(rows)
    bounds = _truncate((first_starts, first_ends), (second_starts, second_ends), max_text_tokens, stream)
    return PretrainingExamples(*bounds, labels, num_left_out=num_left_out)


def _target(max_text_tokens: int, stream: np.random.Generator) -> int:
    if stream.random() < _SHORT_SEQUENCE_SHARE:
        return int(stream.integers(2, max_text_tokens + 1))
    return max_text_tokens


def _next_sentence_rows(
    sentences: _Sentences, document: int, max_text_tokens: int, stream: np.random.Generator
) -> list[_Row]:
    """Pairs of one document. Sentences whose place a random segment took go back, and begin the next chunk."""
    starts = sentences.starts
    position, end = sentences.documents[document], sentences.documents[document + 1]
    rows: list[_Row] = []
    while position < end:
        target = _target(max_text_tokens, stream)
        chunk_end = sentences.chunk(position, end, target)
        size = chunk_end - position
        middle = position + (1 if size == 1 else int(stream.integers(1, size)))
        if size == 1 or stream.random() < _RANDOM_SHARE:
            room = target - (starts[middle] - starts[position])
            second, second_end = _random_segment(sentences, document, room, stream)
            rows.append((starts[position], starts[middle], starts[second], starts[second_end], 1))
            position = middle
        else:
            rows.append((starts[position], starts[middle], starts[middle], starts[chunk_end], 0))
            position = chunk_end
    return rows


def _in_order_rows(
    sentences: _Sentences, document: int, max_text_tokens: int, stream: np.random.Generator
) -> list[_Row]:
    """Chunks of one document, each cut in two; where it is a single sentence, the second part is empty."""
    starts = sentences.starts
    position, end = sentences.documents[document], sentences.documents[document + 1]
    rows: list[_Row] = []
    while position < end:
        chunk_end = sentences.chunk(position, end, _target(max_text_tokens, stream))
        size = chunk_end - position
        middle = position + (1 if size == 1 else int(stream.integers(1, size)))
        rows.append((starts[position], starts[middle], starts[middle], starts[chunk_end], 0))
        position = chunk_end
    return rows


def _some_swapped(rows: Int[np.ndarray, "5 rows"], stream: np.random.Generator) -> Int[np.ndarray, "5 rows"]:
    swapped = stream.random(rows.shape[1]) < _SWAPPED_SHARE
    return np.concatenate([np.where(swapped, rows[[2, 3, 0, 1]], rows[:4]), swapped[None].astype(np.int64)])


def _random_segment(sentences: _Sentences, document: int, room: int, stream: np.random.Generator) -> tuple[int, int]:
    """Sentences ``[first, end)`` of another document, from a random one on until they fill `room` tokens."""
    other = int(stream.integers(sentences.num_documents - 1))
    other += other >= document
    first_of_other, end_of_other = sentences.documents[other], sentences.documents[other + 1]
    first = int(stream.integers(first_of_other, end_of_other))
    return first, sentences.chunk(first, end_of_other, room)


Bounds = tuple[Int[np.ndarray, " examples"], Int[np.ndarray, " examples"]]


def _truncate(
    first: Bounds, second: Bounds, most: int, stream: np.random.Generator
) -> tuple[
    Int[np.ndarray, " examples"],
    Int[np.ndarray, " examples"],
    Int[np.ndarray, " examples"],
    Int[np.ndarray, " examples"],
]:
    """Drop tokens from the longer segment, each from its front or its back with equal chance, until both fit."""
    first_lengths, second_lengths = first[1] - first[0], second[1] - second[0]
    excess = np.maximum(first_lengths + second_lengths - most, 0)
    # The longer side loses tokens until the sides are equal; from there on they lose in turn, the second first.
    lead = first_lengths - second_lengths
    only_longer = np.minimum(excess, np.abs(lead))
    shared = excess - only_longer
    drop_first = np.where(lead > 0, only_longer, 0) + shared // 2
    drop_second = np.where(lead > 0, 0, only_longer) + shared - shared // 2
    first_front = stream.binomial(drop_first, 0.5)
    second_front = stream.binomial(drop_second, 0.5)
    return (
        first[0] + first_front,
        first[1] - (drop_first - first_front),
        second[0] + second_front,
        second[1] - (drop_second - second_front),
    )
