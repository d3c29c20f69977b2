"""Which pieces begin a word."""

import unicodedata

import numpy as np
from jaxtyping import Bool
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models, pre_tokenizers

_SPACE_MARK = "\u2581"


def continuing_pieces(
    library: LibraryTokenizer, vocab_size: int, special_ids: frozenset[int]
) -> Bool[np.ndarray, " vocabulary"]:
    """True for each id whose piece can only go on with a word.

    In WordPiece these carry the continuation mark. In BPE and Unigram they lack the mark of a leading space; a piece of
    punctuation alone is no continuation, since it is a word of its own.
    """
    continues = np.zeros(vocab_size, dtype=np.bool_)
    added = library.get_added_tokens_decoder()
    prefix = library.model.continuing_subword_prefix if isinstance(library.model, models.WordPiece) else None
    for piece, number in library.get_vocab(with_added_tokens=True).items():
        if number in special_ids or number in added:
            continue
        continues[number] = piece.startswith(prefix) if prefix is not None else not _begins(piece)
    return continues


def _begins(piece: str) -> bool:
    if piece.startswith((_SPACE_MARK, _BYTE_SPACE)):
        return True
    return _is_punctuation(piece) or _is_punctuation(_from_bytes(piece))


def _is_punctuation(text: str) -> bool:
    return bool(text) and all(unicodedata.category(character)[0] in "PS" for character in text)


def _from_bytes(piece: str) -> str:
    return bytes(_BYTE_OF.get(character, 0) for character in piece).decode("utf-8", errors="replace")


def _byte_alphabet() -> dict[str, int]:
    # The byte-level alphabet keeps printable Latin-1 bytes and moves all others, in order, past U+0100.
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in kept]
    table = {chr(byte): byte for byte in kept}
    table.update({chr(0x100 + number): byte for number, byte in enumerate(moved)})
    assert set(table) == set(pre_tokenizers.ByteLevel.alphabet())
    return table


_BYTE_OF = _byte_alphabet()
_BYTE_SPACE = "\u0120"
