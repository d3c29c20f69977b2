"""What is selected together for a masked language model: tokens, whole words, or runs of words.

Every unit is a run of words, and where tokens are selected one by one, each token is a word. Units are taken in random
order as long as they fit the budget of their sequence.

Sources: whole words as in the published code of Devlin et al. 2019, n-grams of Lan et al. 2020, section 3.2 and code,
spans of Joshi et al. 2020 (SpanBERT), section 3.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int


@dataclass(frozen=True)
class Draws:
    """Random numbers for packed sequences, asked for as so many for each sequence."""

    streams: Sequence[np.random.Generator]
    """One for all sequences; or one for each, and then what a sequence gets does not depend on those beside it."""

    def uniform(self, counts: Int[np.ndarray, " sequences"]) -> Float[np.ndarray, " numbers"]:
        """Numbers in [0, 1)."""
        if len(self.streams) == 1:
            return self.streams[0].random(int(counts.sum()))
        return np.concatenate([stream.random(n) for stream, n in zip(self.streams, counts.tolist(), strict=True)])

    def integers(self, below: int, counts: Int[np.ndarray, " sequences"]) -> Int[np.ndarray, " numbers"]:
        """Integers in [0, below)."""
        if len(self.streams) == 1:
            return self.streams[0].integers(below, size=int(counts.sum()))
        parts = [stream.integers(below, size=n) for stream, n in zip(self.streams, counts.tolist(), strict=True)]
        return np.concatenate(parts)


@dataclass(frozen=True)
class Words:
    """The eligible tokens of packed sequences as words, in the order of the text."""

    starts: Int[np.ndarray, " words"]
    """First token of each word."""
    lengths: Int[np.ndarray, " words"]
    """Tokens of each word."""
    sequences: Int[np.ndarray, " words"]
    """Number of the sequence that each word stands in."""
    num_sequences: int

    @classmethod
    def of(
        cls,
        eligible: Bool[np.ndarray, " tokens"],
        sequence_starts: Int[np.ndarray, " bounds"],
        continues: Bool[np.ndarray, " tokens"] | None,
    ) -> "Words":
        """Cut eligible tokens into words.

        Args:
            eligible: False for special tokens and padding, which no word crosses.
            sequence_starts: first token of each sequence, which no word crosses, and at the end the number of tokens.
            continues: True where a token goes on with the word of the token before it; None if each is a word.
        """
        num_sequences = len(sequence_starts) - 1
        begins = eligible
        if continues is not None:
            stretch = np.ones(len(eligible), bool)
            stretch[1:] = ~eligible[:-1]
            stretch[sequence_starts[:-1][sequence_starts[:-1] < len(eligible)]] = True
            begins = eligible & (stretch | ~continues)
        starts = np.flatnonzero(begins)
        if continues is None:
            lengths = np.ones(len(starts), np.int64)
        else:
            eligible_before = np.cumsum(eligible) - eligible
            lengths = np.diff(np.append(eligible_before[starts], int(eligible.sum())))
        counts = np.diff(np.searchsorted(starts, sequence_starts))
        return cls(starts, lengths, np.repeat(np.arange(num_sequences), counts), num_sequences)

    @property
    def counts(self) -> Int[np.ndarray, " sequences"]:
        """Words of each sequence."""
        return np.bincount(self.sequences, minlength=self.num_sequences)

    @property
    def token_counts(self) -> Int[np.ndarray, " sequences"]:
        """Eligible tokens of each sequence."""
        return np.bincount(self.sequences, weights=self.lengths, minlength=self.num_sequences).astype(np.int64)

    def to_end_of_stretch(self) -> Int[np.ndarray, " words"]:
        """How many words, each included, stand side by side up to the next special token or the sequence's end."""
        if not len(self.starts):
            return np.zeros(0, np.int64)
        ends = self.starts + self.lengths
        last = np.append((self.starts[1:] != ends[:-1]) | (self.sequences[1:] != self.sequences[:-1]), True)
        places = np.flatnonzero(last)
        number = np.arange(len(ends))
        return places[np.searchsorted(places, number)] - number + 1


