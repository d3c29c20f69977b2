"""Sentences with a label for each word, out of every kind of file, and the columns that they stand in."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertsmith.examples.data_look import skipped_notes
from bertsmith.examples.tag_schemes import (
    Scheme,
    entity_spans,
    labels_of_spans,
    odd_labels,
    scheme_breaks,
    scheme_of_sentences,
)
from bertsmith.examples.task_tables import (
    SAMPLE_ROWS,
    OptionNames,
    TableConfig,
    missing_column,
    named_column,
    open_rows,
    unknown_column,
    whole_rows,
)
from bertsmith.examples.written_lists import read_list
from bertsmith.foundation.errors import InputError
from bertsmith.text.decoding import NotUtf8, whole_lines
from bertsmith.text.records import TEXT_COLUMNS
from bertsmith.text.sources import file_kind
from bertsmith.text.tables import TableRow, refuse_half_pair
from bertsmith.text.tagged import ColumnFile, TaggedSentence

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


@dataclass(frozen=True)
class TaggedTable:
    """The sentences of a file."""

    path: Path
    columns: ListColumns | ColumnFile
    sentences: tuple[TaggedSentence, ...]
    scheme: Scheme | None
    """How the labels write entities; None where they are plain labels. IOB1 has become BIO."""
    notes: tuple[str, ...]
    """What was found and done while reading, a line each."""


def read_tagged(
    path: Path,
    config: TableConfig = TableConfig(),
    *,
    like: ListColumns | ColumnFile | None = None,
    options: OptionNames = OptionNames(),
) -> TaggedTable:
    """Read sentences whose every word has a label.

    Args:
        path: a table (.jsonl, .csv, .parquet, a saved data set) with a list of words and a list of labels in each row;
            any other file has a word a line, as `text.tagged` reads it. Labels in IOB1 are turned into BIO, as few
            models could learn its rare ``B-``.
        config: which columns hold them: of a file with a word a line, by number from 1.
        like: columns that are meant where none are named and both files are tables.
        options: what errors call the settings.

    Raises:
        InputError: if it cannot be read, a sentence has more or fewer labels than words, or, where `config` is strict,
            labels break their scheme; told with its line or row.
    """
    skipped: tuple[str, ...] = ()
    if is_table(path, config.encoding):
        known = like if isinstance(like, ListColumns) else None
        columns, rows = _open_lists(path, config, known, options, has_tags=True)
        sentences, skipped = whole_rows(
            path,
            rows,
            lambda row: _blanks(row, columns),
            lambda row: list_sentence(path, row, columns, options),
            config,
            options,
        )
    else:
        columns = open_columns(path, config, options)
        sentences = tuple(_column_sentences(columns, options))
        if not sentences:
            raise InputError("A file of tagged words must hold some", f"{path} without any", "Check the file.")
    scheme = scheme_of_sentences(sentence.tags for sentence in sentences)
    notes = skipped_notes(skipped)
    if scheme is not None:
        notes += _scheme_notes(path, sentences, scheme, config, options)
    if scheme == "IOB1":
        notes.append("labels are in IOB1, where B- only parts neighbours; they are turned into BIO")
        sentences, scheme = tuple(map(_in_bio, sentences)), "BIO"
    return TaggedTable(path, columns, sentences, scheme, tuple(notes))


def read_words(
    path: Path, config: TableConfig = TableConfig(), *, options: OptionNames = OptionNames()
) -> tuple[ListColumns | ColumnFile, Iterator[TaggedSentence | InputError]]:
    """Open a file of sentences whose words are to be labelled: its columns, and its sentences one at a time.

    Args:
        path: as for `read_tagged`; labels are not looked at.
        config: which column holds the words.
        options: what errors call the settings.

    Returns:
        for a row of a table that cannot be used, its fault in its place.

    Raises:
        InputError: if it cannot be read, or its column of words not be found.
    """
    if not is_table(path, config.encoding):
        columns = open_columns(path, config, options, has_tags=False)
        return columns, _column_sentences(columns, options)
    found, rows = _open_lists(path, config, None, options, has_tags=False)

    def sentences() -> Iterator[TaggedSentence | InputError]:
        for row in rows:
            try:
                yield list_sentence(path, row, found, options)
            except InputError as fault:
                yield fault

    return found, sentences()


def is_table(path: Path, encoding: str = "utf-8") -> bool:
    """Whether a file holds a sentence a row, and not a word a line.

    A .tsv file does where its first line names a column of texts, or its second one has a list written out.
    """
    if path.is_dir():
        return True
    layout = file_kind(path).layout
    if layout != "tsv":
        return layout in ("jsonl", "csv", "parquet")
    try:
        lines = [line.split("\t") for _, line in itertools.islice(whole_lines(path, encoding), 2)]
    except NotUtf8:
        return False  # Told where it is read.
    names_texts = any(_guessed(cells, TEXT_COLUMNS) is not None for cells in lines[:1])
    return names_texts or any(_is_list_of_texts(cell) for cells in lines[1:] for cell in cells)


def _is_list_of_texts(cell: str) -> bool:
    """Whether a cell, perhaps still in the quotes of its file, is a list that a word such as [1] would not be."""
    found = read_list(cell.strip('"').replace('""', '"'))
    return bool(found) and all(isinstance(value, str) for value in found)


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


def open_columns(path: Path, config: TableConfig, options: OptionNames, *, has_tags: bool = True) -> ColumnFile:
    """A file with a word a line, looked at.

    Raises:
        InputError: as `ColumnFile.open`.
    """
    try:
        return ColumnFile.open(
            path,
            encoding=config.encoding,
            word=config.text,
            tag=config.label,
            has_tags=has_tags,
            word_option=options.text,
            tag_option=options.label,
        )
    except NotUtf8 as error:
        raise _other_encoding(error, options) from None


def _column_sentences(columns: ColumnFile, options: OptionNames) -> Iterator[TaggedSentence]:
    try:
        yield from columns.sentences()
    except NotUtf8 as error:
        raise _other_encoding(error, options) from None


def _other_encoding(error: NotUtf8, options: OptionNames) -> InputError:
    return InputError(
        error.rule, error.received, f"Name the file's encoding with {options.encoding}, for example latin-1."
    )


def _open_lists(
    path: Path, config: TableConfig, like: ListColumns | None, options: OptionNames, *, has_tags: bool
) -> tuple[ListColumns, Iterator[TableRow]]:
    rows = open_rows(path, config, options)
    sample = list(itertools.islice(rows, SAMPLE_ROWS))
    names = list(dict.fromkeys(name for row in sample for name in row.values))
    if not names:
        fault = next((row.fault for row in sample if row.fault is not None), None)
        raise fault or InputError("A table must hold rows", f"{path} without any", "Check the file.")
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


def _blanks(row: TableRow, columns: ListColumns) -> list[str]:
    needed = [name for name in (columns.words, columns.tags) if name is not None]
    return [name for name in needed if row.values.get(name) in (None, "", [])]


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


def _scheme_notes(
    path: Path, sentences: Sequence[TaggedSentence], scheme: Scheme, config: TableConfig, options: OptionNames
) -> list[str]:
    odd = odd_labels({tag for one in sentences for tag in one.tags})
    notes: list[str] = []
    for what, broken in (
        ("are none of an entity and count as O", _words_with(sentences, odd)),
        (f"break {scheme} and are read leniently", _breaking(sentences, scheme)),
    ):
        if not broken:
            continue
        first, number = broken[0]
        place = f"{first.word_place(number)}: {first.tags[number]} of “{first.words[number]:.30}”"
        if config.strict:
            raise InputError(
                f"Labels must be written as {scheme} has them",
                f"{len(broken):,} that {what.split(' and ')[0]}, the first in {path}, {place}",
                f"Mend them, or leave {options.strict} out.",
            )
        notes.append(f"labels that {what}: {len(broken):,}, the first in {place}")
    return notes


def _words_with(sentences: Sequence[TaggedSentence], labels: Sequence[str]) -> list[tuple[TaggedSentence, int]]:
    return [(one, number) for one in sentences for number, tag in enumerate(one.tags) if tag in labels]


def _breaking(sentences: Sequence[TaggedSentence], scheme: Scheme) -> list[tuple[TaggedSentence, int]]:
    return [(one, number) for one in sentences for number in scheme_breaks(one.tags, scheme)]


def _in_bio(sentence: TaggedSentence) -> TaggedSentence:
    tags = labels_of_spans(entity_spans(sentence.tags), len(sentence.tags), "BIO")
    return replace(sentence, tags=tuple(tags))
