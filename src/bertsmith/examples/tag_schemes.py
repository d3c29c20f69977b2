"""How the labels of words write entities: BIO, IOB1, IOBES and BILOU, told from the labels and turned into one another.

In BIO every entity begins with ``B-`` and goes on with ``I-``. IOB1 (Ramshaw and Marcus 1995) writes ``B-`` only where
an entity follows at once on one of the same type. IOBES and BILOU also mark the last word of an entity and those of one
word, by ``E-`` and ``S-`` or ``L-`` and ``U-``. ``O`` stands for words of none. A letter without a type is read as of
the type ``_``.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Scheme = Literal["BIO", "IOB1", "IOBES", "BILOU"]
OUTSIDE = "O"
_UNTYPED = "_"
_TAG = re.compile(r"([BIESLU])(?:-(.+))?", re.DOTALL)
_SAME_AS = {"L": "E", "U": "S"}
_LETTERS = {"BIO": "BIIB", "IOBES": "BIES", "BILOU": "BILU"}
"""For the first, a middle, the last and the only word of an entity."""
_RARE = 20
"""A habit that is kept so many times as often as it is broken counts as the scheme's own."""


@dataclass(frozen=True, slots=True)
class Span:
    """An entity: the words ``[start, end)``, and its type."""

    start: int
    end: int
    label: str


def scheme_of_labels(labels: Iterable[str]) -> Scheme | None:
    """The scheme in which labels write entities, or None where they are plain labels, such as parts of speech.

    With ``O`` among them, more than half of the others must be of the form ``B-type``, so that a slip of the pen in a
    file does not hide its entities; without, all. IOB1 has the same labels as BIO: see `scheme_of_sentences`.
    """
    names = set(labels)
    others = names - {OUTSIDE}
    tags = [tag for name in others if (tag := _parse(name)) is not None]
    if OUTSIDE in names:
        is_scheme = 2 * len(tags) > len(others)
    else:
        is_scheme = bool(others) and len(tags) == len(others) and all("-" in name for name in others)
    if not is_scheme:
        return None
    letters = {name[0] for name in others if _parse(name) is not None}
    return "BILOU" if letters & {"L", "U"} else "IOBES" if letters & {"E", "S"} else "BIO"


def scheme_of_sentences(sentences: Iterable[Sequence[str]]) -> Scheme | None:
    """The scheme of whole sentences of labels, which also tells IOB1: there ``I-`` begins entities and ``B-`` does not,
    except after one of the same type."""
    found = list(sentences)
    scheme = scheme_of_labels({label for labels in found for label in labels})
    if scheme != "BIO":
        return scheme
    begun = Counter(
        tag[0]
        for labels in found
        for before, tag in _pairs(labels)
        if tag is not None and (before is None or before[1] != tag[1])
    )
    return "IOB1" if begun["I"] and begun["B"] * _RARE <= begun["I"] else "BIO"


def entity_spans(labels: Sequence[str], strict: Scheme | None = None) -> list[Span]:
    """The entities that the labels of a sentence write.

    Args:
        labels: one a word. What is no label of a scheme is read as ``O``.
        strict: count only entities that are written as this scheme says, BIO, IOBES or BILOU. Where not given, read
            leniently, as the program conlleval does: an ``I-`` or ``E-`` with nothing of its type before it begins an
            entity, and one that is not ended properly ends where it ends.
    """
    spans: list[Span] = []
    start, kind = -1, ""  # Of the entity that is open, if `start` is not negative.
    for place, tag in enumerate([*map(_parse, labels), None]):
        letter = None if tag is None else tag[0]
        if start >= 0 and (tag is None or letter in ("B", "S") or tag[1] != kind):
            if strict not in ("IOBES", "BILOU"):
                spans.append(Span(start, place, kind))
            start = -1
        if tag is not None and start < 0 and (strict is None or letter in ("B", "S")):
            start, kind = place, tag[1]
        if start >= 0 and letter in ("E", "S"):
            spans.append(Span(start, place + 1, kind))
            start = -1
    return spans


def labels_of_spans(spans: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """Labels of a sentence of `length` words that write its entities, which must not overlap, in a scheme."""
    labels = [OUTSIDE] * length
    before: Span | None = None
    for span in sorted(spans, key=lambda one: one.start):
        first, middle, last, only = _LETTERS.get(scheme, "IIII")
        if scheme == "IOB1" and before is not None and (before.end, before.label) == (span.start, span.label):
            first = only = "B"
        letters = only if span.end - span.start == 1 else first + middle * (span.end - span.start - 2) + last
        name = "" if span.label == _UNTYPED else f"-{span.label}"
        labels[span.start : span.end] = [f"{letter}{name}" for letter in letters]
        before = span
    return labels


def scheme_breaks(labels: Sequence[str], scheme: Scheme) -> list[int]:
    """The words whose label does not follow on the one before it, or is not followed on, as the scheme says."""
    broken: set[int] = set()
    for place, (before, tag) in enumerate(_pairs([*labels, OUTSIDE])):
        is_open = before is not None and before[0] in ("B", "I")
        goes_on = tag is not None and before is not None and tag[0] in ("I", "E") and tag[1] == before[1]
        if scheme == "IOB1":
            if tag is not None and tag[0] == "B" and (before is None or before[1] != tag[1]):
                broken.add(place)
            continue
        if tag is not None and tag[0] in ("I", "E") and not (is_open and goes_on):
            broken.add(place)
        if scheme != "BIO" and is_open and not goes_on:
            broken.add(place - 1)
    return sorted(broken)


def odd_labels(labels: Iterable[str]) -> list[str]:
    """The labels that are neither ``O`` nor of the form ``B-type``, in alphabetical order."""
    return sorted({label for label in labels if label != OUTSIDE and _parse(label) is None})


def _pairs(labels: Sequence[str]) -> list[tuple[tuple[str, str] | None, tuple[str, str] | None]]:
    """For each label the one before it and itself, as letter and type; None for those of no entity."""
    tags = [_parse(label) for label in labels]
    return list(zip([None, *tags], tags, strict=False))


@lru_cache(maxsize=1 << 12)
def _parse(label: str) -> tuple[str, str] | None:
    """Letter, those of BILOU as their like in IOBES, and type of an entity's label; None for any other."""
    found = _TAG.fullmatch(label)
    if found is None:
        return None
    letter, kind = found.groups()
    return _SAME_AS.get(letter, letter), kind or _UNTYPED
