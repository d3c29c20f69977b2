"""Folders and files of the library `datasets`, read without it."""

import hashlib
import json
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.text.arrow_files import is_dataset_folder
from bertsmith.text.tables import about_rows, table_rows, table_sha256

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # It may warn of what its own dependencies do.
    import datasets

ROWS: dict[str, list[Any]] = {
    "text": ["good", "bad\r\nday", "ܫܠܡܐ"],
    "label": [1, 0, -1],
    "tags": [[0, 1], [1], []],
    "answers": [
        {"text": ["x", "y"], "answer_start": [1, 5]},
        {"text": [], "answer_start": []},
        {"text": ["z"], "answer_start": [0]},
    ],
    "more": [{"kind": 0, "note": "n"}, None, {"kind": None, "note": None}],
}
FEATURES = datasets.Features(
    {
        "text": datasets.Value("string"),
        "label": datasets.ClassLabel(names=["negative", "positive"]),
        "tags": datasets.Sequence(datasets.ClassLabel(names=["O", "B-PER"])),
        "answers": datasets.Sequence({"text": datasets.Value("string"), "answer_start": datasets.Value("int32")}),
        "more": {"kind": datasets.ClassLabel(names=["one", "two"]), "note": datasets.Value("string")},
    }
)
NAMED: dict[str, list[Any]] = {
    **ROWS,
    "label": ["positive", "negative", None],
    "tags": [["O", "B-PER"], ["B-PER"], []],
    "more": [{"kind": "one", "note": "n"}, None, {"kind": None, "note": None}],
}


def test_parquet_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    columns = [pa.array(["a"]), pa.array(["b"]), pa.array([0])]
    pq.write_table(pa.Table.from_arrays(columns, names=["text", "text", "label"]), tmp_path / "a.parquet")
    for column in (None, "text"):
        with pytest.raises(InputError, match=r"name of its own.*a\.parquet, with text more than once"):
            list(table_rows(tmp_path / "a.parquet", column=column))


def test_decimals_that_are_whole_numbers_are_read_as_such(tmp_path: Path) -> None:
    values = [Decimal("1.00"), Decimal("2.50"), None]
    pq.write_table(pa.table({"label": pa.array(values, pa.decimal128(5, 2))}), tmp_path / "a.parquet")
    found = [row["label"] for row in _values(tmp_path / "a.parquet")]
    assert found == [1, Decimal("2.50"), None]
    assert isinstance(found[0], int)


def _dataset() -> datasets.Dataset:
    return datasets.Dataset.from_dict(ROWS, features=FEATURES)


def _values(path: Path, *, as_written: bool = True) -> list[dict[str, Any]]:
    rows = list(table_rows(path, as_written=as_written))
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert [row.place for row in rows] == [f"row {row.number}" for row in rows]
    assert [row.fault for row in rows] == [None] * len(rows)
    return [row.values for row in rows]


def _as_rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def test_a_saved_data_set_gives_its_rows_with_the_names_of_its_classes(tmp_path: Path) -> None:
    _dataset().save_to_disk(str(tmp_path / "rows"))
    found = _values(tmp_path / "rows")
    assert found == _as_rows(NAMED)
    oracle = datasets.load_from_disk(str(tmp_path / "rows"))
    names = oracle.features["label"]
    expected = [None if row["label"] < 0 else names.int2str(row["label"]) for row in oracle]
    assert [row["label"] for row in found] == expected
    for column in ("text", "answers"):
        assert [row[column] for row in found] == list(oracle[column])


def test_line_ends_are_plain_unless_wanted_as_written(tmp_path: Path) -> None:
    _dataset().save_to_disk(str(tmp_path / "rows"))
    assert [row["text"] for row in _values(tmp_path / "rows", as_written=False)] == ["good", "bad\nday", "ܫܠܡܐ"]


def test_a_data_set_in_several_files_comes_in_order(tmp_path: Path) -> None:
    made = datasets.Dataset.from_dict({"text": [f"text {number}" for number in range(1000)]})
    made.select(range(999, -1, -1)).save_to_disk(str(tmp_path / "rows"), num_shards=3)
    assert len(list((tmp_path / "rows").glob("*.arrow"))) == 3
    assert about_rows(tmp_path / "rows") == 1000
    assert [row["text"] for row in _values(tmp_path / "rows")] == [f"text {number}" for number in range(999, -1, -1)]


def test_renamed_columns_and_classes_are_those_of_the_data_set(tmp_path: Path) -> None:
    made = _dataset().rename_column("label", "mood").cast_column("mood", datasets.ClassLabel(names=["down", "up"]))
    made.save_to_disk(str(tmp_path / "rows"))
    assert [row["mood"] for row in _values(tmp_path / "rows")] == ["up", "down", None]


