import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.foundation.random_streams import random_stream
from bertsmith.text import decoding
from bertsmith.text.documents import TextConfig, read_documents


def _texts(path: Path, column: str | None = None) -> list[str]:
    return [document.text for document in read_documents([path], TextConfig(text_column=column))]


def _file(folder: Path, content: str | bytes, name: str) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _parquet(folder: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), folder / "a.parquet", row_group_size=2)
    return folder / "a.parquet"


@pytest.mark.parametrize("name", ["text", "content", "body", "article", "document", "sentence", "review"])
def test_the_column_of_the_text_is_found(tmp_path: Path, name: str) -> None:
    rows = [{"id": 1, name: "one"}, {"id": 2, name: "two"}]
    assert _texts(_file(tmp_path, "\n".join(map(json.dumps, rows)), "a.jsonl")) == ["one", "two"]
    assert _texts(_file(tmp_path, f"id,{name}\n1,one\n2.5,two\n", "a.csv")) == ["one", "two"]
    assert _texts(_file(tmp_path, f"{name}\tid\none\t1\ntwo\t2\n", "a.tsv")) == ["one", "two"]
    assert _texts(_parquet(tmp_path, **{"id": [1, 2], name: ["one", "two"]})) == ["one", "two"]


def test_a_named_column_is_taken_over_a_guess(tmp_path: Path) -> None:
    assert _texts(_file(tmp_path, '{"text": "a", "title": "b"}', "a.jsonl"), "title") == ["b"]
    assert _texts(_file(tmp_path, "text,title\na,b", "a.csv"), "title") == ["b"]
    assert _texts(_parquet(tmp_path, text=["a"], title=["b"]), "title") == ["b"]


def test_an_unknown_or_unguessable_column_lists_the_columns(tmp_path: Path) -> None:
    paths = [
        _file(tmp_path, '{"title": "a", "summary": "b"}', "a.jsonl"),
        _file(tmp_path, "title,summary\na,b", "a.csv"),
        _parquet(tmp_path, title=["a"], summary=["b"]),
    ]
    for path in paths:
        with pytest.raises(InputError, match=r"columns title, summary.*text_column"):
            _texts(path)
        with pytest.raises(InputError, match=r"title, summary.*Did you mean title\?"):
            _texts(path, "titel")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"text": "x', "not JSON"),
        ("plain words", "not JSON"),
        ("[1]", "a list"),
        ('{"texts": "x"}', "only texts"),
        ("{}", "only an empty object"),
        ('{"text": 5}', "text=5"),
        ('{"text": "\\ud83d"}', "surrogate"),
    ],
)
def test_a_bad_json_line_is_named_by_file_and_line(tmp_path: Path, line: str, fault: str) -> None:
    path = _file(tmp_path, f'{{"text": "a"}}\n\n{line}\n{{"text": "b"}}\n', "a.jsonl")
    with pytest.raises(InputError, match=rf"a\.jsonl, line 3: .*{fault}"):
        _texts(path)


def test_half_a_surrogate_pair_matters_in_the_text_alone(tmp_path: Path) -> None:
    path = _file(tmp_path, '{"text": "a", "title": "\\ud83d"}\n{"text": "b"}\n', "a.jsonl")
    assert _texts(path) == ["a", "b"]
    with pytest.raises(InputError, match=r"line 1: half of a surrogate pair"):
        _texts(path, "title")


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 1, with text more than once"):
        _texts(_file(tmp_path, "text,text\na,b\n", "a.csv"))


def test_nulls_and_invisible_rows_are_passed_over_and_line_breaks_are_kept(tmp_path: Path) -> None:
    rows = [{"text": None}, {"text": " "}, {"text": "\u200b"}, {"text": " a\r\nb\rc\n\nd "}]
    expected = ["a\nb\nc\n\nd"]
    assert _texts(_file(tmp_path, "\n".join(map(json.dumps, rows)), "a.jsonl")) == expected
    assert _texts(_parquet(tmp_path, text=[row["text"] for row in rows])) == expected
    assert _texts(_file(tmp_path, 'n,text\n1,\n2," "\n3,"a\r\nb\rc\n\nd"\n', "a.csv")) == expected


