"""A look at the data of a task before anything is trained: what a person should know of it."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from bertsmith.examples.choice_tables import ChoiceItem
from bertsmith.examples.item_texts import long_words_by_item
from bertsmith.examples.repeated_rows import KeyedRow, repeats
from bertsmith.examples.task_tables import TaskTable
from bertsmith.text.shown import counted, counted_of, first_few
from bertsmith.tokenization.tokenizer import Tokenizer

_FEW_ROWS = 10
_UNEVEN = 10
_MOST_MEASURED = 20_000
"""Rows whose length is measured: of more, as many that stand evenly apart."""
_ENCODED_AT_ONCE = 1024
_UNLIKE: dict[str, Callable[[str], str]] = {
    "by Unicode normalisation": lambda name: unicodedata.normalize("NFC", name),
    "by case": lambda name: unicodedata.normalize("NFC", name).casefold(),
    "by spaces": lambda name: "".join(unicodedata.normalize("NFC", name).casefold().split()),
}
"""What names differ by that look alike, and what is equal in them then; each takes away what the ones before it do."""


def table_notes(table: TaskTable) -> list[str]:
    """What stands out in the rows of a file by themselves, one line each; empty where nothing does."""
    notes = skipped_notes(table.skipped)
    if doubles := len(repeats(table.rows)):
        repeat = ("repeats the text of another", "repeat the text of another")
        notes.append(counted_of(doubles, len(table.rows), "row", *repeat))
    return notes


def skipped_notes(places: Sequence[str]) -> list[str]:
    """A line about rows that were left out because something in them is blank; none without any."""
    return [f"{counted(len(places), 'row')} left out, blank: {first_few(places)}"] if places else []


def counts_note(part: str, num_rows: int, counts: Mapping[str, int]) -> str:
    """A line about the size of a part of the data, and how often it has each label, the commonest first."""
    commonest = [f"“{name}” {count:,}" for name, count in Counter(counts).most_common()]
    return f"{part}: {counted(num_rows, 'row')}" + (f", of {first_few(commonest)}" if commonest else "")


def label_notes(counts: Mapping[str, int]) -> list[str]:
    """What stands out in the number of training rows of each label."""
    notes = [note] if (note := alike_note(list(counts))) else []
    small = [f"{name} {count}" for name, count in counts.items() if count < _FEW_ROWS]
    if small:
        notes.append(f"labels with fewer than {_FEW_ROWS} training rows: {first_few(small)}")
    largest, smallest = max(counts.values()), min(counts.values())
    if largest >= _UNEVEN * max(smallest, 1):
        notes.append(
            f"labels are uneven, {counted(largest, 'row')} of the commonest and {smallest:,} of the rarest: look at "
            "the scores of each label, or weigh them alike with --set class_weights=balanced"
        )
    return notes


def alike_note(names: Sequence[str]) -> str | None:
    """A line about labels that a person would take for the same; None without any."""
    alike: list[str] = []
    for what, plain in _UNLIKE.items():
        groups: dict[str, list[str]] = {}
        for name in names:
            groups.setdefault(plain(name), []).append(name)
        several = [group for group in groups.values() if len(group) > 1]
        alike += [f"{' and '.join(f'“{name}”' for name in group)} ({what})" for group in several]
        names = [group[0] for group in groups.values()]
    return f"labels that look alike and are learned as different ones: {first_few(alike)}" if alike else None


def validation_label_notes(counts: Mapping[str, int]) -> list[str]:
    """What stands out in the number of validation rows of each label."""
    absent = [name for name, count in counts.items() if not count]
    if len(absent) == len(counts) - 1 > 0:
        (only,) = (name for name in counts if name not in absent)
        return [f"all validation rows have the label {only}: their scores say nothing of the others"]
    return [f"labels without a validation row: {first_few(absent)}"] if absent else []


def row_lengths(rows: Sequence[KeyedRow], tokenizer: Tokenizer, *, apart: bool = False) -> Int[np.ndarray, " rows"]:
    """Tokens of each row before anything is cut, special ones included; of many rows, 20,000 that stand evenly apart.

    Args:
        rows: the rows.
        tokenizer: the model's.
        apart: whether the texts of a row are sequences by themselves, of which the longest counts. Otherwise two are a
            pair.
    """
    measured = rows[:: max(1, -(-len(rows) // _MOST_MEASURED))]
    lengths: list[int] = []
    for first in range(0, len(measured), _ENCODED_AT_ONCE):
        sequences = [_sequences(row.key, apart=apart) for row in measured[first : first + _ENCODED_AT_ONCE]]
        encodings = iter(tokenizer.encode_batch([text for texts in sequences for text in texts]))
        lengths += [max(len(next(encodings)) for _ in texts) for texts in sequences]
    return np.array(lengths, np.int64)


def length_note(part: str, lengths: Int[np.ndarray, " rows"]) -> str:
    """A line about the lengths of a part's rows."""
    middle, high, most = (int(value) for value in np.percentile(lengths, [50, 95, 100], method="higher"))
    return (
        f"{part}: a row has {counted(middle, 'token')} in the middle, {high:,} at the 95th percentile, {most:,} at most"
    )


def cut_note(num_cut: int, num_rows: int, max_length: int, kept: str) -> str | None:
    """A line about rows that are longer than the model sees; None without any."""
    if not num_cut:
        return None
    # Windows show all of a text, and of two the longer one.
    used = "shorter text is cut at its end" if kept == "windows" else f"{kept} is used"
    longer = f"longer than {max_length} tokens"
    told = (f"is {longer}; its {used}", f"are {longer}; their {used}")
    return counted_of(num_cut, num_rows, "row", *told)


def long_word_note(rows: Sequence[KeyedRow], tokenizer: Tokenizer) -> str | None:
    """A line about rows with words that the tokenizer makes unknown for their length; None without any."""
    num_rows = num_words = 0
    for first in range(0, len(rows), _ENCODED_AT_ONCE):
        of_rows = long_words_by_item(tokenizer, [row.key for row in rows[first : first + _ENCODED_AT_ONCE]])
        num_rows += sum(count > 0 for count in of_rows)
        num_words += sum(of_rows)
    if not num_words:
        return None
    longer = f"a word of more than {tokenizer.max_word_characters:,} characters, which becomes unknown"
    found = counted_of(num_rows, len(rows), "row", f"has {longer}", f"have {longer}")
    return f"{found} ({counted(num_words, 'such word')}; the tokenizer's max_word_characters)"


def _sequences(key: Any, *, apart: bool) -> Sequence[str | tuple[str, str]]:
    """What a tokenizer takes of a row."""
    match key:
        case ChoiceItem():
            return key.pairs
        case (str() as first, str() as second) if not apart:
            return [(first, second)]
        case tuple():
            return key
        case _:
            return [key]
