"""How a tokenizer frames text with special tokens, read off the tokenizer itself."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from bertsmith.corpus.corpus import Split
from bertsmith.examples.pretraining import PretrainingExamples
from bertsmith.examples.ranges import places_of
from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class SequenceFormat:
    """``[CLS] A [SEP]`` and ``[CLS] A [SEP] B [SEP]``, or what else the tokenizer writes."""

    first_id: int
    separator_id: int
    num_middle_separators: int
    second_segment_id: int
    mask_id_if_any: int | None
    """None for a tokenizer without a mask token; `mask_id` for all that cannot do without."""
    random_ids: Int[np.ndarray, " candidates"]
    """Every token but the special ones: what random replacements are drawn from."""
    word_starts: Callable[[np.ndarray], np.ndarray]
    """From tokens to whether each begins a word, as their pieces tell it."""
    has_word_bounds: bool
    """Whether they do tell it."""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "SequenceFormat":
        """Read the format off a tokenizer.

        Raises:
            InputError: if it has no first or separator token.
        """
        if tokenizer.cls_id is None or tokenizer.sep_id is None:
            raise InputError(
                "A tokenizer must have a first and a separator token",
                "a tokenizer without them",
                "Use a tokenizer made for BERT, or train one: bertsmith tokenizer train FILES --out DIR.",
            )
        pair = tokenizer.encode("a", "a")
        separators = np.flatnonzero(pair.token_ids == tokenizer.sep_id)
        random_ids = np.setdiff1d(np.arange(tokenizer.vocab_size), list(tokenizer.special_ids))
        return cls(
            first_id=tokenizer.cls_id,
            separator_id=tokenizer.sep_id,
            num_middle_separators=len(separators) - 1,
            second_segment_id=int(pair.segment_ids[-1]),
            mask_id_if_any=tokenizer.mask_id,
            random_ids=random_ids,
            word_starts=tokenizer.word_starts,
            has_word_bounds=tokenizer.has_word_bounds,
        )

    @property
    def mask_id(self) -> int:
        """The mask token.

        Raises:
            InputError: if the tokenizer has none.
        """
        if self.mask_id_if_any is None:
            raise InputError(
                "A tokenizer must have a mask token to train or use a masked language model",
                "a tokenizer without one",
                "Use a tokenizer made for BERT, or train one: bertsmith tokenizer train FILES --out DIR.",
            )
        return self.mask_id_if_any

    def num_special(self, *, pairs: bool) -> int:
        """Special tokens in a sequence."""
        return 2 + (self.num_middle_separators if pairs else 0)

    def lengths(self, examples: PretrainingExamples) -> Int[np.ndarray, " examples"]:
        """Tokens of each example, special ones included."""
        has_second = examples.second_ends > examples.second_starts
        lengths = examples.text_lengths + 2 + self.num_middle_separators * has_second
        if examples.inner_bounds is not None:
            first, after = _inside(examples.inner_bounds, examples.first_starts, examples.first_ends)
            lengths += after - first
        return lengths

    def assemble(self, split: Split, examples: PretrainingExamples, rows: Int[np.ndarray, " rows"]) -> "FramedTokens":
        """Fetch the tokens of some examples and frame them with special tokens."""
        parts = self._parts(examples, rows)
        lengths = parts.ends - parts.starts
        ends = np.cumsum(parts.separators + lengths)
        # Each sequence has its first token and its last separator besides its parts.
        bounds = np.searchsorted(parts.rows, np.arange(len(rows) + 1))
        starts = np.append(0, ends)[bounds] + 2 * np.arange(len(rows) + 1)
        places = ends - lengths + 1 + 2 * parts.rows
        text = places_of(places, lengths)
        token_ids = np.full(starts[-1], self.separator_id, np.int64)
        token_ids[starts[:-1]] = self.first_id
        token_ids[text] = split.tokens_of(parts.starts, parts.ends)[0]
        is_text = np.zeros(starts[-1], bool)
        is_text[text] = True
        segment_ids = np.zeros(starts[-1], np.int64)
        # The second segment's id covers the separator that ends it.
        second = parts.in_second
        segment_ids[places_of(places[second], lengths[second] + 1)] = self.second_segment_id
        begins = np.zeros(starts[-1], bool)
        begins[places[lengths > 0]] = True
        first_sentence, after_last = np.searchsorted(split.sentence_starts, np.stack([parts.starts, parts.ends]))
        counts = after_last - first_sentence
        shifts = np.repeat(places - parts.starts, counts)
        begins[split.sentence_starts[places_of(first_sentence, counts)] + shifts] = True
        return FramedTokens(token_ids, segment_ids, is_text, begins, starts)

    def continues(self, framed: "FramedTokens") -> Bool[np.ndarray, " tokens"]:
        """True where a token goes on with the word of the token before it. No word crosses special tokens."""
        # Sentences are tokenized one by one, and the first piece of one need not look like the beginning of a word.
        continues = ~self.word_starts(framed.token_ids) & framed.is_text & ~framed.begins_sentence
        continues[1:] &= framed.is_text[:-1]
        return continues

    def _parts(self, examples: PretrainingExamples, rows: Int[np.ndarray, " rows"]) -> "_Parts":
        """The ranges of text of some examples, and what separates them."""
        if examples.inner_bounds is not None:
            return _Parts.cut(examples.inner_bounds, examples.first_starts[rows], examples.first_ends[rows])
        has_second = examples.second_ends[rows] > examples.second_starts[rows]
        number = np.arange(len(rows))
        # First segments of all rows, then the second ones that there are; sorted by row, each pair stands together.
        row = np.append(number, number[has_second])
        order = np.argsort(row, kind="stable")
        in_second = np.repeat([False, True], [len(rows), has_second.sum()])[order]
        return _Parts(
            rows=row[order],
            starts=np.append(examples.first_starts[rows], examples.second_starts[rows][has_second])[order],
            ends=np.append(examples.first_ends[rows], examples.second_ends[rows][has_second])[order],
            separators=self.num_middle_separators * in_second,
            in_second=in_second,
        )


@dataclass(frozen=True)
class FramedTokens:
    """Packed sequences with their special tokens."""

    token_ids: Int[np.ndarray, " tokens"]
    segment_ids: Int[np.ndarray, " tokens"]
    is_text: Bool[np.ndarray, " tokens"]
    """False for special tokens."""
    begins_sentence: Bool[np.ndarray, " tokens"]
    """True for the first token of a sentence, or of what stands of it."""
    sequence_starts: Int[np.ndarray, " bounds"]


@dataclass(frozen=True)
class _Parts:
    """Ranges of text in the order in which they stand in a batch."""

    rows: Int[np.ndarray, " parts"]
    """Number of the sequence that each is in, ascending."""
    starts: Int[np.ndarray, " parts"]
    ends: Int[np.ndarray, " parts"]
    separators: Int[np.ndarray, " parts"]
    """How many stand before each."""
    in_second: Bool[np.ndarray, " parts"]
    """Whether it belongs to the second segment."""

    @classmethod
    def cut(
        cls,
        bounds: Int[np.ndarray, " bounds"],
        starts: Int[np.ndarray, " rows"],
        ends: Int[np.ndarray, " rows"],
    ) -> "_Parts":
        """Sequences of one range each, cut where a separator stands inside."""
        first, after = _inside(bounds, starts, ends)
        number = np.arange(len(starts))
        row = np.append(number, np.repeat(number, after - first))
        # A part begins where its sequence does, or at a bound; sorted by row, the bounds follow the beginning.
        order = np.argsort(row, kind="stable")
        separators = np.repeat([0, 1], [len(starts), len(row) - len(starts)])[order]
        inner = bounds[places_of(first, after - first)]
        part_starts = np.append(starts, inner)[order]
        # It ends where the next part of the sequence begins, or with the sequence.
        row = row[order]
        is_last = np.append(row[1:] != row[:-1], True)[: len(row)]
        part_ends = np.append(part_starts[1:], 0)[: len(row)]
        part_ends[is_last] = ends
        return cls(row, part_starts, part_ends, separators, np.zeros(len(row), bool))


def _inside(
    bounds: Int[np.ndarray, " bounds"], starts: Int[np.ndarray, " rows"], ends: Int[np.ndarray, " rows"]
) -> tuple[Int[np.ndarray, " rows"], Int[np.ndarray, " rows"]]:
    """Numbers of the first bound inside each range, and of the first one behind those inside."""
    return np.searchsorted(bounds, starts, side="right"), np.searchsorted(bounds, ends, side="left")
