"""The tokenizer that the rest of the house uses."""

import hashlib
import json
import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Bool
from tokenizers import Encoding as LibraryEncoding
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models

from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.encoding import Encoding
from bertsmith.tokenization.folder import TokenizerParts, read_folder, write_folder
from bertsmith.tokenization.pieces import continuing_pieces
from bertsmith.tokenization.summary import TrainingSummary
from bertsmith.tokenization.views import View

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@final
class Tokenizer:
    """Turns text into token ids and back, with offsets into the original text.

    Text is data: what reads like a special token is cut into ordinary pieces, unless `mask_is_special` is given.
    """

    def __init__(self, parts: TokenizerParts) -> None:
        self._parts = parts
        self._library = parts.library
        self._vocabulary = self._library.get_vocab(with_added_tokens=True)
        self._layout = LibraryTokenizer(models.WordLevel({"": 0}, unk_token=""))
        self._layout.post_processor = self._library.post_processor
        self._layout_lock = threading.Lock()

    @classmethod
    def from_folder(cls, path: str | Path) -> "Tokenizer":
        """Load a tokenizer folder in the Hugging Face layout, a tokenizer.json, or a BERT vocab.txt.

        Raises:
            InputError: if there is none, or a file of it is damaged.
        """
        return cls(read_folder(Path(path)))

    def save(self, folder: str | Path, *, max_length: int | None = None) -> None:
        """Write the files that `AutoTokenizer` and `from_folder` read.

        Args:
            folder: made where it is missing.
            max_length: the longest input of the model in tokens, kept as ``model_max_length``; None keeps what the
                tokenizer was loaded with.
        """
        length = max_length if max_length is not None else self.model_max_length
        write_folder(Path(folder), replace(self._parts, model_max_length=length))

    def __reduce__(self) -> tuple[Any, ...]:
        parts = self._parts
        return _rebuild, (
            self._library.to_str(),
            parts.special_tokens,
            parts.model_max_length,
            parts.config,
            parts.summary,
            parts.settings,
        )

    @property
    def config(self) -> TokenizerConfig | None:
        """How it was trained, or None where it was not trained here."""
        return self._parts.config

    @property
    def summary(self) -> TrainingSummary | None:
        """What training found, or None where it was not trained here."""
        return self._parts.summary

    @property
    def model_max_length(self) -> int | None:
        """The longest input in tokens, or None where the folder does not say."""
        return self._parts.model_max_length

    @cached_property
    def vocab_size(self) -> int:
        """How many rows an embedding needs: the highest id, added tokens included, plus one."""
        return max(self._vocabulary.values()) + 1

    @property
    def max_word_characters(self) -> int | None:
        """A longer word becomes one unknown token; None where the algorithm has no such limit."""
        model = self._library.model
        return model.max_input_chars_per_word if isinstance(model, models.WordPiece) else None

    @property
    def mask_token(self) -> str | None:
        """The text of the mask token, or None where there is none."""
        return self._parts.special_tokens.get("mask")

    @property
    def mask_id(self) -> int | None:
        """The mask token's id, or None."""
        return self._role_id("mask")

    @property
    def pad_id(self) -> int | None:
        """The padding token's id, or None."""
        return self._role_id("pad")

    @property
    def cls_id(self) -> int | None:
        """The id of the token that opens a text, or None."""
        return self._role_id("cls")

    @property
    def sep_id(self) -> int | None:
        """The id of the token that closes a text, or None."""
        return self._role_id("sep")

    @property
    def unk_id(self) -> int | None:
        """The unknown token's id, or None."""
        return self._role_id("unk")

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids of every special token: those with a role, and others that the tokenizer declares special."""
        added = self._library.get_added_tokens_decoder()
        declared = {number for number, token in added.items() if token.special}
        return frozenset(declared | {self._vocabulary[token] for token in self._parts.special_tokens.values()})

    @cached_property
    def continues_word(self) -> Bool[np.ndarray, " vocabulary"]:
        """True for each id whose piece can only go on with a word that another piece began."""
        return continuing_pieces(self._library, self.vocab_size, self.special_ids)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical tokenizer.json: equal exactly where two tokenizers act alike."""
        canonical = json.dumps(json.loads(self._library.to_str()), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def token(self, token_id: int) -> str:
        """The piece with this id.

        Raises:
            InputError: if no piece has it.
        """
        piece = self._library.id_to_token(token_id) if token_id >= 0 else None
        if piece is None:
            raise InputError(f"A token id lies in [0, {self.vocab_size})", token_id, "Was another tokenizer used?")
        return piece

    def tokens(self, token_ids: Sequence[int] | np.ndarray) -> list[str]:
        """The pieces with these ids."""
        return [self.token(int(token_id)) for token_id in token_ids]

    def token_id(self, piece: str) -> int | None:
        """The id of a piece, or None where the vocabulary lacks it."""
        return self._vocabulary.get(piece)

    def decode(self, token_ids: Sequence[int] | np.ndarray, *, keep_special: bool = False) -> str:
        """Text of these ids, without special tokens unless `keep_special`."""
        return self._library.decode([int(number) for number in token_ids], skip_special_tokens=not keep_special)

    def piece_ids(self, texts: list[str]) -> list[list[int]]:
        """Ids of the bare pieces of each text: no control tokens, no offsets, at the library's full speed."""
        batch = self._text_view.library.encode_batch_fast(
            [_encodable(text) for text in texts], add_special_tokens=False
        )
        return [encoding.ids for encoding in batch]

    def encode(
        self, text: str, pair: str | None = None, *, max_length: int | None = None, mask_is_special: bool = False
    ) -> Encoding:
        """Tokens of a text, or of two texts, in the model's layout.

        Args:
            text: the text.
            pair: the second text, where there are two.
            max_length: at most so many tokens, control tokens included. Cut from the end; of two texts the longer one
                is cut first, until both are equal.
            mask_is_special: let the mask token's text stand for the mask. All other text stays text.

        Raises:
            InputError: if `max_length` has no room for the control tokens, or there is no mask token to be special.
        """
        return self.encode_batch([text if pair is None else (text, pair)], max_length, mask_is_special)[0]

    def encode_batch(
        self,
        texts: Sequence[str | tuple[str, str]],
        max_length: int | None = None,
        mask_is_special: bool = False,
    ) -> list[Encoding]:
        """`encode` for many texts or pairs at once; results stand in the order given."""
        view = self._mask_view if mask_is_special else self._text_view
        flat = [_encodable(part) for item in texts for part in ((item,) if isinstance(item, str) else item)]
        encoded = iter(view.encode(flat))
        results: list[Encoding] = []
        for item in texts:
            num_texts = 1 if isinstance(item, str) else 2
            results.append(self._arrange([next(encoded) for _ in range(num_texts)], max_length))
        return results

    def _arrange(
        self, sequences: list[tuple[LibraryEncoding, list[tuple[int, int]], list[int]]], max_length: int | None
    ) -> Encoding:
        pair = sequences[1][0] if len(sequences) > 1 else None
        laid_out = self._lay_out(sequences[0][0], pair, max_length)
        special = np.array(laid_out.special_tokens_mask, dtype=np.int64)
        # Laying out keeps the number of the second text only; what else is no control token is of the first.
        second = np.array([number == 1 for number in laid_out.sequence_ids], dtype=np.bool_)
        sequence_ids = np.where(special == 1, -1, second.astype(np.int64))
        offsets = np.zeros((len(sequence_ids), 2), dtype=np.int64)
        word_ids = np.full(len(sequence_ids), -1, dtype=np.int64)
        for number, (_, places, words) in enumerate(sequences):
            where = np.flatnonzero(sequence_ids == number)
            if len(where):  # Cutting leaves the beginning.
                offsets[where] = places[: len(where)]
                word_ids[where] = words[: len(where)]
        token_ids = np.array(laid_out.ids, dtype=np.int64)
        if self.mask_id is not None:
            special[token_ids == self.mask_id] = 1
        word_ids[special == 1] = -1
        segment_ids = np.array(laid_out.type_ids, dtype=np.int64)
        return Encoding(token_ids, segment_ids, special, offsets, word_ids, sequence_ids)

    def _lay_out(
        self, first: LibraryEncoding, second: LibraryEncoding | None, max_length: int | None
    ) -> LibraryEncoding:
        if max_length is None:
            with self._layout_lock:
                self._layout.no_truncation()
                return self._layout.post_process(first, second)
        num_control = self._layout.num_special_tokens_to_add(second is not None)
        if max_length < num_control:
            raise InputError(
                f"max_length must leave room for {num_control} control tokens", max_length, "Give a larger max_length."
            )
        with self._layout_lock:
            self._layout.enable_truncation(max_length, strategy="longest_first")
            return self._layout.post_process(first, second)

    @cached_property
    def _text_view(self) -> View:
        return View.of_text(self._library)

    @cached_property
    def _mask_view(self) -> View:
        if self.mask_token is None:
            raise InputError("The tokenizer must have a mask token", "one without", "Use the tokenizer of a BERT.")
        return View.of_text(self._library, mask_token=self.mask_token)

    def _role_id(self, role: str) -> int | None:
        token = self._parts.special_tokens.get(role)
        return None if token is None else self._vocabulary[token]


def _encodable(text: str) -> str:
    # Lone surrogates have no UTF-8 form; the stand-in keeps the number of code points.
    return text if text.isascii() or text.isprintable() else _LONE_SURROGATE.sub("\ufffd", text)


def _rebuild(library: str, *rest: Any) -> Tokenizer:
    return Tokenizer(TokenizerParts(LibraryTokenizer.from_str(library), *rest))
