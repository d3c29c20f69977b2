"""Predictions for people: a line or more each, readable beside text of every script and direction."""

import unicodedata
from collections.abc import Callable, Sequence
from itertools import combinations
from math import hypot
from operator import mul
from typing import Any

from bertsmith.text.shown import listed_names, on_one_line, shortened

_LONGEST_TEXT, _LONGEST_MARKED = 100, 2_000
_MOST_NUMBERS = 6
_MOST_COMPARED = 10
_ISOLATE, _END_ISOLATE = "\u2068", "\u2069"
"""Between these a text has its own direction and leaves that of its neighbours alone (Unicode Annex 9)."""
_RIGHT_TO_LEFT = ("R", "AL")

Values = dict[str, Any]


def prediction_lines(task: str, values: Values, *, top_k: int = 1) -> list[str]:
    """A prediction, most telling first, parts parted by tabs, the text last.

    Args:
        task: what was predicted.
        values: the prediction's.
        top_k: how many labels or answers are shown.
    """
    return _LINES[task](values, top_k)


def isolated(text: str) -> str:
    """A text that can stand in a line with others: control characters are escaped, and where it has letters that run
    from right to left, it is isolated."""
    text = on_one_line(text)
    if any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in text):
        return f"{_ISOLATE}{text}{_END_ISOLATE}"
    return text


def shortened_line(text: str) -> str:
    """A text on one line, cut where it is long."""
    return shortened(" ".join(text.split()), _LONGEST_TEXT)


def _texts(values: Values) -> str:
    return "\t".join(isolated(shortened_line(values[name])) for name in ("text", "pair") if name in values)


def _class_lines(values: Values, top_k: int) -> list[str]:
    first = f"{isolated(values['label'])}\t{values['score']:.2%}\t{_texts(values)}"
    others = list(values["scores"].items())[1:top_k]
    return [first, *(f"  {isolated(name)}\t{score:.2%}" for name, score in others)]


def _labels_lines(values: Values, top_k: int) -> list[str]:
    found = ", ".join(f"{isolated(listed_names([name]))} {values['scores'][name]:.0%}" for name in values["labels"])
    others = [name for name in values["scores"] if name not in values["labels"]]
    others = others[: max(0, top_k - len(values["labels"]))]
    return [
        f"{found or '–'}\t{_texts(values)}",
        *(f"  not {isolated(name)}\t{values['scores'][name]:.0%}" for name in others),
    ]


def _value_lines(values: Values, top_k: int) -> list[str]:
    return [f"{values['value']:.6g}\t{_texts(values)}"]


def _choice_lines(values: Values, top_k: int) -> list[str]:
    order = sorted(range(len(values["choices"])), key=lambda number: -values["scores"][number])
    before = isolated(shortened_line(" ".join(part for part in (values["text"], values.get("start", "")) if part)))
    lines = [f"{isolated(shortened_line(values['choice']))}\t{values['score']:.2%}\t{before}"]
    others = (number for number in order if number != values["index"])
    for number, _ in zip(others, range(top_k - 1), strict=False):
        lines.append(f"  {isolated(shortened_line(values['choices'][number]))}\t{values['scores'][number]:.2%}")
    return lines


def _answer_lines(values: Values, top_k: int) -> list[str]:
    question = isolated(shortened_line(values["question"]))
    found = _span(values) if values["answer"] else f"– no answer\t{values['score']:.2%}"
    return [f"{found}\t{question}", *(f"  {_span(other)}" for other in values["alternatives"][: top_k - 1])]


def _span(values: Values) -> str:
    place = f"[{values['start']:,}, {values['end']:,})"
    return f"{isolated(shortened_line(values['answer']))}\t{values['score']:.2%}\t{place}"


def _tag_lines(values: Values, top_k: int) -> list[str]:
    entities = values["entities"]
    if not entities:
        labels = {word["label"] for word in values["words"]}
        if labels <= {"O"}:
            return [isolated(shortened_line(values["text"]))]
        return ["  ".join(isolated(f"{word['word']}/{word['label']}") for word in values["words"])]
    lines = [isolated(_marked(values["text"], entities))]
    for entity in entities:
        place = f"[{entity['start']:,}, {entity['end']:,})"
        lines.append(f"  {entity['label']}\t{entity['score']:.2%}\t{place}\t{isolated(shortened_line(entity['text']))}")
    return lines


def _marked(text: str, entities: list[Values]) -> str:
    """A text with its entities in brackets, each with its label behind it."""
    parts: list[str] = []
    end = 0
    for entity in entities:
        parts.append(text[end : entity["start"]])
        parts.append(f"[{isolated(text[entity['start'] : entity['end']])} {isolated(entity['label'])}]")
        end = entity["end"]
    parts.append(text[end:])
    flat = " ".join("".join(parts).split())
    return flat if len(flat) <= _LONGEST_MARKED else f"{flat[:_LONGEST_MARKED]}…"


def _embed_lines(values: Values, top_k: int) -> list[str]:
    vector = values["embedding"]
    shown = " ".join(f"{number:.4f}" for number in vector[:_MOST_NUMBERS])
    more = " …" if len(vector) > _MOST_NUMBERS else ""
    return [f"[{shown}{more}] {len(vector)} numbers\t{_texts(values)}"]


def similarity_lines(vectors: Sequence[Sequence[float]]) -> list[str]:
    """How alike each two of a few texts are: the cosine of the angle between their vectors."""
    lengths = [hypot(*vector) or 1.0 for vector in vectors]
    pairs = combinations(range(len(vectors)), 2) if len(vectors) <= _MOST_COMPARED else ()
    return [
        f"  cosine of {first + 1} and {other + 1}\t"
        f"{sum(map(mul, vectors[first], vectors[other])) / (lengths[first] * lengths[other]):.3f}"
        for first, other in pairs
    ]


_LINES: dict[str, Callable[[Values, int], list[str]]] = {
    "classify": _class_lines,
    "multilabel": _labels_lines,
    "regress": _value_lines,
    "choose": _choice_lines,
    "answer": _answer_lines,
    "tag": _tag_lines,
    "embed": _embed_lines,
}
