"""Words of a running text, for tasks that label each of them.

The rule is our own, and the same for every tokenizer. Whitespace parts words. A word is a run of letters and digits
with the marks on them. Within it may stand, between two of them, one full stop, apostrophe, hyphen, underscore, ``@``
or ``&`` (`3.14`, `O'Brien`, `al-Qaida`, `AT&T`), and between two digits one comma, colon or slash (`1,000`, `10:30`).
A full stop also belongs to letters that are abbreviated one by one (`U.S.`), and ``@`` or ``#`` to the word that it
stands before (`@user`). An address (`https://…`, `www.…`) is a word. English clitics are words of their own, as in
treebanks: `Ann's` is `Ann` and `'s`, `don't` is `do` and `n't`. Every other mark is a word, one that is repeated
(`...`) together; so is every symbol, an emoji with what modifies it, and every Han ideograph. What a script writes
together, such as an Arabic clitic and its noun, stays whole.
"""

import re
import unicodedata
from functools import lru_cache

from bertsmith.text.sentences import has_visible

_SIGNS = {
    **dict.fromkeys(".\uff0e", "."),
    **dict.fromkeys("'\u2019\u02bc", "'"),
    **dict.fromkeys("-\u2010\u2011_&", "-"),
    **dict.fromkeys("@\uff20", "@"),
    **dict.fromkeys("#\uff03", "#"),
    **dict.fromkeys(",:/\u066b\u066c", ","),
    "\u200b": " ",  # An invitation to break.
    "\u200d": "J",
}
_BY_CATEGORY = {"L": "L", "N": "N", "M": "M", "Z": " ", "P": "P", "S": "S"}
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)
_HAN = (range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0xF900, 0xFB00), range(0x20000, 0x32000))

_CORE = r"[LN](?:M|[FJ]+(?=[LNM]))*"  # Invisible characters belong to a word within it, not at its end.
_WORD = re.compile(
    rf"(?P<address>U+)|(?P<dotted>(?:LM*\.){{2,}}(?![LN]))"
    rf"|(?P<run>[@#]?{_CORE}(?:(?:[.'@-](?=[LN]))?{_CORE}|(?<=N),(?=N))*)"
    r"|(?P<emoji>RR|S[MT]*(?:J[ST][MT]*)*)"
    r"|(?P<mark>[^ FJ]M*)"
)
_ADDRESS = re.compile(r"\b(?:https?://|www\.)[^\s\u200b<>\"]*[^\s\u200b<>\".,;:!?'\u2019)\]}\u00bb\u201d\u060c\u061f]")
_CLITIC = re.compile(r"(?:['\u2019](?:s|m|d|ll|re|ve)|n['\u2019]t)\Z", re.IGNORECASE)


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where the words of a text stand, as half-open ranges ``[start, end)`` of code points.

    Every character that can be seen lies in one of them, in order; none holds whitespace.
    """
    kinds = list(map(_kind, text))
    for found in _ADDRESS.finditer(text):
        kinds[slice(*found.span())] = "U" * len(found.group())
    spans: list[tuple[int, int]] = []
    start = end = 0
    for found in _WORD.finditer("".join(kinds)):
        before, (start, end) = (start, end), found.span()
        if found.lastgroup == "mark" and before[1] == start and _repeats(text, before, (start, end)):
            spans[-1] = (spans[-1][0], end)
            continue
        clitic = _CLITIC.search(text, start, end) if found.lastgroup == "run" else None
        if clitic is not None and clitic.start() > start:
            spans += [(start, clitic.start()), clitic.span()]
        else:
            spans.append((start, end))
    return spans


def _repeats(text: str, before: tuple[int, int], mark: tuple[int, int]) -> bool:
    """Whether what stands right before is the same mark."""
    return set(text[slice(*before)]) == set(text[slice(*mark)])


@lru_cache(maxsize=1 << 14)
def _kind(character: str) -> str:
    """What a character is in the patterns: one letter or sign for each kind."""
    if (sign := _SIGNS.get(character)) is not None:
        return sign
    if character.isspace():
        return " "
    code = ord(character)
    if code in _SKIN_TONES:
        return "T"
    if code in _FLAG_LETTERS:
        return "R"
    if any(code in script for script in _HAN):
        return "H"
    category = unicodedata.category(character)
    if category in ("Cf", "Cc") and not has_visible(character):
        return "F"
    return _BY_CATEGORY.get(category[0], "S")  # A sign before Arabic numbers is invisible by its category alone.
