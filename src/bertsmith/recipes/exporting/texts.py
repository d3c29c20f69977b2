"""Texts by which an int8 model finds its scales and is judged: a person's own, or the documentation inside CPython."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.foundation.errors import InputError
from bertsmith.inference.engine import Job
from bertsmith.inference.fill import HUB_MASK
from bertsmith.recipes.demonstration.corpus import python_documentation
from bertsmith.recipes.prediction.items import file_input
from bertsmith.text.arrow_files import is_dataset_folder
from bertsmith.text.documents import TextConfig, find_files, read_documents

MOST_TEXTS = 256
"""Of those that scales are fixed by, and of those that the model is judged by."""
FEWEST_TEXTS = 16
"""Of both together."""
_MOST_READ = 20_000
_MOST_DOCUMENTATION = 2_000
_MOST_CHARACTERS = 2_000
_WORDS_OF_A_QUESTION = 8
_TABLES = frozenset({".jsonl", ".csv", ".tsv", ".parquet", ".arrow", ".json", ".conll", ".conllu"})


@dataclass(frozen=True)
class CalibrationItems:
    """Items as a predictor of the job takes them, none of them in both parts."""

    source: str
    """Where they are from."""
    to_calibrate: tuple[Any, ...]
    to_judge: tuple[Any, ...]


def calibration_items(job: Job, source: Path | None, *, pairs: bool | None = None) -> CalibrationItems:
    """Items for a job, spread evenly over what there is.

    Args:
        job: what the model is for.
        pairs: whether it was trained on pairs of texts; None where that is not known, or the job decides.
        source: rows as the job's own command reads them, with their pairs, questions or choices; or plain text, of
            which such items are made. None for the documentation of the running CPython.

    Raises:
        InputError: if it cannot be read, or holds too few texts.
    """
    if source is not None and not source.exists():
        raise InputError("--calibrate must name a file or a folder of text", source, "Check the path.")
    if source is None:
        # Its first documents are those of the language, and the rest would have to be parsed.
        lines = islice(_lines(document.text for document in python_documentation()), _MOST_DOCUMENTATION)
        name, found = "the documentation of CPython", _made(job, lines, pairs)
    elif job != "fill" and (source.suffix.lower() in _TABLES or is_dataset_folder(source)):
        name, found = source.name, _rows(job, source, pairs)
    else:
        name, found = source.name, _made(job, _texts(source), pairs)
    items = list(islice(found, _MOST_READ))
    if len(items) < FEWEST_TEXTS:
        raise InputError(
            f"--calibrate must hold {FEWEST_TEXTS} texts at least, and hundreds are better",
            f"{len(items)} in {name}",
            "Name a file with more, or leave it out.",
        )
    spread = np.unique(np.linspace(0, len(items) - 1, 2 * MOST_TEXTS).astype(int)).tolist()
    chosen = [items[number] for number in spread]
    return CalibrationItems(name, tuple(chosen[::2]), tuple(chosen[1::2]))


def _rows(job: Job, source: Path, pairs: bool | None) -> Iterator[Any]:
    found = file_input(job, source)
    if None not in (pairs, found.pairs) and pairs != found.pairs:
        wanted = "pairs of texts" if pairs else "texts that stand alone"
        raise InputError(
            f"--calibrate must hold {wanted}, as the model was trained on",
            f"{source}, with {found.columns}",
            "Name a file that does, or plain text, of which they are made.",
        )
    for part in found.parts:
        yield from (row.item for row in part if not isinstance(row.item, InputError))


def _texts(source: Path) -> Iterator[str]:
    """The documents of a text, or its lines where it has few documents."""
    files = find_files([str(source)])
    documents = [document.text for document in islice(read_documents(files, TextConfig()), _MOST_READ)]
    enough = len(documents) >= 2 * MOST_TEXTS
    return iter([text[:_MOST_CHARACTERS] for text in documents]) if enough else _lines(documents)


def _lines(documents: Iterator[str] | Sequence[str]) -> Iterator[str]:
    for document in documents:
        yield from (line.strip()[:_MOST_CHARACTERS] for line in document.splitlines() if line.strip())


def _made(job: Job, texts: Iterator[str], pairs: bool | None) -> Iterator[Any]:
    """What a predictor of the job takes, made of texts: a question is the beginning of the next one, choices are the
    next two, the second text of a pair is the next, and a mask stands in the middle."""
    held = list(islice(texts, _MOST_READ))
    match job:
        case "answer":
            yield from (
                (" ".join(following.split()[:_WORDS_OF_A_QUESTION]), text) for text, following in pairwise(held)
            )
        case "choose":
            yield from ((text, (one, other)) for text, one, other in zip(held, held[1:], held[2:], strict=False))
        case "fill":
            yield from map(_masked, held)
        case _ if pairs:
            yield from pairwise(held)
        case _:
            yield from held


def _masked(text: str) -> str:
    """A text whose middle word is hidden; where it has no words, its middle character."""
    words = text.split()
    if len(words) > 2:
        words[len(words) // 2] = HUB_MASK
        return " ".join(words)
    middle = len(text) // 2
    return f"{text[:middle]}{HUB_MASK}{text[middle + 1 :]}"
