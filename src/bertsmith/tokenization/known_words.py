"""Words that came before: a text is looked up, not encoded again.

Most of a text is words that it has said already. Each is encoded once, and the pieces of a text are gathered from those
of its words in one go. `lone_words` tells for which tokenizers that gives the very same pieces.
"""

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Int, Int32

from bertsmith.tokenization.lone_words import LoneWords

_MAX_WORDS = 1 << 17
_MAX_CHARACTERS = 1 << 21
_TOGETHER = 256
_MAX_MARK = 8
"""The longest piece that is tried as a mark."""
_FIRST = "\n"
"""Stands in the place of the space before the first word of a text, where that makes a difference."""

Encode = Callable[[Sequence[str]], list[list[int]]]


class KnownWords:
    """The pieces of the words that came before; bounded: when it is full, words that came but once are forgotten.

    Encoding a word costs mostly what every call does, so new ones are encoded many at a time with a mark between
    them: a word whose one piece is in none of theirs, which the number of marks found confirms.

    Args:
        encode: gives the pieces of texts.
        rule: which words can be encoded alone.
        candidates: words with the piece that each may be, short and seldom ones first; the first that is one piece
            is the mark.
    """

    def __init__(self, encode: Encode, rule: LoneWords, candidates: Iterator[tuple[str, int]]) -> None:
        self._encode = encode
        self._rule = rule
        self._mark = next((found for found in candidates if self._is_mark(*found)), None)
        self._lock = threading.Lock()
        self._begin()

    def piece_ids(self, texts: Sequence[str]) -> tuple[Int32[np.ndarray, " tokens"], Int[np.ndarray, " texts"]]:
        """The pieces of texts, one after another, and how many each text has."""
        if not texts:
            return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
        joined = f"{_FIRST}{f' {_FIRST}'.join(texts)}" if self._rule.keeps_space else " ".join(texts)
        if self._rule.keeps_space and joined.count(_FIRST) != len(texts):
            return flat(self._encode(texts))
        with self._lock:
            numbers = self._numbered(joined.split(" "))
            starts, word_lengths, is_hard = self._starts[numbers], self._lengths[numbers], self._is_hard[numbers]
            known_ids = self._piece_ids
        num_words = np.fromiter((text.count(" ") for text in texts), np.int64, len(texts)) + 1
        firsts = np.cumsum(num_words) - num_words
        lengths = np.add.reduceat(word_lengths, firsts)
        piece_ids = _gathered(known_ids, starts, word_lengths)
        if not is_hard.any():
            return piece_ids, lengths
        return self._with_hard(texts, piece_ids, lengths, np.logical_or.reduceat(is_hard, firsts))

    def _with_hard(
        self,
        texts: Sequence[str],
        piece_ids: Int32[np.ndarray, " tokens"],
        lengths: Int[np.ndarray, " texts"],
        is_hard: Bool[np.ndarray, " texts"],
    ) -> tuple[Int32[np.ndarray, " all_tokens"], Int[np.ndarray, " texts"]]:
        """With the texts in place that hold a word which cannot be encoded alone."""
        hard_ids, hard_lengths = flat(self._encode([texts[at] for at in np.flatnonzero(is_hard).tolist()]))
        kept = piece_ids[~np.repeat(is_hard, lengths)]
        lengths[is_hard] = hard_lengths
        place = np.repeat(is_hard, lengths)
        found = np.empty(len(place), dtype=np.int32)
        found[place], found[~place] = hard_ids, kept
        return found, lengths

    def _numbered(self, words: list[str]) -> Int[np.ndarray, " words"]:
        """The numbers of words, all of which are known then."""
        if len(self._numbers) > _MAX_WORDS or self._num_characters > _MAX_CHARACTERS:
            self._forget()
        before = len(self._numbers)
        try:
            numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))
            self._learn()
        except BaseException:
            self._begin()  # Half of what was given a number may not be known.
            raise
        self._came_again[numbers[numbers < before]] = True
        return numbers

    def _begin(self) -> None:
        self._numbers = _Numbers()
        self._num_characters = 0
        self._piece_ids = np.empty(0, dtype=np.int32)
        self._starts = self._lengths = np.empty(0, dtype=np.int64)
        self._is_hard = self._came_again = np.empty(0, dtype=np.bool_)

    def _forget(self) -> None:
        """Keep the words that came again, unless they are too many: half of all words come but once."""
        kept = self._came_again
        words = [word for word, came_again in zip(self._numbers, kept.tolist(), strict=True) if came_again]
        piece_ids = _gathered(self._piece_ids, self._starts[kept], self._lengths[kept])
        lengths, is_hard = self._lengths[kept], self._is_hard[kept]
        self._begin()
        num_characters = sum(map(len, words))
        if 2 * len(words) <= _MAX_WORDS and 2 * num_characters <= _MAX_CHARACTERS:
            self._numbers.update(zip(words, range(len(words)), strict=True))
            self._num_characters = num_characters
            self._append(piece_ids, lengths, is_hard)

    def _append(
        self,
        piece_ids: Int32[np.ndarray, " tokens"],
        lengths: Int[np.ndarray, " words"],
        is_hard: Bool[np.ndarray, " words"],
    ) -> None:
        self._starts = np.concatenate([self._starts, len(self._piece_ids) + np.cumsum(lengths) - lengths])
        self._lengths = np.concatenate([self._lengths, lengths])
        self._piece_ids = np.concatenate([self._piece_ids, piece_ids])
        self._is_hard = np.concatenate([self._is_hard, is_hard])
        self._came_again = np.concatenate([self._came_again, np.zeros(len(lengths), dtype=np.bool_)])

    def _learn(self) -> None:
        """Encode the words that were just met for the first time."""
        new, self._numbers.new = self._numbers.new, []
        if not new:
            return
        self._num_characters += sum(map(len, new))
        found: dict[str, list[int]] = {}
        others = lone = [word for word in new if self._rule.hold(self._bare(word))]
        if self._rule.keeps_space:
            first = [word for word in lone if word.startswith(_FIRST)]
            others = [word for word in lone if not word.startswith(_FIRST)]
            found.update(zip(first, self._encode([self._bare(word) for word in first]), strict=True))
        for at in range(0, len(others), _TOGETHER):
            words = others[at : at + _TOGETHER]
            found.update(zip(words, self._together(words), strict=True))
        piece_ids, lengths = flat([found.get(word, []) for word in new])
        self._append(piece_ids, lengths, np.fromiter((word not in found for word in new), np.bool_, len(new)))

    def _bare(self, word: str) -> str:
        return word.removeprefix(_FIRST) if self._rule.keeps_space else word

    def _together(self, words: list[str]) -> list[list[int]]:
        """The pieces of each of some words that a space stands before."""
        if self._mark is not None:
            mark, number = self._mark
            [joined] = self._encode([self._spaced(f" {mark} ".join(words))])
            ends = [at for at, piece_id in enumerate(joined) if piece_id == number]
            if len(ends) == len(words) - 1:
                return [joined[start + 1 : end] for start, end in itertools.pairwise([-1, *ends, len(joined)])]
        return self._encode([self._spaced(word) for word in words])

    def _spaced(self, words: str) -> str:
        return f" {words}" if self._rule.keeps_space else words

    def _is_mark(self, word: str, piece_id: int) -> bool:
        return self._rule.hold(word) and self._encode([self._spaced(word)]) == [[piece_id]]


