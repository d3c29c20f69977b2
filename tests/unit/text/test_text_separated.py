"""What the fields of a separated file are separated by."""

import gzip
from pathlib import Path

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.text.records import text_rows
from bertsmith.text.separated import Separation, separation, separator_note
from bertsmith.text.tables import about_rows, table_rows


def _file(folder: Path, content: str, name: str = "a.csv", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(content.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("text,label", ","),
        ("text", ","),
        ("Text;Label", ";"),
        ("text\tlabel", "\t"),
        ('"Text";"Label"', ";"),
        ('"text, long";label', ";"),
        ('text;"more, of it"', ";"),
        ("text;long,label", ","),
        ('"a;b",c', ","),
        ('"a;b"', ","),
        ("text;", ","),
        ("a;b\tc\td", "\t"),
        ("\n\na;b", ";"),
        ('"a\nb";c', ";"),
        ('5" wide,label', ","),
        ("", ","),
    ],
)
def test_a_csv_file_is_separated_by_what_splits_its_header(tmp_path: Path, header: str, expected: str) -> None:
    path = _file(tmp_path, f"{header}\nx;y,z\tw\n")
    assert separation(path) == Separation(expected, is_quoting=True)


@pytest.mark.parametrize(
    ("line", "delimiter"), [("sep=;", ";"), ("sep=,", ","), ("SEP=|", "|"), ('"sep=;"', ";"), ("sep=\t", "\t")]
)
def test_a_first_line_that_names_the_separator_is_heeded_and_passed_over(
    tmp_path: Path, line: str, delimiter: str
) -> None:
    path = _file(tmp_path, f"{line}\r\ntext{delimiter}label\r\none{delimiter}a\r\ntwo{delimiter}b\r\n")
    first, second = table_rows(path)
    assert (first.number, first.place, first.values) == (1, "line 3", {"text": "one", "label": "a"})
    assert second.place == "line 4"
    assert about_rows(path) == 2


def test_faults_behind_a_line_that_names_the_separator_are_told_with_their_lines(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 2, with text more than once"):
        list(table_rows(_file(tmp_path, "sep=;\ntext;text\na;b\n")))
    with pytest.raises(InputError, match=r"line 4: a row that cannot be split"):
        list(table_rows(_file(tmp_path, 'sep=;\ntext;label\na;b\n"open;c\n')))


@pytest.mark.parametrize(("delimiter", "encoding"), [(";", "utf-8-sig"), (";", "cp1252"), ("\t", "utf-16")])
def test_what_excel_writes_is_read_like_any_table(tmp_path: Path, delimiter: str, encoding: str) -> None:
    content = f'Text{delimiter}Label\r\n"caf\xe9{delimiter} ""so"", 1,5"{delimiter}a\r\n'
    path = _file(tmp_path, content, encoding=encoding)
    (row,) = table_rows(path, encoding)
    assert row.values == {"Text": f'caf\xe9{delimiter} "so", 1,5', "Label": "a"}
    assert about_rows(path, encoding) == 1


def test_text_for_a_corpus_and_compressed_files_are_split_alike(tmp_path: Path) -> None:
    path = _file(tmp_path, "id;text\n1;one, two\n")
    assert [row.text for row in text_rows(path, None)] == ["one, two"]
    packed = tmp_path / "b.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert [row.text for row in text_rows(packed, "text")] == ["one, two"]


def test_a_tsv_file_is_separated_by_tabs_whatever_its_header(tmp_path: Path) -> None:
    path = _file(tmp_path, "a;b\nx;y\n", "a.tsv")
    assert separation(path).delimiter == "\t"
    assert [row.values for row in table_rows(path)] == [{"a;b": "x;y"}]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "a,b\n", ""),
        ("a.csv", "a;b\n", ", separated by “;”"),
        ("a.csv", "a\tb\n", ", separated by tabs"),
        ("a.tsv", "a\tb\n", ""),
        ("a.jsonl", "{}\n", ""),
        ("a.txt", "a;b\n", ""),
    ],
)
def test_a_separator_is_said_where_it_is_not_the_usual_one(tmp_path: Path, name: str, content: str, said: str) -> None:
    assert separator_note(_file(tmp_path, content, name)) == said
    assert separator_note(tmp_path) == ""
