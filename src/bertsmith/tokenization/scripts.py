"""The script a word is written in."""

import functools
import unicodedata

OTHER = "Other"
# The first word of a character's Unicode name is its script, for these.
_NAMED = {"CJK": "Han"} | {
    name.upper(): name
    for name in (
        "Latin",
        "Greek",
        "Cyrillic",
        "Armenian",
        "Hebrew",
        "Arabic",
        "Syriac",
        "Thaana",
        "Devanagari",
        "Bengali",
        "Gurmukhi",
        "Gujarati",
        "Oriya",
        "Tamil",
        "Telugu",
        "Kannada",
        "Malayalam",
        "Sinhala",
        "Thai",
        "Lao",
        "Tibetan",
        "Myanmar",
        "Georgian",
        "Hangul",
        "Ethiopic",
        "Cherokee",
        "Khmer",
        "Mongolian",
        "Hiragana",
        "Katakana",
        "Bopomofo",
    )
}


def script_of(word: str) -> str:
    """The script of the first letter that has one, or "Other" for numbers, punctuation and emoji."""
    for character in word:
        script = _script(character)
        if script != OTHER:
            return script
    return OTHER


@functools.lru_cache(maxsize=1 << 14)
def _script(character: str) -> str:
    letter = unicodedata.normalize("NFKC", character)[0]
    if not unicodedata.category(letter).startswith("L"):
        return OTHER
    return _NAMED.get(unicodedata.name(letter, "").partition(" ")[0], OTHER)
