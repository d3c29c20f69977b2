"""Tokens as a person reads them: byte-level pieces as the characters that they stand for."""

import itertools
import re

import numpy as np

from bertsmith.tokenization.characters import BYTE_SPACE, piece_bytes
from bertsmith.tokenization.encoding import Encoding
from bertsmith.tokenization.pieces import SPACE_MARK
from bertsmith.tokenization.tokenizer import Tokenizer

_BYTE_PIECE = re.compile("<0x[0-9A-F]{2}>")
_NO_CHARACTER = "\ufffd"


def readable_tokens(tokenizer: Tokenizer, encoding: Encoding, text: str, pair: str | None = None) -> list[str]:
    """The tokens of a text, or of two, as a person reads them.

    WordPiece's pieces are as the vocabulary writes them: ``##`` goes on with a word. In BPE and Unigram ``▁`` is the
    space before a word. Where several byte-level pieces make up one character, each is that character with its number
    among them, such as ``猫 2/3``. An unknown token has the text that it stands for behind it: ``[UNK] 猫``.

    Args:
        tokenizer: made `encoding`.
        encoding: of the text or texts.
        text: the first text.
        pair: the second.
    """
    texts = (text, pair or "")
    shown = [_whole(tokenizer, int(number)) for number in encoding.token_ids]
    places = [
        (int(sequence), int(start), int(end))
        for sequence, (start, end) in zip(encoding.sequence_ids, encoding.offsets, strict=True)
    ]
    for number in np.flatnonzero(encoding.token_ids == tokenizer.unk_id):
        sequence, start, end = places[number]
        shown[number] = f"{shown[number]} {texts[max(sequence, 0)][start:end]}".rstrip()
    broken = [number for number, token in enumerate(shown) if token is None]
    for (sequence, start, end), members in itertools.groupby(broken, key=lambda number: places[number]):
        parts = list(members)
        character = texts[max(sequence, 0)][start:end] or _NO_CHARACTER
        for count, number in enumerate(parts, 1):
            share = f" {count}/{len(parts)}" if len(parts) > 1 else ""
            shown[number] = f"{_space_before(tokenizer, int(encoding.token_ids[number]))}{character}{share}"
    return [token or "" for token in shown]


def _whole(tokenizer: Tokenizer, token_id: int) -> str | None:
    """The token if it holds whole characters, else None."""
    piece, mark = tokenizer.token(token_id), tokenizer.space_mark
    if mark is None or token_id in tokenizer.special_ids:
        return piece
    if token_id in tokenizer.added_word_ids:
        return SPACE_MARK + piece
    if _BYTE_PIECE.fullmatch(piece):
        return None
    if mark != BYTE_SPACE:
        return piece.replace(" ", SPACE_MARK)
    try:
        return piece_bytes(piece, mark).decode().replace(" ", SPACE_MARK)
    except UnicodeDecodeError:
        return None


def _space_before(tokenizer: Tokenizer, token_id: int) -> str:
    mark = tokenizer.space_mark
    return SPACE_MARK if mark is not None and tokenizer.token(token_id).startswith(mark) else ""
