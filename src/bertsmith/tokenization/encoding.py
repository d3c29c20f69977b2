"""What a text becomes: token ids with where each came from."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Int

Places = tuple[Int[np.ndarray, "tokens 2"], Int[np.ndarray, " tokens"]]
"""Offsets and word numbers."""


@dataclass(frozen=True)
class Encoding:
    """A text, or a pair of texts, as tokens; every array has one entry a token.

    Where the tokens came from, `offsets` and `word_ids`, is found out when it is first asked for: it takes several
    times as long as the ids, and most work needs the ids alone.

    Attributes:
        token_ids: positions in the vocabulary.
        segment_ids: 0 for the first text and 1 for the second where the model's layout tells them apart, else 0.
        special_tokens_mask: 1 for control tokens (start, separators, an opted-in mask token), else 0.
        sequence_ids: 0 for tokens of the first text, 1 for those of the second, -1 for tokens that the layout added.
        find_places: gives `offsets` and `word_ids`.
    """

    token_ids: Int[np.ndarray, " tokens"]
    segment_ids: Int[np.ndarray, " tokens"]
    special_tokens_mask: Int[np.ndarray, " tokens"]
    sequence_ids: Int[np.ndarray, " tokens"]
    find_places: Callable[[], Places] = field(repr=False)

    def __len__(self) -> int:
        """How many tokens there are, control tokens included."""
        return len(self.token_ids)

    def __getstate__(self) -> dict[str, Any]:
        # What finds the places holds a tokenizer: they are found before the encoding goes elsewhere.
        state = {**self.__dict__, "_places": self._places}
        del state["find_places"]
        return state

    @property
    def offsets(self) -> Int[np.ndarray, "tokens 2"]:
        """Where each token came from: half-open ``[start, end)`` in code points of the original text, without
        surrounding whitespace; (0, 0) for tokens that the layout added."""
        return self._places[0]

    @property
    def word_ids(self) -> Int[np.ndarray, " tokens"]:
        """The number of each token's word within its own text, from 0; -1 for control tokens and for pieces that hold
        nothing but whitespace. An opted-in mask token takes a number, which none of the entries shows."""
        return self._places[1]

    @functools.cached_property
    def _places(self) -> Places:
        return self.find_places()
