"""Tables with a list of words and a list of their labels in each row: their columns, and their sentences."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_columns import SAMPLE_ROWS, column_names, missing_column, named_column, unknown_column
from bertsmith.examples.task_tables import is_blank, open_rows
from bertsmith.examples.written_lists import read_list
from bertsmith.foundation.errors import InputError
from bertsmith.text.decoding import HoldsNul, NotUtf8, whole_lines
from bertsmith.text.records import TEXT_COLUMNS
from bertsmith.text.sources import file_kind
from bertsmith.text.tables import TableRow, refuse_half_pair
from bertsmith.text.tagged import TaggedSentence

WORD_COLUMNS = ("words", "tokens", "word", "token", "forms", "form", "text", "sentence")
"""Columns of a table under which the words are looked for, in this order, where none is named."""
TAG_COLUMNS = ("tags", "ner_tags", "labels", "pos_tags", "ner", "pos", "upos", "xpos", "tag", "label")
"""The same for their labels."""


@dataclass(frozen=True)
class ListColumns:
    """The columns of a table that hold lists of words and of their labels."""

    words: str
    tags: str | None

    def __str__(self) -> str:
        return f"words “{self.words}”" + ("" if self.tags is None else f", tags “{self.tags}”")


def is_table(path: Path, encoding: str = "utf-8") -> bool:
    """Whether a file holds a sentence a row, and not a word a line.

    A .tsv file does where its first line names a column of texts, which may be a word where a blank line parts two of
    its first lines; or where its second one has a list written out.
    """
    if path.is_dir():
        return True
    layout = file_kind(path).layout
    if layout != "tsv":
        return layout in ("jsonl", "csv", "parquet")
    try:
        lines = [line for _, line in itertools.islice(whole_lines(path, encoding), SAMPLE_ROWS)]
    except (NotUtf8, HoldsNul):
        return False  # Told where it is read.
    if any(_is_list_of_texts(cell) for line in lines[1:2] for cell in line.split("\t")):
        return True
    is_parted = any(not line.strip() and after.strip() for line, after in itertools.pairwise(lines))
    return not is_parted and any(_guessed(line.split("\t"), TEXT_COLUMNS) is not None for line in lines[:1])


def _is_list_of_texts(cell: str) -> bool:
    """Whether a cell, perhaps still in the quotes of its file, is a list that a word such as [1] would not be."""
    found = read_list(cell.strip('"').replace('""', '"'))
    return bool(found) and all(isinstance(value, str) for value in found)


def open_lists(
    path: Path, config: TableConfig, like: ListColumns | None, options: OptionNames, *, has_tags: bool
) -> tuple[ListColumns, Iterator[TableRow]]:
    """Open a table: its columns of lists, and its rows one at a time.

    Args:
        path: the table.
        config: which columns hold them.
        like: columns that are meant where none are named.
        options: what errors call the settings.
        has_tags: whether labels are wanted too.

    Raises:
        InputError: if it cannot be read, or a column is missing or cannot be told.
    """
    rows = open_rows(path, config, options)
    sample = list(itertools.islice(rows, SAMPLE_ROWS))
    names = column_names(path, sample)
    lists = [name for name in names if any(read_list(row.values.get(name)) is not None for row in sample)]
    words = config.text or (None if like is None else like.words)
    tags = config.label or (None if like is None else like.tags)
    for option, name in ((options.text, words), (options.label, tags if has_tags else None)):
        if name is not None and name not in names:
            raise missing_column(path, option, name, names)
    words = words or _guessed([name for name in lists if name != tags], WORD_COLUMNS)
    if words is None:
        raise unknown_column(path, "lists of words", options.text, names)
    if not has_tags:
        return ListColumns(words, None), itertools.chain(sample, rows)
    tags = tags or _guessed([name for name in lists if name != words], TAG_COLUMNS)
    if tags is None:
        raise unknown_column(path, "lists of labels", options.label, names)
    return ListColumns(words, tags), itertools.chain(sample, rows)


def _guessed(names: Sequence[str], known: Iterable[str]) -> str | None:
    return next((found for name in known if (found := named_column(names, name)) is not None), None)


def blank_lists(row: TableRow, columns: ListColumns) -> list[str]:
    """The columns that are needed and empty in a row."""
    needed = [name for name in (columns.words, columns.tags) if name is not None]
    return [name for name in needed if is_blank(row.values, name) or read_list(row.values.get(name)) == []]


def list_sentence(path: Path, row: TableRow, columns: ListColumns, options: OptionNames) -> TaggedSentence:
    """A row's sentence.

    Raises:
        InputError: the row's own fault; for what is no list of texts, or no list of names, or numbers of them differ.
    """
    if row.fault is not None:
        raise row.fault
    words = read_list(row.values.get(columns.words))
    if not words or not all(isinstance(word, str) for word in words):
        raise InputError(
            "The words of a sentence must be a list of texts",
            f"{path}, {row.place}: {columns.words}={row.values.get(columns.words)!r:.60}",
            f"Write them as one, or name another column with {options.text}.",
        )
    for word in words:
        refuse_half_pair(path, row.place, word)
    if columns.tags is None:
        return TaggedSentence(tuple(words), (), row.place)
    tags = read_list(row.values.get(columns.tags))
    if tags is None:
        raise InputError(
            "The labels of a sentence must be a list of names",
            f"{path}, {row.place}: {columns.tags}={row.values.get(columns.tags)!r:.60}",
            f"Write them as one, or name another column with {options.label}.",
        )
    if len(tags) != len(words):
        raise InputError(
            "A sentence must have one label a word",
            f"{path}, {row.place}: {len(words)} words and {len(tags)} labels",
            "Mend or remove that row.",
        )
    names = [_name(path, row, columns.tags, number, tag) for number, tag in enumerate(tags)]
    return TaggedSentence(tuple(words), tuple(names), row.place)


def _name(path: Path, row: TableRow, column: str, number: int, tag: Any) -> str:
    match tag:
        case str() if tag.strip():
            refuse_half_pair(path, row.place, tag)
            return tag.strip()
        case int() if not isinstance(tag, bool):
            return str(tag)
        case _:
            raise InputError(
                "Every word must have a label, which is a name",
                f"{path}, {row.place}, word {number + 1}: {tag!r:.60} in {column}",
                "Label it, or remove the row.",
            )
