"""Whether a text's pieces are those of its words, each encoded alone.

They are where nothing that the tokenizer does reaches across a space. Its parts tell: each step of the normaliser must
act on characters, or on runs of them that hold no space, and the pre-tokenizer must part words at every space. What is
not known to do so is taken to reach across.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tokenizers import Regex
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers.normalizers import Replace

from bertsmith.tokenization.pipeline import PATTERNS_WITHIN_WORDS

Part = dict[str, Any]
"""A step of a normaliser or a pre-tokenizer, as the library writes it down."""

_FORMS = {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"}
"""These compose, move or remove no space, and look at nothing on its other side."""
_FORMS_WITHOUT_SPACE = {"NFC", "NFD", "Lowercase"}
_PARTING_AT_SPACE = {"WhitespaceSplit", "Whitespace", "BertPreTokenizer"}
_WITHIN_PARTS = _PARTING_AT_SPACE | {"Split", "ByteLevel", "Digits", "Punctuation", "UnicodeScripts"}
# One set of characters, without sets inside it, once or in a row.
_CHARACTER_SET = re.compile(r"\[(?:[^\\\[\]^&]|\\x\{[0-9A-Fa-f]+\})+\]\+?")

# SentencePiece's table goes by grapheme clusters, and a space is one with a mark that follows it. These characters join
# on to a space on neither side, and no form that Unicode gives them has one.
_JOINS_NO_SPACE = (
    r"[!-~\u00ab\u00bb\u00c0-\u024f\u0388-\u03ff\u0400-\u0481\u048a-\u052f\u05d0-\u05ea\u060c\u061b\u061f\u0620-\u064a"
    r"\u0660-\u0669\u06d4\u2010-\u2016\u2018-\u201f\u2026\u3001\u3002\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]"
)


@dataclass(frozen=True)
class LoneWords:
    """Which words of a text, parted by spaces, can be encoded alone.

    Attributes:
        pattern: matches such a word as a whole; None where every word is one.
        keeps_space: whether the space before a word must be encoded with it, since it makes a difference there.
        allows: tells of a step of the normaliser whether it does the same to such a word alone and in a text.
        normalize: where given, must leave such a word with no space at either end.
    """

    pattern: re.Pattern[str] | None
    keeps_space: bool
    allows: Callable[[Part], bool]
    normalize: Callable[[str], str] | None = None

    def hold(self, word: str) -> bool:
        """Whether a word is one of them."""
        if self.pattern is not None and self.pattern.fullmatch(word) is None:
            return False
        if self.normalize is None:
            return True
        normal = self.normalize(word)
        return normal != "" and not normal[0].isspace() and not normal[-1].isspace()


def lone_words(library: LibraryTokenizer, state: Part) -> LoneWords | None:
    """The words that can be encoded alone, or None where none can.

    Args:
        library: a tokenizer to which special tokens are text.
        state: the same as JSON.
    """
    steps = _parts(state["normalizer"], "normalizers")
    num_tables = sum(map(_is_table, steps))
    found = _parted(_parts(state["pre_tokenizer"], "pretokenizers"), by_clusters=num_tables > 0)
    if found is None or num_tables > 1 or state["model"].get("dropout") or not all(map(found.allows, steps)):
        return None
    normalize = str if library.normalizer is None else library.normalizer.normalize_str
    for token in state["added_tokens"]:
        content = token["content"]
        if token["special"]:
            continue
        if found.keeps_space and token["rstrip"]:  # It would take the space of the word after it.
            return None
        if not (_within(content, found) and _within(normalize(content), found)):
            return None
    return replace(found, normalize=normalize) if num_tables else found


def _parted(words: Sequence[Part], *, by_clusters: bool) -> LoneWords | None:
    kinds = [part["type"] for part in words]
    if kinds[:1] and kinds[0] in _PARTING_AT_SPACE and all(map(_acts_on_parts, words[1:])):
        return LoneWords(_JOINING_NO_SPACE, False, _allowed_by_clusters) if by_clusters else _ANY_WORD
    if kinds == ["ByteLevel"] and words[0]["use_regex"]:
        # Each of its parts is a space at most and then characters of one kind.
        return LoneWords(re.compile(r"\S+"), keeps_space=True, allows=lambda step: step["type"] in _FORMS_WITHOUT_SPACE)
    if kinds == ["Metaspace"] and words[0]["split"] and words[0]["prepend_scheme"] != "never":
        return LoneWords(_JOINING_NO_SPACE, keeps_space=True, allows=_allowed_by_clusters)
    return None


def _acts_on_parts(part: Part) -> bool:
    """Whether a pre-tokenizer that comes later acts on each part alike, wherever in the text it stands."""
    return part["type"] in _WITHIN_PARTS or (part["type"] == "Metaspace" and part["prepend_scheme"] == "always")


def _allowed_anywhere(step: Part) -> bool:
    if step["type"] == "Replace":
        return _replaces_within_words(step["pattern"])
    return step["type"] in _FORMS or step["type"] == "BertNormalizer"


def _allowed_by_clusters(step: Part) -> bool:
    if step["type"] == "Replace":
        if step["pattern"] == {"Regex": " {2,}"}:
            return step["content"] == " "
        return _replaces_within_words(step["pattern"]) and _JOINING_NO_SPACE.fullmatch(step["content"]) is not None
    return step["type"] in _FORMS or _is_table(step)


def _replaces_within_words(pattern: dict[str, str]) -> bool:
    if "String" in pattern:
        return " " not in pattern["String"]
    wanted = pattern["Regex"]
    if wanted in PATTERNS_WITHIN_WORDS:
        return True
    return _CHARACTER_SET.fullmatch(wanted) is not None and Replace(Regex(wanted), "").normalize_str(" ") == " "


def _within(content: str, found: LoneWords) -> bool:
    """Whether what is found in a text first of all lies within one word, or in no text of lone words."""
    if any(map(str.isspace, content)):
        # Two spaces have a word between them that is none of those.
        return found is not _ANY_WORD and "  " in content
    return True


def _is_table(step: Part) -> bool:
    return step["type"] == "Precompiled"


def _parts(part: Part | None, name: str) -> list[Part]:
    """The steps of a sequence of steps, or the one that stands alone."""
    if part is None:
        return []
    return [step for inner in part[name] for step in _parts(inner, name)] if part["type"] == "Sequence" else [part]


_ANY_WORD = LoneWords(None, keeps_space=False, allows=_allowed_anywhere)
# Half a surrogate pair has no form that the normaliser could be asked for.
_JOINING_NO_SPACE = re.compile(rf"{_JOINS_NO_SPACE}(?:[^\s\ud800-\udfff]*{_JOINS_NO_SPACE})?")
