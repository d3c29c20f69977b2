"""Where words begin, as the pieces alone tell it."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models

from bertsmith.tokenization.characters import BYTE_SPACE, PieceCharacters, piece_bytes, stands_apart

SPACE_MARK = "\u2581"
WORD_MARK = "\u2063"
"""The invisible separator: begins the entry of an added word that stands for the word with the space before it."""
_PROBE = "ab"  # A word that no pre-tokenizer parts, unless it parts every character.


@dataclass(frozen=True)
class WordBounds:
    """What each piece tells about the words around it; the arrays have one entry an id.

    Attributes:
        known: whether the pieces tell where words begin.
        continues: the piece goes on with a word wherever a word can go on before it.
        closes: no word goes on after it: a control token or an added word.
        opens: the piece is a space alone, which belongs to the word after it.
        unspaced: the piece does not begin with a space, so that it can stand behind one that opens.
        characters: what the pieces hold, where that tells words; None where a mark of continuation does.
    """

    known: bool
    continues: Bool[np.ndarray, " vocabulary"]
    closes: Bool[np.ndarray, " vocabulary"]
    opens: Bool[np.ndarray, " vocabulary"]
    unspaced: Bool[np.ndarray, " vocabulary"]
    characters: PieceCharacters | None

    def starts(self, token_ids: Int[np.ndarray, " tokens"]) -> Bool[np.ndarray, " tokens"]:
        """True for each token that begins a word, or is a control token."""
        before = token_ids[:-1]
        if self.characters is None:
            starts = ~self.continues[token_ids]
        else:
            starts = ~(self.unspaced[token_ids] & self.characters.go_on(token_ids))
        starts[:1] = True
        starts[1:] |= self.closes[before]
        starts[1:] &= ~(self.opens[before] & self.unspaced[token_ids[1:]])
        return starts


def word_bounds(
    library: LibraryTokenizer, vocab_size: int, special_ids: frozenset[int], unk_id: int | None
) -> WordBounds:
    """Read off the pieces where words begin.

    In WordPiece a piece that goes on with a word carries the continuation mark. In byte-level BPE and in Unigram it
    lacks the mark of a leading space, and is no punctuation, which is a word of its own.
    """
    mark, prefix = space_mark(library), continuation_prefix(library)
    continues, closes, opens, unspaced = np.zeros((4, vocab_size), dtype=np.bool_)
    vocabulary = library.get_vocab(with_added_tokens=True)
    apart = special_ids | library.get_added_tokens_decoder().keys()
    closes[list(apart)] = True
    if mark is not None and unk_id is not None:  # Within a word there, where it stands for a character.
        closes[unk_id], unspaced[unk_id] = False, True
    pieces = {number: piece for piece, number in vocabulary.items() if number not in apart}
    known = _are_known(library, mark, prefix, pieces.values())
    for number, piece in pieces.items() if known else ():
        if prefix is not None:
            continues[number] = piece.startswith(prefix)
        elif mark is not None:
            continues[number] = _goes_on(piece, mark)
            opens[number], unspaced[number] = piece == mark, not piece.startswith(mark)
    characters = None if mark is None or not known else PieceCharacters.of(pieces, vocab_size, mark=mark)
    return WordBounds(known, continues, closes, opens, unspaced, characters)


def space_mark(library: LibraryTokenizer) -> str | None:
    """What stands in a piece for the space before it, or None where nothing does."""
    if continuation_prefix(library) is not None or isinstance(library.model, models.WordPiece | models.WordLevel):
        return None
    joined = "".join(_parts(library))
    for mark in (SPACE_MARK, BYTE_SPACE):
        if joined.endswith(f"{_PROBE}{mark}{_PROBE}"):
            return mark
    return None


def continuation_prefix(library: LibraryTokenizer) -> str | None:
    """The mark of a piece that goes on with a word, or None where there is none."""
    model = library.model
    return model.continuing_subword_prefix or None if isinstance(model, models.WordPiece | models.BPE) else None


def _are_known(library: LibraryTokenizer, mark: str | None, prefix: str | None, pieces: Iterable[str]) -> bool:
    parts = _parts(library)
    if prefix is not None or isinstance(library.model, models.WordLevel):
        return [part.strip() for part in parts if part.strip()] == [_PROBE, _PROBE]
    if mark is None or (isinstance(library.model, models.BPE) and library.model.end_of_word_suffix):
        return False
    if not any(piece.startswith(mark) for piece in pieces):
        return False
    # Where whitespace parts no words, a piece may reach from one into the next.
    parted = all(mark not in part[1:] for part in parts)
    return parted or not any(mark in piece.lstrip(mark).rstrip(mark) for piece in pieces)


def _parts(library: LibraryTokenizer) -> list[str]:
    text = f"{_PROBE} {_PROBE}"
    if library.normalizer is not None:
        text = library.normalizer.normalize_str(text)
    if library.pre_tokenizer is None:
        return [text]
    return [part for part, _ in library.pre_tokenizer.pre_tokenize_str(text)]


def _goes_on(piece: str, mark: str) -> bool:
    """Whether a piece of BPE or Unigram goes on with a word; bytes that are no whole character count as letters."""
    visible = piece.removeprefix(mark)
    return piece == visible and not stands_apart(piece_bytes(visible, mark).decode("utf-8", errors="surrogateescape"))
