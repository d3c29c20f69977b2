"""Sentences with labels out of every kind of file."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bertsmith.examples.table_config import TableConfig
from bertsmith.examples.tagged_lists import is_table
from bertsmith.examples.tagged_rows import TaggedTable, read_tagged, read_words
from bertsmith.foundation.errors import InputError
from bertsmith.text.tagged import TaggedSentence

WORDS = [["Ann", "sings"], ["In", "Oslo", "."]]
TAGS = [["B-PER", "O"], ["O", "B-LOC", "O"]]


def _rows(words: str = "tokens", tags: str = "ner_tags") -> list[dict[str, Any]]:
    return [{"id": number, words: WORDS[number], tags: TAGS[number]} for number in range(2)]


def _jsonl(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def _text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def _found(table: TaggedTable) -> tuple[list[list[str]], list[list[str]]]:
    return [list(one.words) for one in table.sentences], [list(one.tags) for one in table.sentences]


def test_every_kind_of_file_gives_the_same_sentences(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(_rows()), tmp_path / "a.parquet")
    csv = "words,tags\n" + "".join(f'"{words}","{tags}"\n' for words, tags in zip(WORDS, TAGS, strict=True))
    paths = {
        tmp_path / "a.parquet": "words “tokens”, tags “ner_tags”",
        _jsonl(tmp_path / "a.jsonl", _rows("words", "labels")): "words “words”, tags “labels”",
        _text(tmp_path / "a.csv", csv): "words “words”, tags “tags”",
        _text(
            tmp_path / "a.tsv", csv.replace('","', '"\t"').replace("words,", "words\t")
        ): "words “words”, tags “tags”",
        _text(tmp_path / "a.conll", "Ann B-PER\nsings O\n\nIn O\nOslo B-LOC\n. O\n"): (
            "words in column 1, tags in column 2"
        ),
        _text(tmp_path / "b.tsv", "Ann\tB-PER\nsings\tO\n\nIn\tO\nOslo\tB-LOC\n.\tO\n"): (
            "words in column 1, tags in column 2"
        ),
    }
    for path, columns in paths.items():
        table = read_tagged(path)
        assert _found(table) == (WORDS, TAGS), path
        assert str(table.columns) == columns
        assert (table.scheme, table.notes) == ("BIO", ())


def test_columns_are_named_taken_from_earlier_rows_or_guessed(tmp_path: Path) -> None:
    rows = [row | {"pos_tags": ["X"] * len(row["tokens"])} for row in _rows()]
    path = _jsonl(tmp_path / "a.jsonl", rows)
    assert read_tagged(path).sentences[0].tags == ("B-PER", "O")
    named = read_tagged(path, TableConfig(label="pos_tags"))
    assert named.sentences[0].tags == ("X", "X")
    assert named.scheme is None
    assert read_tagged(path, like=named.columns).sentences[0].tags == ("X", "X")
    with pytest.raises(InputError, match=r"--label must be one of the file's columns.*Did you mean pos_tags"):
        read_tagged(path, TableConfig(label="pos_tag"))
    with pytest.raises(InputError, match=r"holds the lists of labels must be known.*--label"):
        read_tagged(_jsonl(tmp_path / "b.jsonl", [{"tokens": ["a"], "kinds": ["X"]}]))
    with pytest.raises(InputError, match=r"holds the lists of words must be known.*--text"):
        read_tagged(_jsonl(tmp_path / "c.jsonl", [{"text": "a b", "tags": ["X", "Y"]}]))


def test_numbers_of_classes_become_their_names_where_the_file_knows_them(tmp_path: Path) -> None:
    rows = [{"tokens": ["Ann", "sings"], "ner_tags": [2, 0]}]
    feature = {"feature": {"names": ["O", "I-PER", "B-PER"], "_type": "ClassLabel"}, "_type": "Sequence"}
    info = {"info": {"features": {"tokens": {"feature": {"dtype": "string", "_type": "Value"}}, "ner_tags": feature}}}
    table = pa.Table.from_pylist(rows).replace_schema_metadata({"huggingface": json.dumps(info)})
    pq.write_table(table, tmp_path / "a.parquet")
    assert read_tagged(tmp_path / "a.parquet").sentences[0].tags == ("B-PER", "O")
    assert read_tagged(_jsonl(tmp_path / "a.jsonl", rows)).sentences[0].tags == ("2", "0")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"words": ["a", "b"], "tags": ["O"]}, r"one label a word.*line 2: 2 words and 1 labels"),
        ({"words": ["a", "b"], "tags": ["O", None]}, r"line 2, word 2: None in tags"),
        ({"words": ["a", "b"], "tags": ["O", " "]}, r"line 2, word 2: ' ' in tags"),
        ({"words": ["a", "b"], "tags": "O"}, r"must be a list of names.*line 2: tags='O'"),
        ({"words": "a b", "tags": ["O", "O"]}, r"must be a list of texts.*line 2: words='a b'"),
        ({"words": ["a", 3], "tags": ["O", "O"]}, r"must be a list of texts.*line 2"),
        ({"words": ["a", "\ud83d"], "tags": ["O", "O"]}, r"line 2: half of a surrogate"),
        ({"words": [], "tags": []}, r"Every row must have.*line 2 \(words, tags\)"),
        ({"words": ["a"], "tags": None}, r"Every row must have.*line 2 \(tags\)"),
        ([], r"line 2: a list"),
    ],
)
def test_a_row_that_does_not_fit_is_told_by_its_place(tmp_path: Path, row: Any, told: str) -> None:
    path = _jsonl(tmp_path / "a.jsonl", [{"words": ["x"], "tags": ["O"]}, row])
    with pytest.raises(InputError, match=told):
        read_tagged(path)


def test_blank_rows_are_left_out_and_said_where_that_is_asked_for(tmp_path: Path) -> None:
    path = _jsonl(tmp_path / "a.jsonl", [{"words": ["x"], "tags": ["A"]}, {"words": [], "tags": []}])
    table = read_tagged(path, TableConfig(blank_rows="skip"))
    assert len(table.sentences) == 1
    assert table.notes == ("1 row left out, blank: line 2 (words, tags)",)


def test_an_empty_list_of_a_separated_file_is_blank(tmp_path: Path) -> None:
    path = _text(tmp_path / "a.csv", "words,tags\n\"['x']\",\"['A']\"\n[],[]\n")
    assert read_tagged(path, TableConfig(blank_rows="skip")).notes == ("1 row left out, blank: line 3 (words, tags)",)


def test_lists_are_read_as_numpy_writes_them(tmp_path: Path) -> None:
    path = _text(tmp_path / "a.csv", "tokens,ner_tags\n\"['EU'\n 'rejects']\",['B-ORG' 'O']\n")
    assert _found(read_tagged(path)) == ([["EU", "rejects"]], [["B-ORG", "O"]])


def test_a_file_without_words_is_refused(tmp_path: Path) -> None:
    for content in ("\n\n", "# only = comments\n", "word\ttag\n"):
        with pytest.raises(InputError, match="must hold some"):
            read_tagged(_text(tmp_path / "a.conll", content))


def test_another_encoding_is_asked_for_by_its_option(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_bytes(b"x O\n" * 2_000 + "Ren\xe9 B-PER\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"line 2001, .*--encoding, for example latin-1"):
        read_tagged(path)
    assert read_tagged(path, TableConfig(encoding="latin-1")).sentences[0].words[-1] == "Ren\xe9"


def test_broken_labels_are_counted_and_refused_only_where_strict(tmp_path: Path) -> None:
    path = _text(tmp_path / "a.conll", "Ann B-PER\nLee I-PER\n\nIn O\nOslo I-LOC\nX OO\n. I-LOC\nY B-LOC\n")
    table = read_tagged(path)
    assert table.notes == (
        "labels that are none of an entity and count as O: 1, the first in line 6: OO of “X”",
        "labels that break BIO and are read leniently: 2, the first in line 5: I-LOC of “Oslo”",
    )
    with pytest.raises(
        InputError,
        match=r"Labels must be written as BIO has.*1 that are none of an entity, .*a\.conll, line 6: OO.*--strict",
    ):
        read_tagged(path, TableConfig(strict=True))
    sound = _text(tmp_path / "b.conll", "Ann B-PER\nLee I-PER\n")
    assert read_tagged(sound, TableConfig(strict=True)).notes == ()


def test_iob1_becomes_bio_and_is_said(tmp_path: Path) -> None:
    path = _text(tmp_path / "a.conll", "Ann I-PER\nLee I-PER\nBo B-PER\nsaw O\nOslo I-LOC\n")
    table = read_tagged(path)
    assert table.sentences[0].tags == ("B-PER", "I-PER", "B-PER", "O", "B-LOC")
    assert table.scheme == "BIO"
    assert table.notes == ("labels are in IOB1, where B- only parts neighbours; they are turned into BIO",)


def test_words_are_read_without_labels_for_prediction(tmp_path: Path) -> None:
    path = _jsonl(tmp_path / "a.jsonl", [*_rows(), {"tokens": [], "ner_tags": []}, {"tokens": ["x"]}])
    columns, sentences = read_words(path)
    found = list(sentences)
    assert str(columns) == "words “tokens”"
    assert [list(one.words) for one in found if isinstance(one, TaggedSentence)] == [*WORDS, ["x"]]
    assert isinstance(found[2], InputError)
    lines, plain = read_words(_text(tmp_path / "a.conll", "Ann\nsings\n"))
    assert str(lines) == "words in column 1"
    assert [one.words for one in plain if isinstance(one, TaggedSentence)] == [("Ann", "sings")]


def test_a_tsv_file_is_a_table_where_it_says_so(tmp_path: Path) -> None:
    assert is_table(_text(tmp_path / "a.tsv", "text\tlabel\nAnn sings\tx\n"))
    assert is_table(_text(tmp_path / "b.tsv", 'words\ttags\n["a"]\t["O"]\n'))
    assert not is_table(_text(tmp_path / "c.tsv", "word\ttag\nAnn\tO\n"))
    assert is_table(_text(tmp_path / "f.tsv", 'words\ttags\n"[""a""]"\t"[""O""]"\n'))
    assert not is_table(_text(tmp_path / "d.tsv", "Ann\tO\n[1]\tO\n[x]\tO\n"))
    assert not is_table(_text(tmp_path / "e.conllu", ""))


@pytest.mark.parametrize("blank", ["\n", " \t\n"])
def test_a_word_that_may_name_a_column_of_texts_begins_no_table_where_blank_lines_part_sentences(
    tmp_path: Path, blank: str
) -> None:
    path = _text(tmp_path / "a.tsv", f"Article\tO\n5\tO\n{blank}Ann\tB-PER\n")
    assert [one.words for one in read_tagged(path).sentences] == [("Article", "5"), ("Ann",)]
    assert is_table(_text(tmp_path / "b.tsv", f"Article\tlabel\nAnn sings\tx\n{blank}"))


def test_utf_16_is_told_with_its_encoding_and_a_spreadsheet_with_what_to_save_it_as(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_bytes("Ann B-PER\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"Read it with --encoding utf-16\."):
        read_tagged(path)
    with pytest.raises(InputError, match=r"a\.xlsx, a spreadsheet.*as CSV"):
        read_tagged(_text(tmp_path / "a.xlsx", "PK"))
