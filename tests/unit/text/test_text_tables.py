"""Whole rows out of every kind of table."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.text.tables import TableRow, about_rows, table_rows


def _file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _rows(path: Path, encoding: str = "utf-8") -> list[TableRow]:
    return list(table_rows(path, encoding))


def test_every_layout_gives_the_same_rows(tmp_path: Path) -> None:
    expected = [{"text": "one, two", "label": "a"}, {"text": "three", "label": "b"}]
    paths = [
        _file(tmp_path, "a.csv", 'text,label\n"one, two",a\nthree,b\n'),
        _file(tmp_path, "a.tsv", "text\tlabel\none, two\ta\nthree\tb\n"),
        _file(tmp_path, "a.jsonl", "\n".join(map(json.dumps, expected))),
        tmp_path / "a.parquet",
        _file(tmp_path, "a.csv.gz", gzip.compress(b'text,label\n"one, two",a\nthree,b\n')),
    ]
    pq.write_table(pa.Table.from_pylist(expected), tmp_path / "a.parquet")
    for path in paths:
        rows = _rows(path)
        assert [row.values for row in rows] == expected, path
        assert [row.number for row in rows] == [1, 2]
        assert all(row.fault is None for row in rows)


def test_a_plain_file_has_a_text_a_line_and_keeps_blank_ones(tmp_path: Path) -> None:
    rows = _rows(_file(tmp_path, "a.txt", "one\n\nthree\n"))
    assert [(row.number, row.place, row.values) for row in rows] == [
        (1, "line 1", {"text": "one"}),
        (2, "line 2", {"text": ""}),
        (3, "line 3", {"text": "three"}),
    ]


def test_places_are_those_of_the_file(tmp_path: Path) -> None:
    csv = _rows(_file(tmp_path, "a.csv", 'text\n"a\nb"\nc\n'))
    assert [(row.place, row.values["text"]) for row in csv] == [("line 2", "a\nb"), ("line 4", "c")]
    jsonl = _rows(_file(tmp_path, "a.jsonl", '{"text": "a"}\n\n{"text": "b"}\n'))
    assert [row.place for row in jsonl] == ["line 1", "line 3"]


def test_values_of_json_keep_their_type(tmp_path: Path) -> None:
    (row,) = _rows(_file(tmp_path, "a.jsonl", '{"a": 1, "b": 1.5, "c": null, "d": [1], "e": true}'))
    assert row.values == {"a": 1, "b": 1.5, "c": None, "d": [1], "e": True}


def test_a_ragged_row_has_a_fault_and_the_next_goes_on(tmp_path: Path) -> None:
    first, bad, last = _rows(_file(tmp_path, "a.csv", "text,label\na,1\nb,2,3\nc,4\n"))
    assert bad.fault is not None
    assert "line 3: 3 fields where the header has 2" in str(bad.fault)
    assert bad.values == {}
    assert (first.values["text"], last.values["text"]) == ("a", "c")


def test_text_of_every_layout_has_plain_line_ends(tmp_path: Path) -> None:
    rows = [{"text": "a\r\nb\rc", "label": "x"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    paths = [
        _file(tmp_path, "a.jsonl", json.dumps(rows[0])),
        _file(tmp_path, "a.csv", 'text,label\n"a\r\nb\rc",x\n'),
        tmp_path / "a.parquet",
    ]
    for path in paths:
        assert [row.values["text"] for row in _rows(path)] == ["a\nb\nc"], path


def test_a_bad_byte_in_a_parquet_file_is_a_fault_of_its_row(tmp_path: Path) -> None:
    values = pa.array([b"good", b"b\xe9d", b"last"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": values, "label": ["x", "y", "z"]}), tmp_path / "a.parquet")
    first, bad, last = _rows(tmp_path / "a.parquet")
    assert (first.values["text"], last.values) == ("good", {"text": "last", "label": "z"})
    assert "a.parquet, row 2: the byte 0xE9" in str(bad.fault)
    assert bad.values == {}
    # Where another column is all that is wanted, the byte is not even seen.
    assert [row.values for row in table_rows(tmp_path / "a.parquet", column="label")] == [
        {"label": "x"},
        {"label": "y"},
        {"label": "z"},
    ]


def test_columns_without_a_name_may_be_several(tmp_path: Path) -> None:
    (row,) = _rows(_file(tmp_path, "a.csv", ",text,,\n1,one,,\n"))
    assert row.values["text"] == "one"


@pytest.mark.parametrize("line", ["{", "[1]", '"text"'])
def test_a_json_line_that_is_no_object_has_a_fault(tmp_path: Path, line: str) -> None:
    _, bad, last = _rows(_file(tmp_path, "a.jsonl", f'{{"text": "a"}}\n{line}\n{{"text": "c"}}\n'))
    assert bad.fault is not None
    assert "a.jsonl, line 2" in str(bad.fault)
    assert last.values == {"text": "c"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("\ufefftext,label\n\ufeffa,b\n".encode(encoding))
    assert [row.values for row in table_rows(path, encoding)] == [{"text": "\ufeffa", "label": "b"}]


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 1, with text more than once"):
        _rows(_file(tmp_path, "a.csv", "text,text\na,b\n"))


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must be whole.*a\.parquet"):
        _rows(_file(tmp_path, "a.parquet", b"PAR1 and nothing else"))


def test_another_encoding_is_read_where_it_is_named_and_told_where_not(tmp_path: Path) -> None:
    content = "text\ncaf\xe9\nna\xefve\n"
    path = _file(tmp_path, "a.csv", content.encode("latin-1"))
    assert [row.values["text"] for row in _rows(path, "latin-1")] == ["caf\xe9", "na\xefve"]
    with pytest.raises(InputError, match=r"line 2, with the byte 0xE9.*Re-encode"):
        _rows(path)
    wide = _file(tmp_path, "b.tsv", content.encode("utf-16"))
    assert [row.values["text"] for row in _rows(wide, "UTF-16")] == ["caf\xe9", "na\xefve"]


def test_line_ends_are_one_kind_in_every_encoding(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.txt", "one\r\ntwo\rthr\xe9e".encode("cp1252"))
    assert [row.values["text"] for row in _rows(path, "cp1252")] == ["one", "two", "thr\xe9e"]


@pytest.mark.parametrize(("name", "told"), [("latin1x", "Did you mean latin"), ("base64", "base64")])
def test_an_unknown_encoding_is_refused(tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(InputError, match=r"An encoding must be.*" + told):
        _rows(_file(tmp_path, "a.txt", "one"), name)


def test_bytes_that_are_not_of_the_encoding_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"from line 3 on no ascii"):
        _rows(_file(tmp_path, "a.txt", "one\ntwo\n" + "x" * 300_000 + "\xe9"), "ascii")


def test_about_how_many_rows_there_are_is_told_without_reading_them(tmp_path: Path) -> None:
    rows = [{"text": str(number)} for number in range(500)]
    lines = "".join(f"{row['text']}\n" for row in rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=64)
    assert about_rows(tmp_path / "a.parquet") == 500
    assert about_rows(_file(tmp_path, "a.txt", lines)) == 500
    assert about_rows(_file(tmp_path, "a.csv", f"text\n{lines}")) == 500
    assert about_rows(_file(tmp_path, "a.txt.gz", gzip.compress(lines.encode()))) is None
    assert about_rows(_file(tmp_path, "a.json", "{}")) is None
