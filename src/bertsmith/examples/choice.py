"""Multiple choice: which choice of a row is right, and each choice as a sequence of its own."""

import itertools
import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from bertsmith.examples.choice_tables import ChoiceItem, ChoiceRow, ChoiceTable
from bertsmith.examples.task_examples import LongTexts, TaskExamples, kept_windows, refuse_long_texts
from bertsmith.foundation.errors import InputError
from bertsmith.text.shown import counted_of
from bertsmith.tokenization.tokenizer import Tokenizer

_LETTERS = "ABCDEFGH"
_WHOLE_NUMBER = re.compile(r"([+-]?\d+)(\.0*)?")
_ENCODED_AT_ONCE = 256
_FEWEST_ROWS_TO_JUDGE = 10


def right_choices(table: ChoiceTable) -> Int[np.ndarray, " rows"]:
    """Place of the right choice of each row, from 0.

    A number is a place, and so is a letter where each label is one, A being the first, and none the text of a choice.
    Other labels that are text are what the columns say, and else what `labels_are_texts` finds.

    Raises:
        InputError: for a label that is neither, or the text of two choices; as `labels_are_texts`.
    """
    if _are_letters(table.rows):
        return np.array([_letter_place(row) for row in table.rows], np.int64)
    by_text = labels_are_texts(table) or False
    return np.array([_right(row, table, by_text=by_text) for row in table.rows], np.int64)


def labels_are_texts(table: ChoiceTable) -> bool | None:
    """Whether the labels of a file that are text are the texts of choices, and not their places.

    That is what its columns say; else they are places where all of them can be, and otherwise texts.

    Returns:
        None where nothing tells: no label is text, or each is at once the place and the text of the same choice.

    Raises:
        InputError: where the columns do not say it, each label is the place of a choice and the text of one, and these
            are not always the same.
    """
    if table.columns.by_text is not None:
        return table.columns.by_text
    if _are_letters(table.rows):
        return False
    written = [row for row in table.rows if isinstance(row.label, str)]
    all_texts = all(len(_with_text(row)) == 1 for row in written)
    if not all(_is_place(row) for row in written):
        return all_texts or any(_number(row.label) is None for row in written)
    if not all_texts:
        return False
    if any("." in row.label for row in written):
        return True  # A place may have been written as 1.0, but so is the choice itself.
    unlike = next((row for row in written if _with_text(row) != [_number(row.label)]), None)
    if unlike is None:
        return None
    raise InputError(
        "It must show whether labels are the places of the right choices, from 0, or their texts",
        f"{table.path}, where each of {len(written)} can be both, as {table.columns.label}={unlike.label!r:.60} in "
        f"{unlike.place}",
        "Write places, as numbers in a .jsonl file.",
    )


def choice_notes(table: ChoiceTable) -> list[str]:
    """What a person should know of rows, a line each."""
    counts = np.array([len(row.item.choices) for row in table.rows])
    few, most = int(counts.min()), int(counts.max())
    numbers = f"{few}" if few == most else f"{few} to {most}"
    notes = [f"{numbers} choices a row, of which guessing finds the right one in {(1 / counts).mean():.1%}"]
    if doubled := sum(len(set(row.item.choices)) < len(row.item.choices) for row in table.rows):
        notes.append(counted_of(doubled, len(counts), "row", "has a choice twice", "have a choice twice"))
    right = right_choices(table)
    if len(right) >= _FEWEST_ROWS_TO_JUDGE:
        if (right == right[0]).all():
            notes.append(f"choice {right[0]}, counted from 0, is the right one in every row")
        elif not (right == 0).any():
            notes.append("choice 0 is never the right one: places are counted from 0, not from 1")
    return notes


def choice_examples(
    items: Sequence[ChoiceItem],
    right: Int[np.ndarray, " rows"] | None,
    tokenizer: Tokenizer,
    *,
    max_length: int,
    long_texts: LongTexts = "head",
) -> TaskExamples:
    """Each choice as one sequence of two texts, those of a row together.

    Args:
        items: one a row.
        right: place of each row's right choice; None where it is not known.
        tokenizer: the model's.
        max_length: most tokens of a sequence, special ones included.
        long_texts: which part is kept of a longer one, head or tail.

    Raises:
        InputError: if `max_length` leaves no room for text, or texts are to be read in windows.
    """
    refuse_long_texts(long_texts, ("head", "tail"), "choices are compared by one reading of each")
    sequences: list[tuple[np.ndarray, np.ndarray]] = []
    num_cut = 0
    for first in range(0, len(items), _ENCODED_AT_ONCE):
        some = items[first : first + _ENCODED_AT_ONCE]
        encodings = iter(tokenizer.encode_batch([pair for item in some for pair in item.pairs]))
        for item in some:
            was_cut = False
            for encoding in itertools.islice(encodings, len(item.choices)):
                kept = kept_windows(encoding, max_length, long_texts)[0]
                was_cut = was_cut or len(kept) < len(encoding)
                sequences.append((encoding.token_ids[kept], encoding.segment_ids[kept]))
            num_cut += was_cut
    counts = np.array([len(item.choices) for item in items], np.int64)
    return TaskExamples.of(
        sequences,
        np.repeat(np.arange(len(items)), counts),
        targets=right,
        targets_by="group",
        group_starts=np.concatenate([[0], np.cumsum(counts)]),
        num_cut=num_cut,
    )


def _are_letters(rows: Sequence[ChoiceRow]) -> bool:
    """Whether each label is the letter of a choice, and none the text of one."""
    return all(_letter_place(row) is not None and not _with_text(row) for row in rows)


def _letter_place(row: ChoiceRow) -> int | None:
    letter = row.label.strip().upper() if isinstance(row.label, str) else ""
    place = _LETTERS.find(letter) if len(letter) == 1 else -1
    return place if 0 <= place < len(row.item.choices) else None


def _number(label: object) -> int | None:
    match label:
        case bool():
            return None
        case int():
            return label
        case float() if label.is_integer():
            return int(label)
        case str() if found := _WHOLE_NUMBER.fullmatch(label.strip()):
            return int(found[1])
        case _:
            return None


def _is_place(row: ChoiceRow) -> bool:
    number = _number(row.label)
    return number is not None and 0 <= number < len(row.item.choices)


def _with_text(row: ChoiceRow) -> list[int]:
    """Places of the choices whose text a row's label is."""
    return [place for place, choice in enumerate(row.item.choices) if choice.strip() == str(row.label).strip()]


def _right(row: ChoiceRow, table: ChoiceTable, *, by_text: bool) -> int:
    found = _with_text(row) if by_text and isinstance(row.label, str) else []
    if len(found) == 1:
        return found[0]
    number = _number(row.label)
    if number is not None and _is_place(row) and not (by_text and isinstance(row.label, str)):
        return number
    count = len(row.item.choices)
    ways = {
        None: ", or its text, or in every row its letter",
        False: ", as in training",
        True: ", as a number, or its text, as in training",
    }
    raise InputError(
        f"A label must be the place of the right choice, from 0 to {count - 1}{ways[table.columns.by_text]}",
        f"{table.path}, {row.place}: {table.columns.label}={row.label!r:.60}, "
        + (f"the text of {len(found)} choices" if found else f"with {count} choices"),
        "Mend the row, or name another column with --label.",
    )
