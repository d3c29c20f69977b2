"""Sentences out of files with a word a line."""

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.text.tagged import ColumnFile, TaggedSentence

PLAIN = "Ann\tB-PER\nsings\tO\n\nIn\tO\nOslo\tB-LOC\n.\tO\n"
UD = (
    "# newdoc id = a\n# text = Vámonos al mar\n"
    "1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tVamos\tir\tVERB\tV\t_\t0\troot\t_\t_\n"
    "2\tnos\tnosotros\tPRON\tP\t_\t1\tobj\t_\t_\n"
    "2.1\tellos\tellos\tPRON\tP\t_\t_\t_\t_\t_\n"
    "3\t#\t#\tSYM\tS\t_\t1\tdep\t_\t_\n\n"
    "# sent_id = 2\n1\tmar\tmar\tNOUN\tN\t_\t0\troot\t_\t_\n"
)


def _file(folder: Path, content: str | bytes, name: str = "a.conll") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _read(path: Path, **options: str | bool) -> list[TaggedSentence]:
    return list(ColumnFile.open(path, **options).sentences())  # pyright: ignore[reportArgumentType]


def _pairs(sentences: list[TaggedSentence]) -> list[list[tuple[str, str]]]:
    return [list(zip(one.words, one.tags, strict=True)) for one in sentences]


EXPECTED = [[("Ann", "B-PER"), ("sings", "O")], [("In", "O"), ("Oslo", "B-LOC"), (".", "O")]]


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace("\t", " "),
        PLAIN.replace("\t", " \t "),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n\n", "\n\t\n \n\n"),
        "\n\n" + PLAIN.rstrip("\n"),
        "-DOCSTART- -X-\n\n" + PLAIN,
        PLAIN.replace("\n\n", "\n-DOCSTART-\tO\n"),
        "#begin document (x); part 0\n" + PLAIN + "#end document\n",
        "\ufeff" + PLAIN,
        "word\ttag\n" + PLAIN,
        "tokens\tner_tags\n" + PLAIN,
    ],
)
def test_blank_lines_and_document_marks_part_sentences(tmp_path: Path, content: str) -> None:
    assert _pairs(_read(_file(tmp_path, content))) == EXPECTED


def test_compressed_files_and_other_encodings_are_read(tmp_path: Path) -> None:
    assert _pairs(_read(_file(tmp_path, gzip.compress(PLAIN.encode()), "a.conll.gz"))) == EXPECTED
    zst = tmp_path / "a.conllu.zst"
    with pa.CompressedOutputStream(str(zst), "zstd") as file:
        file.write(UD.encode())
    assert [one.words for one in _read(zst)] == [("Vamos", "nos", "#"), ("mar",)]
    latin = _file(tmp_path, "Ren\xe9 B-PER\n".encode("latin-1"), "b.bio")
    assert _read(latin, encoding="latin-1")[0].words == ("Ren\xe9",)
    with pytest.raises(InputError, match=r"b\.bio, line 1, with the byte 0xE9"):
        _read(latin)


def test_a_conllu_file_gives_forms_and_upos_without_ranges_and_empty_nodes(tmp_path: Path) -> None:
    path = _file(tmp_path, UD, "a.conllu")
    assert _pairs(_read(path)) == [[("Vamos", "VERB"), ("nos", "PRON"), ("#", "SYM")], [("mar", "NOUN")]]
    assert [one.tags for one in _read(path, tag="DEPREL")] == [("root", "obj", "dep"), ("root",)]
    assert [one.words for one in _read(path, word="3", tag="5")] == [("ir", "nosotros", "#"), ("mar",)]
    assert str(ColumnFile.open(path)) == "words FORM, tags UPOS"


def test_columns_are_named_by_number_or_by_the_header(tmp_path: Path) -> None:
    path = _file(tmp_path, "1 Ann NNP B-PER\n2 sings VBZ O\n")
    assert _pairs(_read(path, word="2")) == [[("Ann", "B-PER"), ("sings", "O")]]
    assert _pairs(_read(path, word="2", tag="3")) == [[("Ann", "NNP"), ("sings", "VBZ")]]
    assert str(ColumnFile.open(path, word="2")) == "words in column 2, tags in column 4"
    named = _file(tmp_path, "nr\tform\tkind\n1\tAnn\tPER\n", "b.tsv")
    assert _pairs(_read(named, word="form", tag="kind")) == [[("Ann", "PER")]]


