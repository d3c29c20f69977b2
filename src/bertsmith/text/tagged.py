"""Sentences of words with a tag each, out of files with a word a line: .conll, .conllu, and columns of any other name.

A blank line ends a sentence, and so does a line that marks a document (``-DOCSTART-``, ``#begin document``), which is
passed over. Columns are parted by tabs where the first word's line has one, and else by spaces.

In a .conllu file every line with ``#`` first is a comment, and the lines of several words at once (``1-2``) and of
words that are not written (``1.1``) are passed over. In other files ``#`` may be a word: a line that begins with it and
a space or tab is a comment only before the first word of a sentence, and there only if its columns are not as many as
those of the file, or are parted by spaces and hold a ``=``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertsmith.foundation.errors import InputError, near_match
from bertsmith.text.decoding import whole_lines
from bertsmith.text.sources import content_suffix

CONLLU_COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
_HEADER_WORDS = frozenset({"word", "words", "token", "tokens", "form"})
_HEADER_TAGS = frozenset(
    {
        *("tag", "tags", "label", "labels", "entity", "entities"),
        *("ner", "ner_tag", "ner_tags", "pos", "upos", "xpos", "pos_tag", "pos_tags"),
    }
)
_DOCUMENT = re.compile(r"-DOCSTART-(?:\s|$)|#(?:begin|end) document\b")
_SPACES = re.compile(r"[ \t]+")
_NO_WORD_OF_ITS_OWN = re.compile(r"\d+[-.]\d+")


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """The words of a sentence, and their tags."""

    words: tuple[str, ...]
    """As they were written; one may be empty or invisible."""
    tags: tuple[str, ...]
    """One a word; none where they were not asked for."""
    place: str
    """Where it begins: `line 3`, or `row 3` of a table."""
    lines: Sequence[int] | None = None
    """The line of each word, where each has one."""

    @property
    def text(self) -> str:
        """The words with a space between them."""
        return " ".join(self.words)

    @property
    def key(self) -> str:
        """The text: sentences with the same text show a model the same."""
        return self.text

    @property
    def target(self) -> tuple[str, ...]:
        """The tags: sentences with the same text should have the same."""
        return self.tags

    def word_place(self, number: int) -> str:
        """Where a word stands, counted from 0."""
        return f"{self.place}, word {number + 1}" if self.lines is None else f"line {self.lines[number]}"


@dataclass(frozen=True)
class ColumnFile:
    """A file with a word a line, and which of its columns hold what."""

    path: Path
    encoding: str
    is_conllu: bool
    has_tabs: bool
    num_columns: int
    header: int | None
    """The line that names the columns, where one does."""
    word: int
    """Column of the words, from 0."""
    tag: int | None
    """Column of the tags; None where they are not asked for."""
    tag_option: str

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        encoding: str = "utf-8",
        word: str | None = None,
        tag: str | None = None,
        has_tags: bool = True,
        word_option: str = "--text",
        tag_option: str = "--label",
    ) -> "ColumnFile":
        """Look at the beginning of a file.

        Args:
            path: the file.
            encoding: its encoding.
            word: column of the words: a number from 1, or a name, of a .conllu file's columns or in the first line.
                Where not given, FORM of a .conllu file, and else the first.
            tag: column of the tags, alike; UPOS of a .conllu file, and else the last.
            has_tags: whether tags are asked for.
            word_option: what errors call `word`.
            tag_option: what errors call `tag`.

        Raises:
            InputError: if it cannot be read, holds no words, or lacks a column.
        """
        is_conllu = content_suffix(path) == ".conllu"
        number, line = _first_content(path, encoding)
        has_tabs = is_conllu or "\t" in line
        fields = _split(line, has_tabs)
        if is_conllu and len(fields) != len(CONLLU_COLUMNS):
            raise InputError(
                f"A .conllu file must have {len(CONLLU_COLUMNS)} columns, parted by tabs",
                f"{path}, line {number}, with {len(fields)}",
                "Mend the line, or name the file .conll if it has other columns.",
            )
        is_header = not is_conllu and _is_header(fields, (word, tag))
        names = CONLLU_COLUMNS if is_conllu else tuple(fields) if is_header else ()
        columns = _Columns(path, len(fields), names)
        first, last = ("FORM", "UPOS") if is_conllu else ("1", str(len(fields)))
        word_column = columns.place(word_option, first if word is None else word)
        tag_column = columns.place(tag_option, last if tag is None else tag) if has_tags else None
        if tag_column == word_column and len(fields) > 1:
            raise InputError(
                f"{word_option} and {tag_option} must name two columns",
                f"column {word_column + 1} of {path} for both",
                f"Name another column with {tag_option if tag is not None else word_option}.",
            )
        header = number if is_header else None
        return cls(path, encoding, is_conllu, has_tabs, len(fields), header, word_column, tag_column, tag_option)

    def __str__(self) -> str:
        tags = "" if self.tag is None else f", tags {self._name(self.tag)}"
        header = "" if self.header is None else f", line {self.header} being the header"
        return f"words {self._name(self.word)}{tags}{header}"

    def sentences(self) -> Iterator[TaggedSentence]:
        """The sentences, one held at a time.

        Raises:
            InputError: for what cannot be decoded, and for a line without its word or tag or with other columns than
                the first; told with its line.
        """
        words: list[str] = []
        tags: list[str] = []
        lines: list[int] = []
        for number, line in whole_lines(self.path, self.encoding):
            if not line.strip() or _DOCUMENT.match(line):
                if words:
                    yield _sentence(words, tags, lines)
                    words, tags, lines = [], [], []
                continue
            if number == self.header or self._is_comment(line, begun=bool(words)):
                continue
            fields = _split(line, self.has_tabs)
            if self.is_conllu and _NO_WORD_OF_ITS_OWN.fullmatch(fields[0]):
                continue
            if len(fields) != self.num_columns or (self.tag is not None and len(fields) < 2):
                raise self._ragged(number, fields)
            if self.tag is not None:
                tags.append(self._tag(number, fields))
            words.append(fields[self.word])
            lines.append(number)
        if words:
            yield _sentence(words, tags, lines)

    def _is_comment(self, line: str, *, begun: bool) -> bool:
        if not line.startswith("#") or self.is_conllu:
            return line.startswith("#")
        if begun or not line.startswith(("# ", "#\t")):
            return False
        return len(_split(line, self.has_tabs)) != self.num_columns or (not self.has_tabs and "=" in line)

    def _tag(self, number: int, fields: list[str]) -> str:
        tag = fields[self.tag or 0]
        if tag and not (self.is_conllu and tag == "_"):
            return tag
        raise InputError(
            "Every word must have its tag",
            f"{self.path}, line {number}: “{fields[self.word]}” with “{tag}” in {self._name(self.tag or 0)}",
            f"Tag it, or name another column with {self.tag_option}.",
        )

    def _ragged(self, number: int, fields: list[str]) -> InputError:
        place = f"{self.path}, line {number}"
        if len(fields) == 1:
            return InputError(
                f"{self.path.name} must hold a word and its tag on each line",
                f"{place}: only “{fields[0]:.60}”",
                "Put the tag behind it, with a tab or a space between them, and a blank line between sentences.",
            )
        return InputError(
            f"Each line of {self.path.name} must have as many columns as its first, {self.num_columns}",
            f"{place}, with {len(fields)}: {' | '.join(fields):.60}",
            f"Mend the line. Its columns are parted by {'tabs' if self.has_tabs else 'spaces'}.",
        )

    def _name(self, column: int) -> str:
        return CONLLU_COLUMNS[column] if self.is_conllu else f"in column {column + 1}"


@dataclass(frozen=True)
class _Columns:
    """The columns of a file, which may have names."""

    path: Path
    count: int
    names: tuple[str, ...]

    def place(self, option: str, wanted: str) -> int:
        if wanted.isdecimal() and 1 <= int(wanted) <= self.count:
            return int(wanted) - 1
        if wanted in self.names:
            return self.names.index(wanted)
        near = near_match(wanted, self.names)
        known = f", or one of {', '.join(self.names)}" if self.names else ""
        raise InputError(
            f"{option} must be the number of a column, from 1 to {self.count}{known}",
            f"{wanted}, for {self.path}",
            f"Did you mean {near}?" if near else "Name a column that the file has.",
        )


def _is_header(fields: Sequence[str], named: Sequence[str | None]) -> bool:
    """Whether a file's first fields are the names of its columns: usual ones, or one that is asked for by its name."""
    is_usual = fields[0].lower() in _HEADER_WORDS and fields[-1].lower() in _HEADER_TAGS
    return len(fields) > 1 and (is_usual or any(name in fields for name in named))


def _first_content(path: Path, encoding: str) -> tuple[int, str]:
    """Number and text of the first line that may hold a word: one that begins with # only where no other does."""
    hash_line: tuple[int, str] | None = None
    for number, line in whole_lines(path, encoding):
        if not line.strip() or _DOCUMENT.match(line):
            continue
        if not line.startswith("#"):
            return number, line
        hash_line = hash_line or (number, line)
    if hash_line is None or content_suffix(path) == ".conllu":
        raise InputError("A file of tagged words must hold some", f"{path} without any", "Check the file.")
    return hash_line


def _split(line: str, has_tabs: bool) -> list[str]:
    if has_tabs:
        return [field.strip(" ") for field in line.rstrip(" \t").split("\t")]
    return _SPACES.split(line.strip(" \t"))  # By these alone: a word may be some other space.


def _sentence(words: list[str], tags: list[str], lines: list[int]) -> TaggedSentence:
    is_dense = lines[-1] - lines[0] + 1 == len(lines)
    places = range(lines[0], lines[-1] + 1) if is_dense else tuple(lines)
    return TaggedSentence(tuple(words), tuple(tags), f"line {lines[0]}", places)
