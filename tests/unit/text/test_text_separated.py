"""What the fields of a separated file are separated by."""

import gzip
from pathlib import Path

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.text import separated
from bertsmith.text.decoding import NotUtf8
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


_ROWS = "".join(f"text {number}\t{number % 2}\n" for number in range(120))


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("", '"He said ""hi"""\t1\n', ['He said "hi"']),
        ("", '"one\ntwo"\t1\nodd\n', ["one\ntwo", None]),
        ('"Yes"\t1\n', '"Great" movie\t1\n', ['"Great" movie']),
        ('"Yes"\t1\n', '"A\t1\nfoo"\t0\n', ['"A', 'foo"']),
        ('"Yes"\t1\n', '"A\t1\nfoo" b\t0\n', ['"A', 'foo" b']),
        ('"A\t1\n', 'foo"\tb\n', ['foo"']),
    ],
)
def test_all_rows_of_a_tsv_file_tell_whether_its_quotes_hold_fields_together(
    tmp_path: Path, first: str, last: str, expected: list[str | None]
) -> None:
    rows = list(table_rows(_file(tmp_path, f"text\tlabel\n{first}{_ROWS}{last}", "a.tsv")))
    assert [row.values.get("text") for row in rows[-len(expected) :]] == expected
    assert len(rows) == bool(first) + 120 + len(expected)


def test_a_tsv_file_of_one_column_has_texts_over_several_lines(tmp_path: Path) -> None:
    assert [row.values for row in table_rows(_file(tmp_path, 'text\n"a\nb"\n', "a.tsv"))] == [{"text": "a\nb"}]


def test_bytes_that_are_no_text_are_told_as_such_whatever_the_quotes(tmp_path: Path) -> None:
    path = _file(tmp_path, f'text\tlabel\n"Yes" so\t1\n{_ROWS}caf\xe9\t1\n', "a.tsv", "latin-1")
    with pytest.raises(NotUtf8, match="line 123, with the byte 0xE9"):
        list(table_rows(path))


@pytest.mark.parametrize("before", ["", "sep=,\n"])
def test_spaces_behind_the_separator_are_no_part_of_a_field_where_the_header_has_them(
    tmp_path: Path, before: str
) -> None:
    path = _file(tmp_path, f'{before}id, text, label\n1, "hello, you", pos\n')
    assert [row.values for row in table_rows(path)] == [{"id": "1", "text": "hello, you", "label": "pos"}]
    path = _file(tmp_path, f"{before}id, text,label\n1, b,c\n")
    assert [row.values for row in table_rows(path)] == [{"id": "1", " text": " b", "label": "c"}]


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


def test_a_tsv_file_is_looked_through_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = list[Path]()
    chunks = separated.decoded_chunks
    monkeypatch.setattr(separated, "decoded_chunks", lambda path, code: looked.append(path) or chunks(path, code))
    path = _file(tmp_path, 'text\tlabel\n"a b"\t1\n', "a.tsv")
    assert separation(path) == separation(path) == Separation("\t", is_quoting=True)
    assert looked == [path]
    _file(tmp_path, 'text\tlabel\n"a b" c\t10\n', "a.tsv")
    assert separation(path) == Separation("\t", is_quoting=False)
    assert looked == [path, path]
