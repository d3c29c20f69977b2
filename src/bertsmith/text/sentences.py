"""Sentences out of text, by rules, for any script.

What ends a sentence:

- a line break, always;
- ``. ! ? …`` with the closing quotes and brackets behind them, where white space follows. A full stop does not end one
  after titles and other abbreviations, after initials or a number that opens a line, and no mark does before a
  lower-case letter (unless the text has no capitals at all, or stands in tokens with a space before each mark);
- the Arabic question mark ``؟`` and the Urdu full stop ``۔``. The Arabic semicolon ``؛`` and comma ``،`` end nothing
  by themselves, but a sentence that is too long is cut at them first;
- ``。 ！ ？ ।  ॥`` and their kin, with or without white space.

A full stop between characters (``3.14``, ``www.x.org``, ``notes.txt``) ends nothing. The one exception is a stop
between two Arabic words of three letters or more, where the space was forgotten.
"""

import re
import unicodedata

from bertsmith.text.abbreviations import BEFORE_NUMBER, NEVER_LAST, OPENING_WORDS, SELDOM_LAST

MAX_SENTENCE_CHARACTERS = 2_000
"""A longer sentence is cut: at a clause mark, else at white space, else where the limit falls."""

# Characters that draw nothing: joiners, direction marks, variation selectors, the byte order mark; and controls.
_INVISIBLE = (
    r"\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef"
)
_CONTROLS = r"\x00-\x1f\x7f-\x9f"
_JOINING = "\u200c\u200d"
_SPACED_MARKS = r".!?…‽⁇⁈⁉؟۔։"
_UNSPACED_MARKS = r"。｡！？।॥።፧။។"
_CLOSING = r"\"'”’»›)\]}」』）】》〉"
_OPENING = r"\"'“”‘’«‹„‚(\[{「『（【《〈¿¡"
_ARABIC = "ء-يٱ-ۓ\u064b-\u0652"

_LINE_END = re.compile(r"[\n\r]")
_VISIBLE = re.compile(rf"[^\s{_INVISIBLE}{_CONTROLS}]")
_TAIL = rf"(?:[{_CLOSING}{_INVISIBLE}]|\[\d{{1,3}}\])*+"
_CANDIDATE = re.compile(
    # The look-behind keeps a long row of marks linear: only its first mark starts an attempt.
    rf"(?<![{_SPACED_MARKS}{_UNSPACED_MARKS}])(?:"
    rf"(?P<spaced>[{_SPACED_MARKS}]++){_TAIL}(?=\s)"
    rf"|(?P<unspaced>[{_SPACED_MARKS}]*[{_UNSPACED_MARKS}][{_SPACED_MARKS}{_UNSPACED_MARKS}]*+)(?P<quoted>{_TAIL})"
    rf"|(?P<arabic>؟[!؟?]*+{_TAIL}|(?<=[{_ARABIC}]{{3}})\.(?=[{_ARABIC}]{{3}}))"
    r")"
)
# Where a line or a sentence may end: found at a fraction of what the whole pattern costs at every character.
_STOP = re.compile(rf"[\n\r{_SPACED_MARKS}{_UNSPACED_MARKS}]")
_GAP = re.compile(rf"[\s{_OPENING}{_INVISIBLE}—–\-]*+")
_LAST_WORD = re.compile(rf"[^\s—–/\-{_OPENING}]*\Z")
_FIRST_WORD = re.compile(r"\w+")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_ENUMERATOR = re.compile(r"\(?(?:\d{1,3}|[ivxIVX]{1,5})(?:\.\d{1,3})*")
_ERA = re.compile(r"\d\s*[مه]\Z")
_WORD_LOOK_BACK = 24

_STRONG_CLAUSE = re.compile(r"[;؛:](?=\s)|[；：]")
_WEAK_CLAUSE = re.compile(r"[,،—–](?=\s)|[，、]")
_SPACE = re.compile(r"\s")


def split_sentences(text: str) -> list[str]:
    """The sentences of `text`, in order.

    Each is stripped of white space at its ends, holds at least one visible character, and is at most
    `MAX_SENTENCE_CHARACTERS` long. Nothing visible is lost, changed or moved.
    """
    return [text[start:end] for start, end in sentence_spans(text)]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """The places of the sentences of `text`: half-open, in code points, ascending, without overlap.

    What lies between two spans is white space, or characters that draw nothing standing alone.
    """
    heed_case = not text.islower()
    spans: list[tuple[int, int]] = []
    start = seen = line_end = 0
    for stop in _STOP.finditer(text):
        at = stop.start()
        if at < seen:
            continue
        if text[at] in "\n\r":
            _add_span(spans, text, start, at)
            start = at + 1
            continue
        if at >= line_end:
            line_end = _end_of_line(text, at)
        if candidate := _CANDIDATE.match(text, at, line_end):
            seen = candidate.end()
            if seen < line_end and _ends_sentence(text, candidate, start, line_end, heed_case):
                _add_span(spans, text, start, seen)
                start = seen
    _add_span(spans, text, start, len(text))
    return spans


