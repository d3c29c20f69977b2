"""Where words begin, by the characters that pieces hold; of byte-level pieces, several may hold one character."""

import functools
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int, UInt8
from tokenizers import pre_tokenizers

BYTE_SPACE = "\u0120"
_ZERO_WIDTH_JOINER = 0x200D
_LETTER, _APART, _JOINS, _HALF_A_FLAG = range(4)
_NUM_CLASSIFIED = 0x20000  # Beyond are letters of rare scripts alone, but for tags.
_SKIN_TONES = slice(0x1F3FB, 0x1F400)
_FLAG_LETTERS = slice(0x1F1E6, 0x1F200)


@dataclass(frozen=True)
class PieceCharacters:
    """The UTF-8 of every piece of a vocabulary, without the space that a piece begins with.

    Attributes:
        held: the bytes of all pieces, one after the other.
        first: where each id's bytes begin in `held`.
        sizes: how many bytes each id has; 0 for control tokens, added words, and a space alone.
    """

    held: UInt8[np.ndarray, " bytes"]
    first: Int[np.ndarray, " vocabulary"]
    sizes: Int[np.ndarray, " vocabulary"]

    @classmethod
    def of(cls, pieces: Mapping[int, str], vocab_size: int, *, mark: str) -> "PieceCharacters":
        """Of pieces by their ids; every other id holds no bytes.

        Args:
            pieces: as the vocabulary writes them.
            vocab_size: how many ids there are.
            mark: what stands in a piece for a space before it: `BYTE_SPACE` where pieces are byte-level.
        """
        held = {number: piece_bytes(piece.removeprefix(mark), mark) for number, piece in pieces.items()}
        sizes = np.array([len(held.get(number, b"")) for number in range(vocab_size)], dtype=np.int64)
        joined = b"".join(held.get(number, b"") for number in range(vocab_size))
        return cls(np.frombuffer(joined, dtype=np.uint8), np.cumsum(sizes) - sizes, sizes)

    def go_on(self, token_ids: Int[np.ndarray, " tokens"]) -> Bool[np.ndarray, " tokens"]:
        """True for each token whose first character goes on with what the bytes before it hold, spaces aside."""
        sizes = self.sizes[token_ids]
        begins = np.cumsum(sizes) - sizes
        bytes_ = self.held[np.arange(sizes.sum()) + np.repeat(self.first[token_ids] - begins, sizes)]
        leads = (bytes_ & 0xC0) != 0x80
        number_of = np.cumsum(leads)  # Of the character that each byte belongs to, after a space before all.
        characters = np.concatenate([[ord(" ")], _code_points(bytes_, np.flatnonzero(leads))])
        kinds = _kinds()[np.minimum(characters, _NUM_CLASSIFIED - 1)]
        # What joins is of the kind of the character that it joins.
        own = np.maximum.accumulate(np.where(kinds == _JOINS, 0, np.arange(len(kinds))))
        settled = kinds[own]
        goes_on = np.zeros(len(token_ids), dtype=np.bool_)
        asked = np.flatnonzero((sizes > 0) & (begins > 0))
        at = begins[asked]
        number = number_of[at]
        before = np.maximum(number - 1, 0)
        joined = (kinds[number] == _JOINS) | (characters[before] == _ZERO_WIDTH_JOINER)
        alike = (settled[number] == settled[before]) & (settled[number] != _APART)
        goes_on[asked] = ~leads[at] | joined | alike
        return goes_on


def piece_bytes(piece: str, mark: str) -> bytes:
    """The UTF-8 of what a piece stands for, where `mark` tells whether it is byte-level."""
    known = [_BYTE_OF.get(character) for character in piece] if mark == BYTE_SPACE else [None]
    return bytes(byte for byte in known if byte is not None) if None not in known else piece.encode()


def stands_apart(text: str) -> bool:
    """Whether a text is punctuation, symbols or whitespace, which stand apart from words."""
    return bool(text) and all(unicodedata.category(character)[0] in "PSZ" or character.isspace() for character in text)


def _code_points(bytes_: UInt8[np.ndarray, " bytes"], leads: Int[np.ndarray, " chars"]) -> Int[np.ndarray, " chars"]:
    """The characters whose UTF-8 begins at `leads`; of bytes that are none, whatever comes of it."""
    padded = np.concatenate([bytes_, np.zeros(3, dtype=np.uint8)]).astype(np.int64)
    first = padded[leads]
    second, third, fourth = (padded[leads + ahead] & 0x3F for ahead in (1, 2, 3))
    return np.select(
        [first < 0x80, first < 0xE0, first < 0xF0],
        [
            first,
            (first & 0x1F) << 6 | second,
            (first & 0x0F) << 12 | second << 6 | third,
        ],
        (first & 0x07) << 18 | second << 12 | third << 6 | fourth,
    )


@functools.cache
def _kinds() -> UInt8[np.ndarray, " characters"]:
    kinds = np.zeros(_NUM_CLASSIFIED, dtype=np.uint8)
    for number in range(_NUM_CLASSIFIED):
        category = unicodedata.category(chr(number))
        if category[0] == "M" or category == "Cf":
            kinds[number] = _JOINS
        elif category[0] in "PSZ" or chr(number).isspace():
            kinds[number] = _APART
    kinds[_SKIN_TONES] = _JOINS
    kinds[_FLAG_LETTERS] = _HALF_A_FLAG
    return kinds


def _byte_alphabet() -> dict[str, int]:
    # The byte-level alphabet keeps printable Latin-1 bytes and moves all others, in order, past U+0100.
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in kept]
    table = {chr(byte): byte for byte in kept}
    table.update({chr(0x100 + number): byte for number, byte in enumerate(moved)})
    assert set(table) == set(pre_tokenizers.ByteLevel.alphabet())
    return table


_BYTE_OF = _byte_alphabet()
