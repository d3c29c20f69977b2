"""Rows for embeddings as groups of token sequences, and what stands out in the rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int

from bertsmith.examples.data_look import skipped_notes
from bertsmith.examples.embedding_tables import EmbedKind, EmbedRow, EmbedTable
from bertsmith.examples.repeated_rows import repeats
from bertsmith.examples.task_examples import LongTexts, TaskExamples, kept_windows, refuse_long_texts
from bertsmith.foundation.errors import InputError
from bertsmith.text.shown import counted_of
from bertsmith.tokenization.encoding import Encoding
from bertsmith.tokenization.tokenizer import Tokenizer

_ROWS_AT_ONCE = 512


def halves(text: str) -> tuple[str, str]:
    """The two halves of a text, parted between words where there are two; a single character is both."""
    words = text.split()
    middle = len(words) // 2
    if middle:
        return " ".join(words[:middle]), " ".join(words[middle:])
    middle = len(text) // 2
    return (text[:middle], text[middle:]) if text[:middle].strip() and text[middle:].strip() else (text, text)


def embedding_examples(
    rows: Sequence[EmbedRow],
    kind: EmbedKind,
    tokenizer: Tokenizer,
    *,
    max_length: int,
    long_texts: LongTexts = "head",
    in_halves: bool = False,
) -> TaskExamples:
    """Each row as a group of sequences. A text alone stands there twice, for two readings under dropout.

    Args:
        rows: the rows.
        kind: what they are.
        tokenizer: the model's.
        max_length: most tokens of a sequence, special ones included.
        long_texts: which end of a longer text is kept.
        in_halves: texts alone are given by their two halves, which are to find each other: without labels there is
            nothing else to judge by.

    Returns:
        the groups; targets are the scores of graded pairs, or else a number for each sequence, the same for those that
        show a model the same tokens.

    Raises:
        InputError: if `max_length` leaves no room for text, windows are asked for, or a text has no tokens.
    """
    refuse_long_texts(long_texts, ("head", "tail"), "an embedding is made of one reading of a text")
    sequences: list[tuple[np.ndarray, np.ndarray]] = []
    row_of: list[int] = []
    cut_rows: set[int] = set()
    for row, text, encoding in _encoded([_sides(row, kind, in_halves) for row in rows], tokenizer):
        (kept,) = kept_windows(encoding, max_length, long_texts)
        if not len(kept):
            raise InputError("A text must have tokens", f"none in “{text:.60}”, {rows[row].place}", "Remove that row.")
        if len(kept) < len(encoding):
            cut_rows.add(row)
        sequences.append((encoding.token_ids[kept], encoding.segment_ids[kept]))
        row_of.append(row)
    counts = np.bincount(np.asarray(row_of, np.int64), minlength=len(rows))
    scored = kind == "scored"
    targets = np.array([row.score for row in rows], np.float32) if scored else _numbers([ids for ids, _ in sequences])
    return TaskExamples.of(
        sequences,
        row_of,
        targets=targets,
        targets_by="group" if scored else "sequence",
        group_starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        num_cut=len(cut_rows),
    )


def embed_notes(table: EmbedTable) -> list[str]:
    """What stands out in the rows, one line each; empty where nothing does."""
    rows = table.rows
    notes = skipped_notes(table.skipped)
    if doubles := len(repeats(rows)):
        repeat = ("repeats the texts of another", "repeat the texts of another")
        notes.append(counted_of(doubles, len(rows), "row", *repeat))
    if table.columns.kind == "pairs" and (same := sum(row.texts[0] == row.texts[1] for row in rows)):
        alike = "the same text on both sides"
        notes.append(counted_of(same, len(rows), "row", f"has {alike}", f"have {alike}"))
    return notes


def refuse_unlearnable(rows: Sequence[EmbedRow], kind: EmbedKind, path: Path) -> None:
    """Raise an `InputError` for rows that leave nothing to compare."""
    if kind == "scored":
        if len({row.score for row in rows}) < 2:
            raise InputError(
                "Scores must differ, since embeddings learn which of two pairs is the nearer",
                f"{rows[0].score:g} in all {len(rows)} rows of {path}",
                "Name another column with --label, or keep the pairs alone.",
            )
        return
    side = 1 if kind == "pairs" else 0
    if len({row.texts[side] for row in rows}) < 2:
        raise InputError(
            "There must be two different texts at least, since embeddings learn to tell texts apart",
            f"“{rows[0].texts[side]:.60}” in all {len(rows)} rows of {path}",
            "Add rows.",
        )


def _sides(row: EmbedRow, kind: EmbedKind, in_halves: bool) -> tuple[str, ...]:
    if kind != "texts":
        return row.texts
    text = row.texts[0]
    return halves(text) if in_halves else (text, text)


def _encoded(sides: Sequence[tuple[str, ...]], tokenizer: Tokenizer) -> Iterator[tuple[int, str, Encoding]]:
    """Each text of each row, with the row's number and what the tokenizer makes of it."""
    for first in range(0, len(sides), _ROWS_AT_ONCE):
        texts = [(row, text) for row, own in enumerate(sides[first : first + _ROWS_AT_ONCE], first) for text in own]
        encodings = tokenizer.encode_batch([text for _, text in texts])
        for (row, text), encoding in zip(texts, encodings, strict=True):
            yield row, text, encoding


def _numbers(sequences: Sequence[np.ndarray]) -> Int[np.ndarray, " sequences"]:
    """A number for each sequence, the same for equal ones."""
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(ids.tobytes(), len(seen)) for ids in sequences], np.int64)
