"""Sentences with a label for each word, out of every kind of file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertsmith.examples.data_look import skipped_notes
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.tag_schemes import (
    Scheme,
    entity_spans,
    labels_of_spans,
    odd_labels,
    scheme_breaks,
    scheme_of_sentences,
)
from bertsmith.examples.tagged_lists import ListColumns, blank_lists, is_table, list_sentence, open_lists
from bertsmith.examples.task_tables import refuse_spreadsheet, whole_rows
from bertsmith.foundation.errors import InputError
from bertsmith.text.tagged import ColumnFile, TaggedSentence


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
        columns, rows = open_lists(path, config, known, options, has_tags=True)
        sentences, skipped = whole_rows(
            path,
            rows,
            lambda row: blank_lists(row, columns),
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
    found, rows = open_lists(path, config, None, options, has_tags=False)

    def sentences() -> Iterator[TaggedSentence | InputError]:
        for row in rows:
            try:
                yield list_sentence(path, row, found, options)
            except InputError as fault:
                yield fault

    return found, sentences()


def open_columns(path: Path, config: TableConfig, options: OptionNames, *, has_tags: bool = True) -> ColumnFile:
    """A file with a word a line, looked at.

    Raises:
        InputError: as `ColumnFile.open`, and for a spreadsheet.
    """
    refuse_spreadsheet(path)
    with options.mend_bytes():
        return ColumnFile.open(
            path,
            encoding=config.encoding,
            word=config.text,
            tag=config.label,
            has_tags=has_tags,
            word_option=options.text,
            tag_option=options.label,
        )


def _column_sentences(columns: ColumnFile, options: OptionNames) -> Iterator[TaggedSentence]:
    with options.mend_bytes():
        yield from columns.sentences()


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
