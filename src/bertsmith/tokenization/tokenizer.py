"""The tokenizer that the rest of the house uses."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Bool, Int, Int32
from tokenizers import models

from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.added_words import AddedWords, normal_words, refuse_whole, with_words
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.encoding import Encoding
from bertsmith.tokenization.folder import TokenizerParts, read_folder, write_folder
from bertsmith.tokenization.known_words import KnownWords, flat, marks
from bertsmith.tokenization.layout import Layout
from bertsmith.tokenization.pieces import WORD_MARK, WordBounds, space_mark, word_bounds
from bertsmith.tokenization.summary import TrainingSummary
from bertsmith.tokenization.views import View


@final
class Tokenizer:
    """Turns text into token ids and back, with offsets into the original text.

    Text is data: what reads like a special token is cut into ordinary pieces, unless `mask_is_special` is given.
    """

    def __init__(self, parts: TokenizerParts) -> None:
        self._parts = parts
        self._library = parts.library
        self._vocabulary = self._library.get_vocab(with_added_tokens=True)
        self._layout = Layout(self._library.post_processor)

    @classmethod
    def from_folder(cls, path: str | Path) -> "Tokenizer":
        """Load a tokenizer folder in the Hugging Face layout, a tokenizer.json, or a BERT vocab.txt.

        Raises:
            InputError: if there is none, or a file of it is damaged.
        """
        return cls(read_folder(Path(path)))

    def save(self, folder: str | Path) -> None:
        """Write the files that `AutoTokenizer` and `from_folder` read into a folder, made where it is missing."""
        write_folder(Path(folder), self._parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokenizer, (self._parts,)

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

    def longest_sequence(self, num_positions: int) -> int:
        """Tokens of the longest sequence that a model of so many positions was trained on: all, where nothing says."""
        return min(num_positions, self.model_max_length or num_positions)

    def seeing(self, max_length: int, long_texts: Literal["head", "tail"] | None = None) -> "Tokenizer":
        """The same tokenizer, for a model that sees so much of a text.

        Args:
            max_length: tokens of the longest sequence, its folder's ``model_max_length``.
            long_texts: which part of a longer text is seen, its folder's ``truncation_side``; else as before.
        """
        settings = self._parts.settings
        if long_texts is not None:
            settings = settings | {"truncation_side": "left" if long_texts == "tail" else "right"}
        return Tokenizer(replace(self._parts, model_max_length=max_length, settings=settings))

    @property
    def long_texts(self) -> Literal["head", "tail"]:
        """Which part of a text the model was trained on where it is too long, from the folder's ``truncation_side``."""
        return "tail" if self._parts.settings.get("truncation_side") == "left" else "head"

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

    @property
    def has_word_bounds(self) -> bool:
        """Whether the pieces tell where words begin. Where they don't, `continues_word` is False throughout."""
        return self._word_bounds.known

    @property
    def continues_word(self) -> Bool[np.ndarray, " vocabulary"]:
        """True for each id whose piece goes on with a word, if one stands before it; see `word_starts`."""
        return self._word_bounds.continues

    def word_starts(self, token_ids: Int[np.ndarray, " tokens"]) -> Bool[np.ndarray, " tokens"]:
        """True for each token that begins a word of its own, or is a control token.

        Without the text this is all there is to go by: punctuation parts words, and a digit does not end a word.

        Args:
            token_ids: ids of one stretch of text, control tokens among them or not.
        """
        return self._word_bounds.starts(token_ids)

    @property
    def added_words(self) -> tuple[str, ...]:
        """Words that were added to the vocabulary, in the order of their ids."""
        return tuple(self._added.ids)

    @cached_property
    def added_word_ids(self) -> frozenset[int]:
        """Ids of the words that were added."""
        return frozenset(self._added.ids.values())

    @cached_property
    def space_mark(self) -> str | None:
        """What stands in a piece for the space before it, or None where nothing does, as in WordPiece."""
        return space_mark(self._library)

    def with_words(self, words: Sequence[str]) -> "Tokenizer":
        """A tokenizer that also has these words as whole pieces, for text of another domain; this one stays as it is.

        Old entries keep their ids, and the new ones follow from `vocab_size` on in the order given. A word is found
        where it stands whole, never within another, in the case and form that the normaliser leaves it.

        Args:
            words: letters and digits; each must be more than one piece now, or unknown. `word_pieces` tells.

        Raises:
            InputError: if one is no word, comes twice, or is one piece already.
        """
        if not words:
            return self
        words = normal_words(self._library, words)
        refuse_whole(words, self.word_pieces(words), self.unk_id)
        return Tokenizer(with_words(self._parts, words, first_id=self.vocab_size))

    def normalize(self, text: str) -> str:
        """The text as the tokenizer's normaliser leaves it, before it is cut into words."""
        return text if self._library.normalizer is None else self._library.normalizer.normalize_str(text)

    def word_pieces(self, words: Sequence[str]) -> list[list[int]]:
        """Ids of the pieces that each word is cut into where a space stands before it, as in running text."""
        return self.piece_ids([f" {word}" for word in words])

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
        return piece.removeprefix(WORD_MARK)

    def tokens(self, token_ids: Sequence[int] | np.ndarray) -> list[str]:
        """The pieces with these ids."""
        return [self.token(int(token_id)) for token_id in token_ids]

    def token_id(self, piece: str) -> int | None:
        """The id of a piece, or None where the vocabulary lacks it."""
        return self._vocabulary.get(piece, self._added.ids.get(piece))

    def decode(self, token_ids: Sequence[int] | np.ndarray, *, keep_special: bool = False) -> str:
        """Text of these ids, without special tokens unless `keep_special`."""
        left_out = frozenset() if keep_special else self.special_ids
        return self._added.decode([number for number in map(int, token_ids) if number not in left_out])

    def piece_ids(self, texts: list[str]) -> list[list[int]]:
        """Ids of the bare pieces of each text: no control tokens, no offsets, at the library's full speed."""
        return self._text_view.piece_ids(texts)

    def flat_piece_ids(self, texts: list[str]) -> tuple[Int32[np.ndarray, " tokens"], Int[np.ndarray, " texts"]]:
        """What `piece_ids` gives, as arrays: all pieces one after another, and how many each text has.

        Made for much text: words that came before are looked up, where that gives the same pieces. What is kept of
        them takes a few dozen megabytes at most.
        """
        known = self._known_words
        return flat(self.piece_ids(texts)) if known is None else known.piece_ids(texts)

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
        parts = [(item,) if isinstance(item, str) else item for item in texts]
        encoded = iter(view.encode([text for item in parts for text in item]))
        return [
            self._layout.arrange(
                [next(encoded) for _ in item], [partial(view.places, text) for text in item], max_length, self.mask_id
            )
            for item in parts
        ]

    @cached_property
    def _added(self) -> AddedWords:
        return AddedWords.of(self._library)

    @cached_property
    def _word_bounds(self) -> WordBounds:
        return word_bounds(self._library, self.vocab_size, self.special_ids, self.unk_id)

    @cached_property
    def _text_view(self) -> View:
        return View.of_text(self._library)

    @cached_property
    def _known_words(self) -> KnownWords | None:
        view = self._text_view
        if view.lone_words is None:
            return None
        return KnownWords(view.piece_ids, view.lone_words, marks(self._vocabulary, self.decode))

    @cached_property
    def _mask_view(self) -> View:
        if self.mask_token is None:
            raise InputError("The tokenizer must have a mask token", "one without", "Use the tokenizer of a BERT.")
        return View.of_text(self._library, mask_token=self.mask_token)

    def _role_id(self, role: str) -> int | None:
        token = self._parts.special_tokens.get(role)
        return None if token is None else self._vocabulary[token]