def has_visible(text: str) -> bool:
    """Whether `text` holds a character that draws something: not only white space, joiners or variation selectors."""
    return _VISIBLE.search(text) is not None


def cut_place(text: str, start: int, stop: int) -> int:
    """Where to cut `text` so that the piece from `start` ends at or before `stop`, in (start, stop].

    The best place is the start of the last sentence, then white space, then `stop` itself, moved back a little
    where it would part a letter from its accents or an emoji from its joiner.
    """
    tail = max(start, stop - 2 * MAX_SENTENCE_CHARACTERS)
    spans = sentence_spans(text[tail:stop])
    if len(spans) > 1:
        return tail + spans[-1][0]
    return _last(_SPACE, text, start, stop) or _hard_place(text, start, stop)


def _end_of_line(text: str, at: int) -> int:
    found = _LINE_END.search(text, at)
    return found.start() if found else len(text)


def _ends_sentence(text: str, candidate: re.Match[str], start: int, line_end: int, heed_case: bool) -> bool:
    gap = _GAP.match(text, candidate.end(), line_end)
    following = gap.end() if gap else candidate.end()
    if candidate["unspaced"] is not None:
        # A quotation that the sentence goes on after: 「行くぞ！」と言った。
        return not (candidate["quoted"] and text[candidate.end()] in "、，,とっ")
    if candidate["arabic"] is not None:
        return True
    if following == line_end:
        return False
    mark_at, marks = candidate.start(), candidate["spaced"]
    before = text[mark_at - 1] if mark_at > start else ""
    after = text[following]
    if after in _SPACED_MARKS or (before and before in "([" and text[mark_at + len(marks)] in ")]"):
        return False  # Inside a spaced ellipsis, or a remark such as "(!)".
    if heed_case and after.islower() and not _stands_alone(text, mark_at, start):
        return False
    return marks != "." or not _is_abbreviation(text, mark_at, start, following)


def _stands_alone(text: str, mark_at: int, start: int) -> bool:
    """Whether the text stands in tokens, with a space between the last word and its mark."""
    if mark_at - start < 2 or not text[mark_at - 1].isspace():
        return False
    return text[mark_at - 2] not in _SPACED_MARKS


def _is_abbreviation(text: str, stop_at: int, start: int, following: int) -> bool:
    """Whether the full stop at `stop_at` belongs to the word before it and does not end the sentence."""
    found = _LAST_WORD.search(text, max(start, stop_at - _WORD_LOOK_BACK), stop_at)
    word = found[0] if found else ""
    if not word:
        return False
    lower = word.lower()
    if lower in NEVER_LAST:
        return True
    if lower in BEFORE_NUMBER and text[following].isdigit():
        return True
    if _ENUMERATOR.fullmatch(word) and not text[start : stop_at - len(word)].strip(" \t(["):
        return True
    if len(word) == 1 and _ERA.search(text, max(start, stop_at - 8), stop_at):
        return False
    is_initial = len(word) == 1 and word.isalpha() and not word.islower()
    if is_initial or lower in SELDOM_LAST or _DOTTED.fullmatch(word):
        return not _opens_sentence(text, following)
    return False


def _opens_sentence(text: str, at: int) -> bool:
    """Whether the word at `at` is one that opens sentences and is no initial itself."""
    word = _FIRST_WORD.match(text, at)
    return word is not None and word[0] in OPENING_WORDS and text[word.end() : word.end() + 1] != "."


def _add_span(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    while end - start > MAX_SENTENCE_CHARACTERS:
        place = _clause_place(text, start, start + MAX_SENTENCE_CHARACTERS)
        _add_stripped(spans, text, start, place)
        start = place
    _add_stripped(spans, text, start, end)


def _add_stripped(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if _VISIBLE.search(text, start, end):
        spans.append((start, end))


def _clause_place(text: str, start: int, stop: int) -> int:
    middle = (start + stop) // 2
    for pattern, after in ((_STRONG_CLAUSE, middle), (_WEAK_CLAUSE, middle), (_SPACE, start)):
        if place := _last(pattern, text, after, stop):
            return place
    return _hard_place(text, start, stop)


def _last(pattern: re.Pattern[str], text: str, start: int, stop: int) -> int | None:
    """Where the last match of `pattern` in text[start:stop] ends, if that leaves something before it."""
    place = None
    for match in pattern.finditer(text, start, stop):
        place = match.end()
    return place


def _hard_place(text: str, start: int, stop: int) -> int:
    """`stop`, or a place a little before it that parts no character from what joins on to it."""
    for place in range(stop, max(start, stop - 32), -1):
        if place == len(text) or not (_joins(text[place]) or text[place - 1] in _JOINING):
            return place
    return stop


def _joins(character: str) -> bool:
    return character in _JOINING or unicodedata.category(character).startswith("M")
