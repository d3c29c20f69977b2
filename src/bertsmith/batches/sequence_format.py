"""How a tokenizer frames text with special tokens, read off the tokenizer itself."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from bertsmith.corpus.corpus import Split
from bertsmith.examples.pretraining import PretrainingExamples
from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class SequenceFormat:
    """``[CLS] A [SEP]`` and ``[CLS] A [SEP] B [SEP]``, or what else the tokenizer writes."""

    first_id: int
    separator_id: int
    num_middle_separators: int
    second_segment_id: int
    mask_id: int
    random_ids: Int[np.ndarray, " candidates"]
    """Every token but the special ones: what random replacements are drawn from."""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "SequenceFormat":
        """Read the format off a tokenizer.

        Raises:
            InputError: if it has no mask, first or separator token.
        """
        if tokenizer.mask_id is None:
            raise InputError(
                "A tokenizer must have a mask token to train or use a masked language model",
                "a tokenizer without one",
                "Use a tokenizer made for BERT, or train one: bertsmith tokenizer train FILES --out DIR.",
            )
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
            mask_id=tokenizer.mask_id,
            random_ids=random_ids,
        )

    def num_special(self, *, pairs: bool) -> int:
        """Special tokens in a sequence."""
        return 2 + (self.num_middle_separators if pairs else 0)

    def lengths(self, examples: PretrainingExamples) -> Int[np.ndarray, " examples"]:
        """Tokens of each example, special ones included."""
        has_second = examples.second_ends > examples.second_starts
        return examples.text_lengths + 2 + self.num_middle_separators * has_second

    def assemble(self, split: Split, examples: PretrainingExamples, rows: Int[np.ndarray, " rows"]) -> "FramedTokens":
        """Fetch the tokens of some examples and frame them with special tokens."""
        first_lengths = examples.first_ends[rows] - examples.first_starts[rows]
        second_lengths = examples.second_ends[rows] - examples.second_starts[rows]
        middle = np.where(second_lengths > 0, self.num_middle_separators, 0)
        lengths = first_lengths + second_lengths + middle + 2
        starts = np.concatenate([[0], np.cumsum(lengths)])
        token_ids = np.full(starts[-1], self.separator_id, np.int64)
        segment_ids = np.zeros(starts[-1], np.int64)
        is_text = np.zeros(starts[-1], bool)
        token_ids[starts[:-1]] = self.first_id
        second_places = starts[:-1] + 1 + first_lengths + middle
        first = _places(starts[:-1] + 1, first_lengths)
        second = _places(second_places, second_lengths)
        token_ids[first] = split.tokens_of(examples.first_starts[rows], examples.first_ends[rows])[0]
        token_ids[second] = split.tokens_of(examples.second_starts[rows], examples.second_ends[rows])[0]
        is_text[first] = is_text[second] = True
        # The second segment's id covers the separator that ends it.
        segment_ids[_places(second_places, second_lengths + (second_lengths > 0))] = self.second_segment_id
        return FramedTokens(token_ids, segment_ids, is_text, starts)


@dataclass(frozen=True)
class FramedTokens:
    """Packed sequences with their special tokens."""

    token_ids: Int[np.ndarray, " tokens"]
    segment_ids: Int[np.ndarray, " tokens"]
    is_text: np.ndarray
    """False for special tokens."""
    sequence_starts: Int[np.ndarray, " bounds"]


def _places(starts: Int[np.ndarray, " ranges"], lengths: Int[np.ndarray, " ranges"]) -> Int[np.ndarray, " places"]:
    """All places of ranges that begin at `starts`, one range after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())
