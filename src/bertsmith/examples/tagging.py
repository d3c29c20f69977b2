"""Words with labels as token sequences: the first piece of a word carries its label.

Words are cut into pieces one by one, each as it is behind a space, so that a label belongs to its word by number, and
not by its place in a row of tokens. A sentence that is too long becomes windows that overlap and never cut a word; a
word's label is read in the window in which it has the most text around it, and in no other.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from bertsmith.examples.classification import label_order, unknown_label
from bertsmith.examples.data_look import alike_note
from bertsmith.examples.tag_schemes import OUTSIDE
from bertsmith.examples.targets import IGNORED
from bertsmith.examples.task_examples import TaskExamples
from bertsmith.examples.windows import OVERLAP_SHARE
from bertsmith.foundation.errors import InputError
from bertsmith.text.shown import counted, counted_of
from bertsmith.text.tagged import TaggedSentence
from bertsmith.tokenization.tokenizer import Tokenizer

_OTHER = "X"  # What Universal Dependencies call words that are none of the rest.
_FEW_WORDS = 10
_MOST_SHOWN = 8


@dataclass(frozen=True)
class WordWindow:
    """A sentence, or a part of it, as the model sees it."""

    token_ids: Int[np.ndarray, " tokens"]
    """Special tokens included."""
    words: Int[np.ndarray, " tokens"]
    """Number, in its sentence, of the word whose label is read at each token; -1 where none is."""


@dataclass(frozen=True)
class TaggedExamples(TaskExamples):
    """Sentences as sequences; `targets` has a label for the first piece of each word, else `IGNORED`."""

    words: Int[np.ndarray, " tokens"] = field(kw_only=True)
    """As in `WordWindow`."""


class WordCutter:
    """Cuts words into pieces, and sentences into windows.

    Args:
        tokenizer: the model's.
        max_length: most tokens of a window, special ones included.

    Raises:
        InputError: if `max_length` leaves no room for text.
    """

    def __init__(self, tokenizer: Tokenizer, max_length: int) -> None:
        self._tokenizer = tokenizer
        frame = tokenizer.encode("a")
        own = np.flatnonzero(frame.sequence_ids == 0)
        first = int(own[0]) if len(own) else len(frame) - 1
        self._before = frame.token_ids[:first].astype(np.int32)
        self._after = frame.token_ids[first + len(own) :].astype(np.int32)
        num_special = len(self._before) + len(self._after)
        self._room = max_length - num_special
        if self._room < 1:
            raise InputError(
                f"--max-length must leave room for text beside {num_special} special tokens",
                max_length,
                f"Use {num_special + 2} or more.",
            )
        self._known: dict[str, np.ndarray] = {}

    def pieces(self, words: Sequence[str]) -> list[Int[np.ndarray, " _"]]:
        """Ids of the pieces of each word; none of one that is whitespace, or that the tokenizer does not see."""
        new = [word for word in dict.fromkeys(words) if word not in self._known]
        for word, ids in zip(new, self._tokenizer.word_pieces(new), strict=True):
            self._known[word] = np.array(ids if word.strip() else [], np.int32)
        return [self._known[word] for word in words]

    def windows(self, words: Sequence[str]) -> tuple[list[WordWindow], bool]:
        """A sentence's windows, none if no word has a piece; and whether some word is longer than a window."""
        pieces = self.pieces(words)
        sizes = np.array([len(ids) for ids in pieces], np.int64)
        if not sizes.sum():
            return [], False
        cut = [ids[: self._room] for ids in pieces]
        ranges = word_ranges(np.minimum(sizes, self._room), self._room, int(OVERLAP_SHARE * self._room))
        return [self._window(cut, *bounds) for bounds in ranges], bool((sizes > self._room).any())

    def _window(
        self, pieces: Sequence[Int[np.ndarray, " _"]], seen: tuple[int, int], read: tuple[int, int]
    ) -> WordWindow:
        sizes = np.array([len(ids) for ids in pieces[slice(*seen)]], np.int64)
        starts = len(self._before) + np.cumsum(sizes) - sizes
        token_ids = np.concatenate([self._before, *pieces[slice(*seen)], self._after])
        words = np.full(len(token_ids), -1, np.int32)
        inside = np.flatnonzero(sizes[read[0] - seen[0] : read[1] - seen[0]]) + read[0] - seen[0]
        words[starts[inside]] = inside + seen[0]
        return WordWindow(token_ids, words)


