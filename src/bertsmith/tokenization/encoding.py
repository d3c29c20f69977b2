"""What a text becomes: token ids with where each came from."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int


@dataclass(frozen=True)
class Encoding:
    """A text, or a pair of texts, as tokens; every array has one entry a token.

    Attributes:
        token_ids: positions in the vocabulary.
        segment_ids: 0 for the first text and 1 for the second where the model's layout tells them apart, else 0.
        special_tokens_mask: 1 for control tokens (start, separators, an opted-in mask token), else 0.
        offsets: where the token came from: half-open ``[start, end)`` in code points of the original text, without
            surrounding whitespace; (0, 0) for tokens that the layout added.
        word_ids: the number of the word within its own text, from 0; -1 for control tokens and for pieces that hold
            nothing but whitespace. An opted-in mask token takes a number, which none of the entries shows.
        sequence_ids: 0 for tokens of the first text, 1 for those of the second, -1 for tokens that the layout added.
    """

    token_ids: Int[np.ndarray, " tokens"]
    segment_ids: Int[np.ndarray, " tokens"]
    special_tokens_mask: Int[np.ndarray, " tokens"]
    offsets: Int[np.ndarray, "tokens 2"]
    word_ids: Int[np.ndarray, " tokens"]
    sequence_ids: Int[np.ndarray, " tokens"]

    def __len__(self) -> int:
        """How many tokens there are, control tokens included."""
        return len(self.token_ids)
