"""One tokenizer seen in two ways: every special token's name as mere text, or with the mask as the one exception."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokenizers import Encoding as LibraryEncoding
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers.normalizers import Replace

from bertsmith.tokenization.lone_words import LoneWords, lone_words
from bertsmith.tokenization.offsets import Aligner, NormalizedText
from bertsmith.tokenization.pieces import WORD_MARK, space_mark

# A piece that no text can yield: line breaks part words before any vocabulary is asked.
_HIDDEN = "\n\n{}\n\n"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class View:
    """A way of encoding bare text.

    Attributes:
        library: the tokenizer that gives the ids.
        normalized: the same for text that is normalised already; None where there is no normaliser.
        aligner: tells where normalised characters came from; None where there is no normaliser.
        mask_token: the mask token's text, where it acts as such.
        lone_words: the words that can be encoded alone; None where none can.
    """

    library: LibraryTokenizer
    normalized: LibraryTokenizer | None
    aligner: Aligner | None
    mask_token: str | None
    lone_words: LoneWords | None

    @classmethod
    def of_text(cls, library: LibraryTokenizer, *, mask_token: str | None = None) -> "View":
        """The view in which special tokens are text, but for `mask_token` where given."""
        state = json.loads(library.to_str())
        specials = {token["content"] for token in state["added_tokens"] if token["special"]}
        if mask_token is not None and all(token["content"] != mask_token for token in state["added_tokens"]):
            state["added_tokens"].append(_added(library, mask_token))
        for token in state["added_tokens"]:
            if token["content"] == mask_token:
                # Where pieces hold the space before a word, the mask takes it too, or it would be a piece of its own.
                eats_space = token["lstrip"] or space_mark(library) is not None
                token.update(special=False, normalized=False, lstrip=eats_space)
        if state["model"]["type"] == "Unigram":
            _hide(state, specials - {mask_token})
        shown = _build(state)
        alone = lone_words(shown, state)
        if library.normalizer is None:
            return cls(shown, None, None, mask_token, alone)
        bare = _build({**state, "normalizer": None})
        if any(token["content"].startswith(WORD_MARK) for token in state["added_tokens"]):
            bare.normalizer = Replace(WORD_MARK, "")  # The added words are normal already, but for their mark.
        return cls(shown, bare, Aligner(library.normalizer.normalize_str), mask_token, alone)

    def piece_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids alone, at the library's full speed."""
        return [encoding.ids for encoding in self.encode(texts)]

    def encode(self, texts: Sequence[str]) -> list[LibraryEncoding]:
        """The library's encodings of bare texts, which tell nothing of where pieces came from."""
        return self.library.encode_batch_fast([_encodable(text) for text in texts], add_special_tokens=False)

    def places(self, text: str) -> tuple[list[tuple[int, int]], list[int]]:
        """Where the pieces of a text came from.

        Returns:
            their offsets in code points of the text, trimmed of whitespace, and the number of each one's word, -1 where
            only whitespace is left.
        """
        text = _encodable(text)
        encoding = self.library.encode(text, add_special_tokens=False)
        places = list(encoding.offsets)
        normal = self._align(text)
        if normal is not None and self.normalized is not None:
            again = self.normalized.encode(normal.text, add_special_tokens=False)
            if again.ids == encoding.ids:
                places = [normal.original(start, end) for start, end in again.offsets]
        return _words(text, self._without_eaten_space(text, encoding, places), encoding.word_ids)

    def _without_eaten_space(
        self, text: str, encoding: LibraryEncoding, places: list[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        # A mask token may take the space around it, and what is invisible between.
        mask = self.mask_token
        if mask is None:
            return places
        mask_id = self.library.token_to_id(mask)
        found = [
            text.rfind(mask, start, end) if number == mask_id else -1
            for number, (start, end) in zip(encoding.ids, places, strict=True)
        ]
        return [(at, at + len(mask)) if at >= 0 else place for at, place in zip(found, places, strict=True)]

    def _align(self, text: str) -> NormalizedText | None:
        # What a normaliser does to ASCII never joins characters, so the library's offsets hold.
        if self.aligner is None or text.isascii():
            return None
        return self.aligner.align(text, self.mask_token)


def _encodable(text: str) -> str:
    # Lone surrogates have no UTF-8 form; the stand-in keeps the number of code points.
    return text if text.isascii() or text.isprintable() else _LONE_SURROGATE.sub("\ufffd", text)


def _words(
    text: str, places: list[tuple[int, int]], library_words: list[int | None]
) -> tuple[list[tuple[int, int]], list[int]]:
    """Trim whitespace off the offsets, and number the words that remain from 0."""
    trimmed: list[tuple[int, int]] = []
    words: list[int] = []
    current: int | None = None
    count = -1
    for (start, end), word in zip(places, library_words, strict=True):
        while start < end and _is_blank(text[start]):
            start += 1
        while end > start and _is_blank(text[end - 1]):
            end -= 1
        trimmed.append((start, end))
        if start == end:
            words.append(-1)
            continue
        if word is None or word != current:
            count += 1
            current = word
        words.append(count)
    return trimmed, words


def _is_blank(character: str) -> bool:
    return character.isspace() or character == "\u200b"  # To Python the zero-width space is no space.


def _build(state: dict[str, Any]) -> LibraryTokenizer:
    library = LibraryTokenizer.from_str(json.dumps(state))
    library.encode_special_tokens = True
    return library


def _added(library: LibraryTokenizer, token: str) -> dict[str, Any]:
    return {
        "id": library.token_to_id(token),
        "content": token,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": False,
    }


def _hide(state: dict[str, Any], specials: set[str]) -> None:
    """Keep Unigram, which may cut whole words out of its vocabulary, from finding the names of special tokens in it."""
    held = {piece for piece, _ in state["model"]["vocab"]} & specials
    state["model"]["vocab"] = [
        [_HIDDEN.format(piece) if piece in held else piece, score] for piece, score in state["model"]["vocab"]
    ]
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] not in held]