def test_a_folder_of_splits_is_told_with_their_names(tmp_path: Path) -> None:
    splits = datasets.DatasetDict({"train": _dataset(), "test": _dataset().select([1])})
    splits.save_to_disk(str(tmp_path / "rows"))
    with pytest.raises(InputError, match=r"with train, test\. For example: .*rows/train\."):
        next(table_rows(tmp_path / "rows"))
    assert _values(tmp_path / "rows" / "test") == _as_rows(NAMED)[1:2]
    assert is_dataset_folder(tmp_path / "rows")
    assert is_dataset_folder(tmp_path / "rows" / "train")
    assert not is_dataset_folder(tmp_path)


def test_a_parquet_file_of_the_library_names_its_classes(tmp_path: Path) -> None:
    _dataset().to_parquet(str(tmp_path / "a.parquet"))
    assert _values(tmp_path / "a.parquet") == _as_rows(NAMED)
    assert [row.values for row in table_rows(tmp_path / "a.parquet", column="label")] == [
        {"label": name} for name in NAMED["label"]
    ]


def test_older_notes_of_sequences_are_understood(tmp_path: Path) -> None:
    names = {"names": ["O", "B-PER"], "_type": "ClassLabel"}
    features = {
        "tags": {"feature": names, "length": -1, "_type": "Sequence"},
        "words": [names],
        "spans": {"feature": {"kind": names, "at": {"dtype": "int32", "_type": "Value"}}, "_type": "Sequence"},
    }
    values = {"tags": [[0, 1]], "words": [[1]], "spans": [{"kind": [1, 0], "at": [1, 0]}]}
    note = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    pq.write_table(pa.table(values).replace_schema_metadata(note), tmp_path / "a.parquet")
    assert _values(tmp_path / "a.parquet") == [
        {"tags": ["O", "B-PER"], "words": ["B-PER"], "spans": {"kind": ["B-PER", "O"], "at": [1, 0]}}
    ]


def test_a_class_without_a_name_is_a_fault_of_its_row(tmp_path: Path) -> None:
    features = {"label": {"names": ["a", "b"], "_type": "ClassLabel"}}
    note = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    pq.write_table(pa.table({"label": [0, 2, 1]}).replace_schema_metadata(note), tmp_path / "a.parquet")
    first, bad, last = table_rows(tmp_path / "a.parquet")
    assert (first.values, last.values) == ({"label": "a"}, {"label": "b"})
    assert "row 2: 2, where classes 0 to 1 have names" in str(bad.fault)


@pytest.mark.parametrize("note", [b"{", b"[]", b'{"info": 4}', b'{"info": {"features": [1]}}'])
def test_notes_that_cannot_be_read_are_passed_over(tmp_path: Path, note: bytes) -> None:
    table = pa.table({"label": [0, 2]}).replace_schema_metadata({b"huggingface": note})
    pq.write_table(table, tmp_path / "a.parquet")
    assert [row["label"] for row in _values(tmp_path / "a.parquet")] == [0, 2]


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"_data_files": [{"filename": "../a.arrow"}]}, "must name files of its folder"),
        ({"_data_files": [{"filename": "/etc/passwd"}]}, "must name files of its folder"),
        ({"_data_files": [{"filename": ".."}]}, "must name files of its folder"),
        ({"_data_files": [{"filename": "gone.arrow"}]}, "without gone.arrow"),
        ({"_data_files": [{}]}, "must hold names under _data_files"),
        ({"_data_files": 4}, "must hold names under _data_files"),
        ([], "must be a JSON object"),
    ],
)
def test_a_damaged_data_set_is_refused(tmp_path: Path, state: object, told: str) -> None:
    _dataset().save_to_disk(str(tmp_path / "rows"))
    (tmp_path / "rows" / "state.json").write_text(json.dumps(state))
    with pytest.raises(InputError, match=told):
        next(table_rows(tmp_path / "rows"))


def test_a_file_that_was_cut_is_refused_where_the_cut_is(tmp_path: Path) -> None:
    datasets.Dataset.from_dict({"text": ["x" * 1000] * 100}).save_to_disk(str(tmp_path / "rows"))
    (path,) = (tmp_path / "rows").glob("*.arrow")
    path.write_bytes(path.read_bytes()[:50_000])
    with pytest.raises(InputError, match=r"must be whole.*data-00000-of-00001\.arrow"):
        list(table_rows(tmp_path / "rows"))


def test_a_folder_that_is_no_data_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="saved with save_to_disk"):
        next(table_rows(tmp_path))


def test_the_sum_of_a_data_set_tells_whether_it_changed(tmp_path: Path) -> None:
    _dataset().save_to_disk(str(tmp_path / "rows"))
    before = table_sha256(tmp_path / "rows")
    assert table_sha256(tmp_path / "rows") == before
    info = tmp_path / "rows" / "dataset_info.json"
    info.write_text(info.read_text().replace("positive", "pleased"))
    assert table_sha256(tmp_path / "rows") != before
    (tmp_path / "a.csv").write_text("text\none\n")
    assert table_sha256(tmp_path / "a.csv") == hashlib.sha256(b"text\none\n").hexdigest()
