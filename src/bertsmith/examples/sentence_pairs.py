"""Sentence pairs for next sentence prediction (Devlin et al. 2019, section 3.1 and appendix A.2).

Two things differ from the published generator. A random second segment always comes from another document, so that no
true continuation is called random. And the target length is drawn for each example, not once a document: with few, long
documents a single draw would decide the lengths of a whole book.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from bertsmith.corpus.corpus import Split
from bertsmith.examples.pretraining import PretrainingExamples
from bertsmith.foundation.errors import InputError

_SHORT_SEQUENCE_SHARE = 0.1
_RANDOM_SHARE = 0.5


@dataclass(frozen=True)
class _Sentences:
    """Sentence bounds as lists: an epoch of pairs is built one sentence at a time, where lists are fast."""

    starts: list[int]
    documents: list[int]

    @property
    def num_documents(self) -> int:
        return len(self.documents) - 1


def sentence_pairs(split: Split, max_text_tokens: int, stream: np.random.Generator) -> PretrainingExamples:
    """One epoch of sentence pairs.

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
    sentences = _Sentences(np.asarray(split.sentence_starts).tolist(), np.asarray(split.document_starts).tolist())
    rows = [
        row
        for document in range(sentences.num_documents)
        for row in _pairs(sentences, document, max_text_tokens, stream)
    ]
    columns = np.array(rows, np.int64).T
    first_starts, first_ends, second_starts, second_ends, labels = columns
    bounds = _truncate((first_starts, first_ends), (second_starts, second_ends), max_text_tokens, stream)
    return PretrainingExamples(*bounds, labels)


def _pairs(
    sentences: _Sentences, document: int, max_text_tokens: int, stream: np.random.Generator
) -> list[tuple[int, int, int, int, int]]:
    """Pairs of one document, not yet cut to length: token bounds of both segments, and the label."""
    starts = sentences.starts
    position, end = sentences.documents[document], sentences.documents[document + 1]
    rows: list[tuple[int, int, int, int, int]] = []
    while position < end:
        target = max_text_tokens
        if stream.random() < _SHORT_SEQUENCE_SHARE:
            target = int(stream.integers(2, max_text_tokens + 1))
        chunk_end = position + 1
        while chunk_end < end and starts[chunk_end] - starts[position] < target:
            chunk_end += 1
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


def _random_segment(sentences: _Sentences, document: int, room: int, stream: np.random.Generator) -> tuple[int, int]:
    """Sentences ``[first, end)`` of another document, from a random one on until they fill `room` tokens."""
    other = int(stream.integers(sentences.num_documents - 1))
    other += other >= document
    first_of_other, end_of_other = sentences.documents[other], sentences.documents[other + 1]
    first = int(stream.integers(first_of_other, end_of_other))
    end = first + 1
    while end < end_of_other and sentences.starts[end] - sentences.starts[first] < room:
        end += 1
    return first, end


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