class _Numbers(dict[str, int]):
    """A number for each word, from 0, given out when it is first asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.new: list[str] = []

    def __missing__(self, word: str) -> int:
        self.new.append(word)
        number = self[word] = len(self)
        return number


def marks(vocabulary: Mapping[str, int], decode: Callable[[list[int]], str]) -> Iterator[tuple[str, int]]:
    """Words that may be one piece each, with that piece: short ones first, since a mark is encoded as often as words
    are, and among these late ones, as vocabularies go by frequency and alphabets end with what is rare."""
    short = [piece for piece in vocabulary if len(piece) <= _MAX_MARK]
    for piece in sorted(short, key=lambda piece: (len(piece), -vocabulary[piece])):
        word = decode([vocabulary[piece]]).strip()
        if word.isalpha():
            yield word, vocabulary[piece]


def flat(piece_ids: Sequence[Sequence[int]]) -> tuple[Int32[np.ndarray, " tokens"], Int[np.ndarray, " texts"]]:
    """Pieces of many texts one after another, and how many each text has."""
    lengths = np.fromiter(map(len, piece_ids), np.int64, len(piece_ids))
    every = (number for one in piece_ids for number in one)
    return np.fromiter(every, np.int32, int(lengths.sum())), lengths


def _gathered(
    values: Int32[np.ndarray, " values"], starts: Int[np.ndarray, " words"], lengths: Int[np.ndarray, " words"]
) -> Int32[np.ndarray, " tokens"]:
    """The values of ranges, one range after another."""
    ends = np.cumsum(lengths)
    return values[np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)]
