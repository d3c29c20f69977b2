"""What is drawn for a token: short, on one line, and in Arabic script with the letters joined as in their word."""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from bertsmith.tokenization.pieces import SPACE_MARK

CONTINUES = "##"
LONGEST = 16
"""Characters of a label, marks aside."""
_JOINER = "\u200d"
_TATWEEL = "\u0640"
_DOTTED_CIRCLE = "\u25cc"
_PART = re.compile(r" \d+/\d+$")
"""Which part of a character a token is."""
_SHOWN_AS = {"\t": "⇥"} | dict.fromkeys("\n\r\x85\u2028\u2029", "↵")
_ARABIC_FORMS = (range(0xFB50, 0xFE00), range(0xFE70, 0xFF00))


def token_labels(tokens: Sequence[str]) -> list[str]:
    """A label for each token of a sequence.

    A piece of an Arabic word begins and ends with the forms that its letters have inside the word, as if the word were
    cut by scissors. Line ends and tabs are shown as arrows, what else cannot be seen by its number, and a mark without
    its letter on a dotted circle, or on a tatweel where it is Arabic.

    Args:
        tokens: as people read them: ``##`` goes on with a word, or where tokens have ``▁`` for a space, its lack does.
    """
    marked = any(token.startswith(CONTINUES) for token in tokens)
    spaced = not marked and any(token.startswith(SPACE_MARK) for token in tokens)
    joins = [False, *(_join(before, token, spaced=spaced) for before, token in pairwise(tokens)), False]
    return [
        _label(token, joined_before=before, joined_after=after)
        for token, before, after in zip(tokens, joins, joins[1:], strict=False)
    ]


def _label(token: str, *, joined_before: bool, joined_after: bool) -> str:
    body = token.removeprefix(CONTINUES)
    mark = token[: len(token) - len(body)]
    if len(body) > LONGEST:
        body, joined_after = f"{body[: LONGEST - 1]}…", False
    if _PART.search(body):
        joined_before = joined_after = False
    if body and _is_mark(body[0]):
        # On a circle, fonts put Arabic marks beside it.
        arabic = unicodedata.name(body[0], "").startswith("ARABIC")
        body, joined_before = f"{_TATWEEL if arabic else _DOTTED_CIRCLE}{body}", False
    body = _on_one_line(body)
    return f"{mark}{_JOINER * joined_before}{body}{_JOINER * joined_after}"


def _on_one_line(text: str) -> str:
    """A text with what cannot be seen, or would break the line, shown by something else."""
    seen = _PART.sub("", text)
    if seen and all(unicodedata.category(character) == "Cf" for character in seen):
        return "".join(f"U+{ord(character):04X}" for character in seen) + text[len(seen) :]
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character in _SHOWN_AS:
        return _SHOWN_AS[character]
    return f"U+{ord(character):04X}" if unicodedata.category(character) == "Cc" else character


def _join(before: str, token: str, *, spaced: bool) -> bool:
    """Whether two neighbours are pieces of one word whose letters are joined where it was cut."""
    goes_on = token.startswith(CONTINUES) or (spaced and not token.startswith(SPACE_MARK))
    if not goes_on:
        return False
    forward, backward = _joining()
    last = next((letter for letter in reversed(_PART.sub("", before)) if not _is_mark(letter)), "")
    return last in forward and token.removeprefix(CONTINUES)[:1] in backward


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


@cache
def _joining() -> tuple[frozenset[str], frozenset[str]]:
    """Arabic letters that are joined to the one after them, and to the one before them.

    Unicode's names of the old presentation forms tell: a letter with an initial form is joined to the next, one with a
    final form to the one before.
    """
    forward, backward = {_TATWEEL}, {_TATWEEL}
    for code in (code for block in _ARABIC_FORMS for code in block):
        form, *letters = unicodedata.decomposition(chr(code)).split() or [""]
        if len(letters) == 1:
            letter = chr(int(letters[0], 16))
            if form in ("<initial>", "<medial>"):
                forward.add(letter)
            if form in ("<final>", "<medial>"):
                backward.add(letter)
    return frozenset(forward), frozenset(backward)
