"""Tables that embeddings are learned from: texts that belong together, graded pairs, or texts alone."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_columns import (
    LABEL_COLUMNS,
    PAIR_COLUMNS,
    SAMPLE_ROWS,
    column_names,
    missing_column,
    named_column,
    unknown_column,
)
from bertsmith.examples.task_tables import cell_text, is_blank, open_rows, whole_rows
from bertsmith.foundation.errors import InputError
from bertsmith.text.records import TEXT_COLUMNS
from bertsmith.text.sources import file_kind
from bertsmith.text.tables import TableRow, is_wordy
from bertsmith.text.written_values import read_flag

EmbedKind = Literal["pairs", "scored", "texts"]
"""Texts that belong together, perhaps with one that does not; two texts and how near they are; or texts alone."""
PARTNER_COLUMNS = (
    ("anchor", "positive"),
    ("query", "positive"),
    ("query", "document"),
    ("query", "answer"),
    ("question", "answer"),
    ("question", "passage"),
    ("text", "positive"),
    ("text", "pair"),
    *PAIR_COLUMNS,
)
"""Columns that hold two texts that belong together, where none is named."""
NEGATIVE_COLUMNS = ("negative", "hard_negative")
SCORE_COLUMNS = ("score", "similarity", "similarity_score", "relatedness", "relatedness_score")
"""Columns of scores by their name alone; a column of labels counts where its numbers have fractions."""
_NEGATIVE_OPTION = "data.negative"
_LABEL_COLUMNS = (*LABEL_COLUMNS, "is_duplicate")
_MOST_LABELS = 3
"""How many numbers recur at most in a column of any name that is taken for labels."""


@dataclass(frozen=True)
class EmbedColumns:
    """Which column holds what."""

    text: str
    partner: str | None = None
    negative: str | None = None
    score: str | None = None

    @property
    def kind(self) -> EmbedKind:
        """What the rows are."""
        if self.partner is None:
            return "texts"
        return "pairs" if self.score is None else "scored"

    def __str__(self) -> str:
        match self.kind:
            case "texts":
                return f"text “{self.text}”, each alone: learned from two readings of it, judged by its two halves"
            case "scored":
                return f"texts “{self.text}” and “{self.partner}”, score “{self.score}”"
            case "pairs":
                beside = "" if self.negative is None else f", and “{self.negative}”, which does not"
                return f"text “{self.text}”, what belongs to it “{self.partner}”{beside}"


@dataclass(frozen=True)
class EmbedRow:
    """One row: a text alone, with its partner and perhaps a negative, or two texts with a score."""

    texts: tuple[str, ...]
    score: float | None
    """The higher, the nearer the two texts; in any unit."""
    place: str
    """Where it stands in its file."""

    @property
    def key(self) -> tuple[str, ...]:
        """The texts: rows with the same ones show a model the same."""
        return self.texts

    @property
    def target(self) -> float | None:
        """The score: rows with the same texts should have the same."""
        return self.score


@dataclass(frozen=True)
class EmbedTable:
    """The rows of a file."""

    path: Path
    columns: EmbedColumns
    rows: tuple[EmbedRow, ...]
    skipped: tuple[str, ...]
    """Places of rows that were left out because something in them is blank."""


def read_embed_table(
    path: Path,
    config: TableConfig = TableConfig(),
    *,
    like: EmbedColumns | None = None,
    options: OptionNames = OptionNames(),
) -> EmbedTable:
    """Read a file. A plain text file holds texts alone, one a line; its blank lines are left out.

    Args:
        path: the file.
        config: how it is read.
        like: columns of an earlier file, which are meant if they are here; else this file is looked at for itself, for
            pairs may well be validated on graded ones.
        options: what errors call the settings.

    Raises:
        InputError: if it cannot be read, a column is missing or cannot be told, or a row is blank or holds something
            else than text or a number.
    """
    rows = open_rows(path, config, options)
    sample = list(itertools.islice(rows, SAMPLE_ROWS))
    columns = find_embed_columns(path, sample, config, like=like, options=options)
    needed = [name for name in (columns.text, columns.partner, columns.score) if name is not None]

    def row_of(row: TableRow) -> EmbedRow:
        names = [columns.text, columns.partner]
        if columns.negative is not None and not is_blank(row.values, columns.negative):
            names.append(columns.negative)
        texts = tuple(cell_text(path, row, name, options) for name in names if name is not None)
        score = None if columns.score is None else _score(path, row, columns.score, options)
        return EmbedRow(texts, score, row.place)

    if path.is_file() and file_kind(path).layout == "plain":
        config = config.model_copy(update={"blank_rows": "skip"})
    found, skipped = whole_rows(
        path,
        itertools.chain(sample, rows),
        lambda row: [name for name in needed if is_blank(row.values, name)],
        row_of,
        config,
        options,
    )
    return EmbedTable(path, columns, found, skipped)


def find_embed_columns(
    path: Path,
    sample: Sequence[TableRow],
    config: TableConfig,
    *,
    like: EmbedColumns | None = None,
    options: OptionNames = OptionNames(),
) -> EmbedColumns:
    """The columns that were named, or else those whose names or contents tell; raises as `read_embed_table`."""
    names = column_names(path, sample)
    named = {
        options.text: config.text,
        options.pair: config.pair,
        options.label: config.label,
        _NEGATIVE_OPTION: config.negative,
    }
    if like is not None:
        known = [like.text, *(name for name in (like.partner, like.score) if name is not None)]
        if set(known) <= set(names):
            negative = like.negative if like.negative in names else None
            return EmbedColumns(like.text, like.partner, negative, like.score)
        named = {option: name if name in names else None for option, name in named.items()}
    for option, name in named.items():
        if name is not None and name not in names:
            raise missing_column(path, option, name, names)
    text, partner, score, negative = named.values()
    if text is None:
        text, partner = _text_columns(path, sample, names, partner, options)
    if partner is None:
        if score is not None or negative is not None:
            raise unknown_column(path, "second text of each pair", options.pair, names)
        return EmbedColumns(text)
    rest = [name for name in names if name not in (text, partner)]
    if negative is None and score is None:
        negative = next((found for name in NEGATIVE_COLUMNS if (found := named_column(rest, name))), None)
    if score is not None and negative is not None:
        raise InputError(
            "Rows have scores or negatives, not both",
            f"{options.label} {score} and {_NEGATIVE_OPTION} {negative}, for {path}",
            "Leave one of them out.",
        )
    if negative is None and score is None:
        score = _score_column(path, sample, rest, options)
    return EmbedColumns(text, partner, negative, score)


def _text_columns(
    path: Path, sample: Sequence[TableRow], names: Sequence[str], partner: str | None, options: OptionNames
) -> tuple[str, str | None]:
    """The column of the text, and that of its partner where there is one."""
    for first, second in PARTNER_COLUMNS:
        text, other = named_column(names, first), named_column(names, second)
        if text is not None and other is not None and partner in (None, other):
            return text, other
    rest = [name for name in names if name != partner]
    text = next((found for name in TEXT_COLUMNS if (found := named_column(rest, name))), None)
    if text is None:
        wordy = [name for name in rest if any(is_wordy(row.values.get(name)) for row in sample)]
        if len(wordy) != 1:
            raise unknown_column(
                path, "text", f"{options.text}, and that of what belongs to it with {options.pair}", names
            )
        text = wordy[0]
    return text, partner


def _score_column(path: Path, sample: Sequence[TableRow], rest: Sequence[str], options: OptionNames) -> str | None:
    """The column of the scores, where there is one.

    Raises:
        InputError: for a column of labels that may be scores or may not, by its name or by the few numbers that it
            holds: to take pairs that do not belong together for such that do would teach the opposite of what is there.
    """
    found = next((found for name in SCORE_COLUMNS if (found := named_column(rest, name))), None)
    if found is not None:
        return found
    label = next((found for name in _LABEL_COLUMNS if (found := named_column(rest, name))), None)
    if label is not None and any(not number.is_integer() for number in _numbers(sample, label)):
        return label
    label = label or next((name for name in rest if _has_few_numbers(sample, name)), None)
    if label is None:
        return None
    raise InputError(
        "Of pairs with labels it must be known which belong together",
        f"{path} with the column {label}",
        f"If it holds numbers that are higher for nearer pairs, name it with {options.label}. Else keep the rows of "
        "texts that belong together, without that column.",
    )


def _has_few_numbers(sample: Sequence[TableRow], name: str) -> bool:
    """Whether a column holds two or three numbers or truth values again and again."""
    numbers = _numbers(sample, name)
    return 1 < len(set(numbers)) <= min(_MOST_LABELS, len(numbers) - 1)


def _numbers(sample: Sequence[TableRow], name: str) -> list[float]:
    """The numbers of a column, truth values being 0 and 1; none where it holds something else."""
    values = [row.values.get(name) for row in sample if not is_blank(row.values, name)]
    read = [_number(value) if (flag := read_flag(value)) is None else float(flag) for value in values]
    numbers = [number for number in read if number is not None]
    return numbers if len(numbers) == len(values) else []


def _score(path: Path, row: TableRow, column: str, options: OptionNames) -> float:
    value = _number(row.values.get(column))
    if value is None:
        raise InputError(
            "A score must be a number",
            f"{path}, {row.place}: {column}={row.values.get(column)!r:.60}",
            f"Mend the row, or name another column with {options.label}.",
        )
    return value


def _number(value: Any) -> float | None:
    """A value as a number; None for what is none, or not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
