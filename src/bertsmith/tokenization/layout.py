"""Control tokens around one text and around two, and cutting to a length."""

import functools
import threading
from collections.abc import Callable

import numpy as np
from jaxtyping import Int
from tokenizers import Encoding as LibraryEncoding
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models, processors

from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.encoding import Encoding, Places

FindPlaces = Callable[[], tuple[list[tuple[int, int]], list[int]]]
"""Gives the offsets of the tokens of a bare text, and the numbers of their words."""


class Layout:
    """Puts a tokenizer's control tokens around bare texts; for use by many threads at once.

    Args:
        post_processor: the tokenizer's own, which knows the layout; None where nothing is put around.
    """

    def __init__(self, post_processor: processors.PostProcessor | None) -> None:
        self._library = LibraryTokenizer(models.WordLevel({"": 0}, unk_token=""))
        self._library.post_processor = post_processor
        self._lock = threading.Lock()

    def arrange(
        self,
        sequences: list[LibraryEncoding],
        places: list[FindPlaces],
        max_length: int | None,
        mask_id: int | None,
    ) -> Encoding:
        """One bare text, or two, as the model takes them.

        Args:
            sequences: one or two.
            places: for each, what finds the offsets and word numbers of its tokens.
            max_length: at most so many tokens, control tokens included; None cuts nothing.
            mask_id: counts as special wherever it stands.

        Raises:
            InputError: if `max_length` has no room for the control tokens.
        """
        laid_out = self._lay_out(sequences[0], sequences[1] if len(sequences) > 1 else None, max_length)
        special = np.array(laid_out.special_tokens_mask, dtype=np.int64)
        # Laying out keeps the number of the second text only; what else is no control token is of the first.
        second = np.array([number == 1 for number in laid_out.sequence_ids], dtype=np.int64)
        sequence_ids = np.where(special == 1, -1, second)
        token_ids = np.array(laid_out.ids, dtype=np.int64)
        if mask_id is not None:
            special[token_ids == mask_id] = 1
        segment_ids = np.array(laid_out.type_ids, dtype=np.int64)
        return Encoding(
            token_ids, segment_ids, special, sequence_ids, functools.partial(_places, places, sequence_ids, special)
        )

    def _lay_out(
        self, first: LibraryEncoding, second: LibraryEncoding | None, max_length: int | None
    ) -> LibraryEncoding:
        if max_length is None:
            with self._lock:
                self._library.no_truncation()
                return self._library.post_process(first, second)
        num_control = self._library.num_special_tokens_to_add(second is not None)
        if max_length < num_control:
            raise InputError(
                f"max_length must leave room for {num_control} control tokens", max_length, "Give a larger max_length."
            )
        with self._lock:
            self._library.enable_truncation(max_length, strategy="longest_first")
            return self._library.post_process(first, second)


def _places(
    places: list[FindPlaces], sequence_ids: Int[np.ndarray, " tokens"], special: Int[np.ndarray, " tokens"]
) -> Places:
    offsets = np.zeros((len(sequence_ids), 2), dtype=np.int64)
    word_ids = np.full(len(sequence_ids), -1, dtype=np.int64)
    for number, find in enumerate(places):
        where = np.flatnonzero(sequence_ids == number)
        if len(where):  # Cutting leaves the beginning.
            found, words = find()
            offsets[where] = found[: len(where)]
            word_ids[where] = words[: len(where)]
    word_ids[special == 1] = -1
    return offsets, word_ids