def test_a_word_of_a_hash_is_told_from_a_comment(tmp_path: Path) -> None:
    tabs = _file(tmp_path, "# id = 1\n#\t1\n# a remark\n#tag\tO\n\n#\tO\nx\tO\n")
    with pytest.raises(InputError, match=r"line 3: only “# a remark”"):
        _read(tabs)
    tabs = _file(tmp_path, "# id = 1\n#\tO\nx\tO\n#tag\tO\n\n#\ttext\twith tabs\nx\tO\n")
    assert [one.words for one in _read(tabs)] == [("#", "x", "#tag"), ("x",)]
    spaces = _file(tmp_path, "# id x domain=train\n# NN _ O\nx _ _ O\n# _ _ O\n\n# only words\ny _ _ O\n")
    assert [one.words for one in _read(spaces)] == [("#", "x", "#"), ("y",)]
    lone = _file(tmp_path, "# O\n")
    assert [one.words for one in _read(lone)] == [("#",)]


def test_every_word_knows_its_line(tmp_path: Path) -> None:
    first, second = _read(_file(tmp_path, UD, "a.conllu"))
    assert (first.place, second.place) == ("line 4", "line 10")
    assert [first.word_place(number) for number in range(3)] == ["line 4", "line 5", "line 7"]
    assert first.text == first.key == "Vamos nos #"


def test_words_may_be_invisible_or_hold_other_spaces(tmp_path: Path) -> None:
    (one,) = _read(_file(tmp_path, "\u200b O\n\xa0 O\nNew\u3000York B-LOC\n"))
    assert one.words == ("\u200b", "\xa0", "New\u3000York")
    (other,) = _read(_file(tmp_path, "New York\tB-LOC\n\tO\n"))
    assert other.words == ("New York", "")


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        ("Ann B-PER\nsings\n", {}, r"a word and its tag on each line.*a\.conll, line 2: only “sings”"),
        ("Ann\nsings\n", {}, r"line 1: only “Ann”"),
        ("Ann\t\n", {}, r"line 1: only “Ann”"),
        ("Ann B-PER\nsings VBZ O\n", {}, r"as many columns as its first, 2.*line 2, with 3: sings \| VBZ \| O"),
        ("Ann\tB-PER\nNew York\n", {}, r"line 2: only “New York”"),
        ("Ann X O\n", {"tag": "4"}, r"--label must be the number of a column, from 1 to 3.*4, for"),
        ("Ann X O\n", {"word": "0"}, r"--text must be the number"),
        ("Ann X O\n", {"word": "3"}, r"--text and --label must name two columns"),
        ("w\ttag\nAnn\tO\n", {"tag": "tags", "word": "w"}, r"or one of w, tag.*Did you mean tag"),
        ("\n \n", {}, r"must hold some"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(
    tmp_path: Path, content: str, options: dict[str, str], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        _read(_file(tmp_path, content), **options)


def test_a_conllu_file_must_have_its_columns_and_tags(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must have 10 columns.*line 1, with 2"):
        _read(_file(tmp_path, PLAIN, "a.conllu"))
    with pytest.raises(InputError, match=r"Every word must have its tag.*line 3: “b” with “_” in XPOS"):
        _read(_file(tmp_path, "\n1\ta\ta\tX\tY\t_\t_\t_\t_\t_\n2\tb\tb\tX\t_\t_\t_\t_\t_\t_\n", "b.conllu"), tag="XPOS")
    with pytest.raises(InputError, match=r"Did you mean UPOS"):
        _read(_file(tmp_path, UD, "c.conllu"), tag="UPO")


def test_words_alone_are_read_where_no_tags_are_asked_for(tmp_path: Path) -> None:
    path = _file(tmp_path, "Ann\nsings\n\nOslo\n")
    assert [(one.words, one.tags) for one in _read(path, has_tags=False)] == [(("Ann", "sings"), ()), (("Oslo",), ())]
    tagged = _file(tmp_path, PLAIN)
    assert [one.words for one in _read(tagged, has_tags=False)] == [("Ann", "sings"), ("In", "Oslo", ".")]


def test_a_long_file_is_read_a_sentence_at_a_time(tmp_path: Path) -> None:
    path = _file(tmp_path, "a\tO\n\n" * 1000 + "broken\n")
    sentences = ColumnFile.open(path).sentences()
    assert next(sentences).words == ("a",)
    with pytest.raises(InputError, match="line 2001"):
        list(sentences)
