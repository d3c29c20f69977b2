"""Characters as people see them: a letter with its marks, an emoji with what changes it, a syllable of Hangul.

What is held together follows the extended grapheme clusters of Unicode (UAX 29), from what Python knows of characters.
"""

import unicodedata
from functools import lru_cache

_JOINERS = "\u200c\u200d"
_JOINS_NEXT = "\u200d"
_SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")
_TAGS = ("\U000e0020", "\U000e007f")
_FLAG_LETTERS = ("\U0001f1e6", "\U0001f1ff")
_LATER_JAMO = (("\u1160", "\u11ff"), ("\ud7b0", "\ud7ff"))
_LEADING_JAMO = (("\u1100", "\u115f"), ("\ua960", "\ua97f"))


def parts_character(text: str, at: int) -> bool:
    """Whether a cut before ``text[at]`` would part what people see as one character. No cut at an end of the text does.

    Args:
        text: any text.
        at: a place in code points.
    """
    if not 0 < at < len(text):
        return False
    before, character = text[at - 1], text[at]
    if before.isascii() and character.isascii():
        return (before, character) == ("\r", "\n")
    if before == _JOINS_NEXT:
        return not character.isspace()
    if _within(character, _FLAG_LETTERS):
        return _flag_letters_before(text, at) % 2 == 1
    return not before.isspace() and _goes_on(before, character)


def whole_characters(text: str, start: int, end: int) -> tuple[int, int]:
    """The range ``[start, end)`` of a text, widened so that it parts no character."""
    while parts_character(text, start):
        start -= 1
    while parts_character(text, end):
        end += 1
    return start, end


@lru_cache(maxsize=1 << 14)
def _goes_on(before: str, character: str) -> bool:
    if _within(character, *_LATER_JAMO):  # A syllable that is written letter by letter.
        return _within(before, *_LEADING_JAMO, *_LATER_JAMO) or "\uac00" <= before <= "\ud7a3"
    is_mark = unicodedata.category(character).startswith("M")
    return is_mark or character in _JOINERS or _within(character, _SKIN_TONES, _TAGS)


def _flag_letters_before(text: str, at: int) -> int:
    count = 0
    while count < at and _within(text[at - 1 - count], _FLAG_LETTERS):
        count += 1
    return count


def _within(character: str, *ranges: tuple[str, str]) -> bool:
    return any(first <= character <= last for first, last in ranges)