def word_ranges(
    sizes: Int[np.ndarray, " words"], room: int, overlap: int
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Windows over a sentence that is too long for one.

    Args:
        sizes: pieces of each word, `room` at most.
        room: most pieces in a window.
        overlap: pieces that a window shares with the one before it, at most; fewer where a long word leaves no room.
            The last window shares as many as find room.

    Returns:
        for each window the words ``[start, end)`` in it and, among them, those whose label is read there. All words
        are read, each once: of two windows that have it, in the one that goes on for more pieces on its shorter side.
    """
    ends = np.cumsum(sizes)
    starts = ends - sizes
    total = len(sizes)
    seen: list[tuple[int, int]] = []
    first = 0
    while True:
        end = int(np.searchsorted(ends, starts[first] + room, side="right"))
        seen.append((first, end))
        if end == total:
            break
        shared = int(np.searchsorted(starts, ends[end - 1] - overlap))
        fits = int(np.searchsorted(starts, ends[end] - room))  # So that the next window has a word that this has not.
        first = max(shared, fits)
    if len(seen) > 1:
        seen[-1] = (int(np.searchsorted(starts, ends[-1] - room)), total)
    bounds = [0]
    for (_, end), (begin, _) in pairwise(seen):
        before, behind = starts[begin:end] - starts[begin], ends[end - 1] - ends[begin:end]
        bounds.append(max(bounds[-1], begin + int(np.count_nonzero(before <= behind))))
    return list(zip(seen, zip(bounds, [*bounds[1:], total], strict=True), strict=True))


def tagged_examples(
    sentences: Sequence[TaggedSentence],
    ids: Sequence[Int[np.ndarray, " _"]],
    tokenizer: Tokenizer,
    *,
    max_length: int,
) -> TaggedExamples:
    """Sentences as token sequences.

    Args:
        sentences: the sentences. One without any piece becomes no sequence.
        ids: the label of each word, for each sentence.
        tokenizer: the model's.
        max_length: most tokens of a sequence, special ones included.

    Raises:
        InputError: if `max_length` leaves no room for text, or no word has a piece.
    """
    cutter = WordCutter(tokenizer, max_length)
    found: list[tuple[int, WordWindow]] = []
    num_cut = 0
    for row, sentence in enumerate(sentences):
        windows, is_cut = cutter.windows(sentence.words)
        found += [(row, window) for window in windows]
        num_cut += is_cut
    if not found:
        raise InputError(
            "Sentences must have a word that the tokenizer sees",
            f"{counted(len(sentences), 'sentence')} without one",
            "Give other sentences, or a model with another tokenizer.",
        )
    joined = TaskExamples.of(
        [(window.token_ids, np.zeros(len(window.token_ids), np.int8)) for _, window in found],
        [row for row, _ in found],
        targets=np.concatenate(
            [np.where(one.words < 0, IGNORED, ids[row][one.words]).astype(np.int32) for row, one in found]
        ),
        targets_by="token",
    )
    words = np.concatenate([window.words for _, window in found])
    notes: list[str] = []
    if num_cut:
        notes.append(
            f"sentences with a word too long for {max_length} tokens, of which the beginning is seen: {num_cut:,}"
        )
    if unseen := sum(len(sentence.words) for sentence in sentences) - int((words >= 0).sum()):
        notes.append(f"words in which the tokenizer sees nothing, so that nothing is learned from them: {unseen:,}")
    inherited = {one.name: getattr(joined, one.name) for one in fields(joined) if one.name != "notes"}
    return TaggedExamples(**inherited, notes=tuple(notes), words=words)


def tag_labels(sentences: Iterable[TaggedSentence], path: Path) -> tuple[str, ...]:
    """Every label of the words, ordered by name; numbers by their value.

    Raises:
        InputError: for one label alone.
    """
    names = {tag for sentence in sentences for tag in sentence.tags}
    if len(names) < 2:
        raise InputError(
            "A tagger must have two labels at least to tell apart",
            f"only {min(names, default='none')} for every word of {path}",
            "Add sentences with other labels, or name another column with --label.",
        )
    return label_order(names)


def tag_ids(sentences: Sequence[TaggedSentence], labels: Sequence[str], path: Path) -> list[Int[np.ndarray, " _"]]:
    """Place of each word's label among `labels`, found by its name.

    Raises:
        InputError: for a label that is none of them; it is named with its line and word.
    """
    places = {name: place for place, name in enumerate(labels)}
    found: list[np.ndarray] = []
    for sentence in sentences:
        unknown = next((number for number, tag in enumerate(sentence.tags) if tag not in places), None)
        if unknown is not None:
            tag, word = sentence.tags[unknown], sentence.words[unknown]
            raise unknown_label(tag, labels, path, sentence.word_place(unknown), word=word)
        found.append(np.array([places[tag] for tag in sentence.tags], np.int64))
    return found


def tag_counts(sentences: Iterable[TaggedSentence], labels: Sequence[str]) -> dict[str, int]:
    """Words of each label."""
    counts = Counter(tag for sentence in sentences for tag in sentence.tags)
    return {name: counts[name] for name in labels}


def tag_notes(sentences: Sequence[TaggedSentence], labels: Sequence[str]) -> list[str]:
    """What a person should know of training sentences, a line each."""
    notes: list[str] = []
    if repeated := len(sentences) - len({sentence.key for sentence in sentences}):
        notes.append(counted_of(repeated, len(sentences), "sentence", "repeats another", "repeat another"))
    if note := alike_note(labels):
        notes.append(note)
    rare = [f"{name} {count}" for name, count in tag_counts(sentences, labels).items() if count < _FEW_WORDS]
    if rare:
        more = f" and {len(rare) - _MOST_SHOWN:,} more" if len(rare) > _MOST_SHOWN else ""
        notes.append(f"labels of fewer than {_FEW_WORDS} training words: {', '.join(rare[:_MOST_SHOWN])}{more}")
    return notes


def label_presence(sentences: Sequence[TaggedSentence], labels: Sequence[str]) -> Float[np.ndarray, "sentences labels"]:
    """1 where a sentence has a word of the label, else 0."""
    places = {name: place for place, name in enumerate(labels)}
    found = np.zeros((len(sentences), len(labels)), np.float32)
    for number, sentence in enumerate(sentences):
        found[number, [places[tag] for tag in set(sentence.tags)]] = 1
    return found


def label_without_pieces(labels: Sequence[str]) -> str:
    """What a word is labelled that the tokenizer cannot see: `O`, else `X`, else the first label."""
    return next((name for name in (OUTSIDE, _OTHER) if name in labels), labels[0])
