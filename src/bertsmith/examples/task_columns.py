"""Which column of a task's table holds what: as it was named, or as names and contents tell."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.trained_on import refuse_unlike_training
from bertsmith.foundation.errors import InputError, near_match
from bertsmith.text.records import TEXT_COLUMNS
from bertsmith.text.shown import listed_names
from bertsmith.text.sources import TABLES, content_suffix, file_kind
from bertsmith.text.tables import TableRow, is_wordy

PAIR_COLUMNS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("sentence_a", "sentence_b"),
    ("question", "sentence"),
    ("question", "context"),
    ("query", "passage"),
    ("text", "text_pair"),
)
"""Columns that hold the two texts of a pair, where none is named."""
LABEL_COLUMNS = ("label", "labels", "class", "category", "target", "intent", "sentiment", "gold_label")
"""Columns under which the label is looked for, in this order, where none is named."""
_MORE_TEXT_COLUMNS = ("utterance", "question", "query", "review", "title")
SAMPLE_ROWS = 100
"""Rows that are looked at to tell the columns."""


@dataclass(frozen=True)
class Columns:
    """Which column holds what."""

    text: str
    pair: str | None
    label: str | None

    def __str__(self) -> str:
        parts = {"text": self.text, "pair": self.pair, "label": self.label}
        return ", ".join(f"{what} “{name}”" for what, name in parts.items() if name is not None)


class MissingColumn(InputError):
    """A column that is asked for by its name is none of a file's.

    Args:
        rule: as in `InputError`, and so are the next two.
        received: see above.
        do: see above.
        column: its name.
        names: the columns that the file has.
    """

    def __init__(self, rule: str, received: object, do: str, column: str = "", names: Sequence[str] = ()) -> None:
        super().__init__(rule, received, do)
        self.column = column
        self.names = tuple(names)


def named_columns(named: str) -> tuple[str, ...]:
    """Columns that were named in one option, as ``a,b,c``; a name with a comma stands in quotes: ``a,"b, c"``."""
    parts = next(csv.reader([named], skipinitialspace=True), [])
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def find_columns(
    path: Path,
    sample: Sequence[TableRow],
    config: TableConfig,
    *,
    labels: bool,
    options: OptionNames,
    label_columns: Sequence[str] = LABEL_COLUMNS,
) -> Columns:
    """The columns that were named, or else those whose names or contents tell.

    Raises:
        InputError: if one that was named is missing, or one that is needed cannot be told.
    """
    names = column_names(path, sample)
    named = [(options.text, config.text), (options.pair, config.pair)]
    if labels:
        named.append((options.label, config.label))
    for option, name in named:
        if name is not None and name not in names:
            raise missing_column(path, option, name, names)
    label = _label_column(path, names, config, options, label_columns) if labels else None
    rest = [name for name in names if name != label]
    text, pair = config.text, config.pair
    if text is None and pair is None:
        text, pair = _known_pair(rest)
    if text is None:
        rest = [name for name in rest if name != pair]
        known = (*TEXT_COLUMNS, *_MORE_TEXT_COLUMNS)
        text = next((found for name in known if (found := named_column(rest, name))), None)
    if text is None:
        # Where predictions are wanted, a column of labels may stand beside the text.
        rest = rest if labels else [name for name in rest if name.lower() not in LABEL_COLUMNS]
        wordy = [name for name in rest if any(is_wordy(row.values.get(name)) for row in sample)]
        if len(wordy) != 1:
            raise unknown_column(path, "text", options.text, names)
        text = wordy[0]
    return Columns(text, pair, label)


def refuse_unlike(expected: bool | None, pairs: bool | None, received: str, options: OptionNames) -> None:
    """Raise an `InputError` for pairs where a model was trained on texts that stand alone, and the other way round.

    Args:
        expected: whether it was trained on pairs; None where that is not known.
        pairs: whether what it is given are pairs; None where that is not known.
        received: what it is given, to be told.
        options: what columns are named with.
    """
    both = f"Name both columns with {options.text} and {options.pair}."
    refuse_unlike_training(expected, pairs, received, both, f"Name the column of the text with {options.text} alone.")


def column_names(path: Path, sample: Sequence[TableRow]) -> list[str]:
    """The columns of a table, by the first of its rows.

    Raises:
        InputError: if there is no row, or none that could be read.
    """
    names = list(dict.fromkeys(name for row in sample for name in row.values))
    if not names:
        fault = next((row.fault for row in sample if row.fault is not None), None)
        raise fault or InputError("A table must hold rows", f"{path} without any", "Check the file.")
    return names


def _label_column(
    path: Path, names: list[str], config: TableConfig, options: OptionNames, label_columns: Sequence[str]
) -> str:
    if config.label is not None:
        return config.label
    rest = [name for name in names if name not in (config.text, config.pair)]
    found = next((found for name in label_columns if (found := named_column(rest, name))), None)
    if found is not None:
        return found
    others = [name for name in rest if name.lower() not in TEXT_COLUMNS]
    if len(names) == (2 if config.pair is None else 3) and len(others) == 1:
        return others[0]
    raise unknown_column(path, "label", options.label, names)


def named_column(names: Sequence[str], wanted: str) -> str | None:
    """The column of this name, in whatever case it is written."""
    return next((name for name in names if name.lower() == wanted), None)


def _known_pair(names: Sequence[str]) -> tuple[str | None, str | None]:
    for first, second in PAIR_COLUMNS:
        text, pair = named_column(names, first), named_column(names, second)
        if text is not None and pair is not None:
            return text, pair
    return None, None


def missing_column(path: Path, option: str, name: str, names: Sequence[str]) -> InputError:
    """The error for a column that was named by an option, or that another file has, and is none of the file's."""
    if holds_texts_alone(path):
        return no_columns(path, f"“{name}” must be a column")
    near = near_match(name, names)
    return MissingColumn(
        f"{option} must be one of the file's columns: {listed_names(names)}",
        f"{name}, for {path}",
        f"Did you mean {near}?" if near else "Name one of them.",
        name,
        names,
    )


def unknown_column(path: Path, what: str, option: str, names: Sequence[str]) -> InputError:
    """The error for a column that is needed, was not named and cannot be told."""
    if holds_texts_alone(path):
        return no_columns(path, f"The {what} must stand in a column")
    header = " Is the first line the header?" if file_kind(path).layout in ("csv", "tsv") else ""
    return InputError(
        f"The column that holds the {what} must be known",
        f"{path} with the columns {', '.join(names)}",
        f"Name it with {option}.{header}",
    )


def no_columns(path: Path, rule: str) -> InputError:
    """The error for plain text where columns are needed; the rule says for what."""
    do = "Write the rows into such a file, each with its text and what belongs to it."
    return InputError(
        f"{rule}, which {TABLES} files have",
        f"{path}, of which each line is a text and nothing else",
        do if content_suffix(path) else "If it has columns, give it the ending that tells which.",
    )


def holds_texts_alone(path: Path) -> bool:
    """Whether a file is plain text, and has no columns."""
    kind = file_kind(path)
    return not path.is_dir() and kind.layout == "plain" and (kind.known or not content_suffix(path))