def test_quoted_fields_hold_delimiters_quotes_and_line_breaks(tmp_path: Path) -> None:
    path = _file(tmp_path, 'text,label\r\n"a, ""b""\r\nc",1\r\n\r\nd,2\r\n', "a.csv")
    documents = list(read_documents([path], TextConfig()))
    assert [document.text for document in documents] == ['a, "b"\nc', "d"]
    assert [document.source for document in documents] == [f"{path}, line 2", f"{path}, line 5"]
    assert _texts(_file(tmp_path, 'text\tlabel\n"a\tb\nc"\t1\n"d\ne"\t2\n', "a.tsv")) == ["a\tb\nc", "d\ne"]


def test_lone_quotes_in_a_tsv_file_are_plain_characters(tmp_path: Path) -> None:
    path = _file(tmp_path, 'text\tlabel\n"a" b\t1\n" c\t0\nd "e"\t1\n', "a.tsv")
    assert _texts(path) == ['"a" b', '" c', 'd "e"']


@pytest.mark.parametrize("row", ["x", "x,1,2", '"x\ny"'])
def test_a_ragged_row_is_named_by_its_line(tmp_path: Path, row: str) -> None:
    path = _file(tmp_path, f'text,label\n"a\nb",1\n{row}\nc,2\n', "a.csv")
    with pytest.raises(InputError, match=r"a\.csv, line 4: \d fields where the header has 2"):
        _texts(path)


def test_an_open_quote_is_named_by_the_line_of_its_row(tmp_path: Path) -> None:
    path = _file(tmp_path, 'text,label\na,1\n"b,2\nc,3\n', "a.csv")
    with pytest.raises(InputError, match=r"a\.csv, line 3: a row that cannot be split"):
        _texts(path)


def test_a_field_longer_than_the_csv_modules_own_limit_is_read(tmp_path: Path) -> None:
    assert [len(text) for text in _texts(_file(tmp_path, f"text,label\n{'x' * 200_000},1\n", "a.csv"))] == [200_000]


def test_a_record_beyond_all_measure_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MAX_RECORD_CHARACTERS", 1_000)
    path = _file(tmp_path, '{"text": "a"}\n{"text": "' + "x" * 2_000 + '"}', "a.jsonl")
    with pytest.raises(InputError, match=r"at most 1,000 characters.*line 2"):
        _texts(path)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_every_text_type_of_parquet_is_read_across_row_groups(tmp_path: Path, kind: pa.DataType) -> None:
    texts = [f"text {number}" for number in range(300)]
    path = _parquet(tmp_path, label=list(range(300)), text=pa.array(texts).cast(kind))
    documents = list(read_documents([path], TextConfig()))
    assert [document.text for document in documents] == texts
    assert documents[299].source == f"{path}, row 300"


def test_a_row_group_is_read_in_bounded_memory(tmp_path: Path) -> None:
    texts = [random_stream(0, number).bytes(500).hex() for number in range(20_000)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", use_dictionary=False, compression="none")
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    documents = read_documents([tmp_path / "a.parquet"], TextConfig())
    assert max(pool.bytes_allocated() - before for _ in documents) < 8_000_000


def test_a_damaged_parquet_file_and_one_without_text_are_told(tmp_path: Path) -> None:
    path = _parquet(tmp_path, text=["a" * 50, "b" * 50])
    with pytest.raises(InputError, match=r"b\.parquet, damaged or no Parquet file"):
        _texts(_file(tmp_path, path.read_bytes()[:-30], "b.parquet"))
    with pytest.raises(InputError, match=r"text=|text of type int64"):
        _texts(_parquet(tmp_path, text=[1, 2]), "text")


def test_a_bad_byte_in_a_parquet_text_is_named_by_its_row(tmp_path: Path) -> None:
    values = pa.array([b"good", b"b\xe9d"], pa.binary()).view(pa.string())
    with pytest.raises(InputError, match=r"a\.parquet, row 2: the byte 0xE9"):
        _texts(_parquet(tmp_path, text=values))
