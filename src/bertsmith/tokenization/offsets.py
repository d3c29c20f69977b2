"""Offsets into the original text, where the library's own are not.

The library loses track when a normaliser joins or splits characters: the composed form of a decomposed letter is said
to come from its first code point alone. So the text is normalised here cluster by cluster (a letter with the marks that
belong to it), which tells where every normalised character came from; and the normalised text is encoded once more,
which tells where every piece lies in it.
"""

import functools
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_TATWEEL = "\u0640"
_MAX_CACHED = 50_000


@dataclass(frozen=True)
class NormalizedText:
    """A text after normalisation, and for each of its characters the half-open range in the original it came from."""

    text: str
    starts: list[int]
    ends: list[int]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The range in the original text of the range ``[start, end)`` of the normalised one."""
        if start >= end:
            at = self.starts[start] if start < len(self.starts) else (self.ends[-1] if self.ends else 0)
            return at, at
        return self.starts[start], self.ends[end - 1]


class Aligner:
    """Normalises text while keeping track of where each character came from.

    Args:
        normalize: the tokenizer's normaliser.
    """

    def __init__(self, normalize: Callable[[str], str]) -> None:
        self._normalize = normalize
        self._known: dict[str, str] = {}

    def align(self, text: str, verbatim: str | None = None) -> NormalizedText | None:
        """Normalise `text`.

        Args:
            text: the original.
            verbatim: a token that is cut out of the text before normalisation, and stays as it is.

        Returns:
            the normalised text with its origins, or None where the normaliser looks past clusters, so that nothing can
            be said.
        """
        if not (verbatim and verbatim in text) and self._normalize(text) == text:
            return NormalizedText(text, list(range(len(text))), list(range(1, len(text) + 1)))
        parts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        at = 0
        for number, segment in enumerate(text.split(verbatim) if verbatim else [text]):
            if verbatim and number:
                parts.append(verbatim)
                starts.extend(range(at, at + len(verbatim)))
                ends.extend(range(at + 1, at + len(verbatim) + 1))
                at += len(verbatim)
            first = len(parts)
            for cluster in _clusters(segment):
                for number_in_cluster, (part, normal) in enumerate(self._finest(cluster)):
                    parts.append(normal)
                    if normal:
                        _extend(starts, ends, at, part, normal)
                    elif number_in_cluster and ends:  # What is removed goes with what it followed.
                        ends[-1] = at + len(part)
                    at += len(part)
            if "".join(parts[first:]) != self._normalize(segment):
                return None
        return NormalizedText("".join(parts), starts, ends)

    def _finest(self, cluster: str) -> list[tuple[str, str]]:
        """The cluster and its normal form, with its invisible characters apart where that can be told."""
        whole = self._normal(cluster)
        parts = _clusters(cluster, loosely=False) if len(cluster) > 1 else [cluster]
        if len(parts) == 1:
            return [(cluster, whole)]
        found: list[tuple[str, str]] = []
        at = 0
        for part in parts:
            end = at + len(self._normal(part))
            if self._normal(part) != whole[at:end]:
                return [(cluster, whole)]
            # Alone, a joiner goes; between letters it stays.
            while end < len(whole) and whole[end] in part and unicodedata.category(whole[end]) == "Cf":
                end += 1
            found.append((part, whole[at:end]))
            at = end
        return found if at == len(whole) else [(cluster, whole)]

    def _normal(self, cluster: str) -> str:
        known = self._known.get(cluster)
        if known is None:
            if len(self._known) >= _MAX_CACHED:
                self._known.clear()
            known = self._known[cluster] = self._normalize(cluster)
        return known


def _extend(starts: list[int], ends: list[int], at: int, cluster: str, normal: str) -> None:
    if len(cluster) == len(normal):
        begins: Sequence[int] = range(len(cluster))
    else:
        begins = _kept(cluster, normal)
    if begins:
        starts.extend(at + begin for begin in begins)
        ends.extend(at + begin for begin in begins[1:])
        ends.append(at + len(cluster))
    else:  # Characters were joined or split, so each stands for the whole cluster.
        starts.extend([at] * len(normal))
        ends.extend([at + len(cluster)] * len(normal))


def _kept(cluster: str, normal: str) -> list[int]:
    """Where the characters of `normal` begin, if it is `cluster` with some removed; what was removed goes with the one
    before it, or with the first. Empty if it is anything else."""
    found: list[int] = []
    at = 0
    for character in normal:
        at = cluster.find(character, at)
        if at < 0:
            return []
        found.append(at)
        at += 1
    return [0, *found[1:]] if found else []


def _clusters(text: str, *, loosely: bool = True) -> list[str]:
    """Cut before every character that does not belong with the one before it.

    Args:
        text: what to cut.
        loosely: whether invisible characters and tatweel belong with the one before, and draw in the one after.
    """
    cuts = [0]
    opened = False
    for at, character in enumerate(text):
        joins, opens = (False, False) if " " <= character <= "~" else _joining(character)
        if not loosely and (opens or character == _TATWEEL):
            joins = False
        if at and not joins and not opened:
            cuts.append(at)
        opened = opens and loosely
    return [text[start:end] for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True)] if text else []


@functools.lru_cache(maxsize=1 << 14)
def _joining(character: str) -> tuple[bool, bool]:
    """Whether a character belongs with the one before it, and whether the next one belongs with it."""
    category = unicodedata.category(character)
    if category == "Cf" or (category == "Cc" and not character.isspace()):
        return True, True
    first = unicodedata.normalize("NFKD", character)[0]  # Half-width voicing marks are letters that become marks.
    is_mark = unicodedata.category(first)[0] == "M"
    is_jamo = "\u1160" <= first <= "\u11ff" or "\ud7b0" <= first <= "\ud7ff"
    return is_mark or is_jamo or character == _TATWEEL, False