def random_order(words: Words, draws: Float[np.ndarray, " words"]) -> Int[np.ndarray, " words"]:
    """The words sequence by sequence, inside each in the order of their draws."""
    return np.lexsort((draws, words.sequences))


def words_within(
    words: Words, order: Int[np.ndarray, " candidates"], budgets: Int[np.ndarray, " sequences"]
) -> Int[np.ndarray, " words"]:
    """Take words in order. One that would pass its sequence's budget is left, and the next is tried.

    Args:
        words: all of them.
        order: those that may be taken, sequence by sequence.
        budgets: most tokens in each sequence.

    Returns:
        for each word its own number, or -1 where it is not taken.
    """
    taken = np.full(len(words.starts), -1, np.int64)
    left = budgets.copy()
    waiting = order
    # One after the other in each sequence, in all sequences at once: a round takes what fits up to the first word that
    # does not. That one never fits again, nor does any longer than what is left, so a few rounds are enough.
    while len(waiting := waiting[words.lengths[waiting] <= left[words.sequences[waiting]]]):
        sequence, lengths = words.sequences[waiting], words.lengths[waiting]
        running = np.cumsum(lengths)
        before = (running - lengths)[np.searchsorted(sequence, sequence)]
        fits = running - before <= left[sequence]
        taken[waiting[fits]] = waiting[fits]
        left -= np.bincount(sequence[fits], weights=lengths[fits], minlength=len(left)).astype(np.int64)
        waiting = waiting[~fits]
    return taken


def runs_within(
    words: Words,
    order: Int[np.ndarray, " words"],
    run_lengths: Int[np.ndarray, " words"],
    budgets: Int[np.ndarray, " sequences"],
) -> Int[np.ndarray, " words"]:
    """Take runs that begin at the words in order. One that would pass its sequence's budget is made shorter by words
    until it fits; one that then meets a run taken before, or has no word left, is skipped.

    Returns:
        for each word the number of the word that begins its run, or -1 where it is not taken.
    """
    pieces_before = [0, *np.cumsum(words.lengths).tolist()]
    starting, wanted = order.tolist(), run_lengths.tolist()
    bounds = [0, *np.cumsum(words.counts).tolist()]
    covered = bytearray(len(starting))
    runs: list[tuple[int, int]] = []
    for sequence, budget in enumerate(budgets.tolist()):
        left = budget
        for first in starting[bounds[sequence] : bounds[sequence + 1]]:
            if not left:
                break
            end = first + wanted[first]
            most = pieces_before[first] + left
            while pieces_before[end] > most:
                end -= 1
            if end == first or covered.find(1, first, end) >= 0:
                continue
            covered[first:end] = b"\1" * (end - first)
            runs.append((first, end))
            left = most - pieces_before[end]
    taken = np.full(len(words.starts), -1, np.int64)
    for first, end in runs:
        taken[first:end] = first
    return taken


def drawn_run_lengths(
    draws: Float[np.ndarray, " runs"], room: Int[np.ndarray, " runs"], weights: Float[np.ndarray, " lengths"]
) -> Int[np.ndarray, " runs"]:
    """The number of words of each run.

    Args:
        draws: in [0, 1).
        room: words that are there at least; lengths up to it are drawn among, their weights scaled to add up to 1.
        weights: of the lengths 1, 2, 3 …
    """
    cumulated = np.cumsum(weights)
    most = np.minimum(room, len(weights))
    drawn = np.searchsorted(cumulated, draws * cumulated[most - 1], side="right") + 1
    return np.minimum(drawn, most)


def with_one_at_least(
    words: Words, order: Int[np.ndarray, " words"], taken: Int[np.ndarray, " words"]
) -> Int[np.ndarray, " words"]:
    """`taken`, and in each sequence that has words but none taken, the first in order."""
    has_one = np.bincount(words.sequences[taken >= 0], minlength=words.num_sequences) > 0
    counts = words.counts
    firsts = order[(np.cumsum(counts) - counts)[~has_one & (counts > 0)]]
    taken[firsts] = firsts
    return taken
