"""Rows with any number of labels: which columns, which labels, what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertsmith.examples.classification import stratified_split
from bertsmith.examples.multilabel import (
    MultilabelTable,
    balanced_label_weights,
    label_names,
    label_set_notes,
    label_strata,
    label_targets,
    read_multilabel_table,
    set_counts,
)
from bertsmith.examples.table_config import TableConfig
from bertsmith.foundation.errors import InputError
from made_tasks import write_rows


def _read(folder: Path, labels: list[Any], *, name: str = "a.jsonl", **more: Any) -> MultilabelTable:
    path = folder / name
    path.write_text("\n".join(json.dumps({"text": f"t{n}", "labels": label}) for n, label in enumerate(labels)))
    return read_multilabel_table(path, **more)


def test_lists_give_labels_in_order_and_targets_by_name(tmp_path: Path) -> None:
    table = _read(tmp_path, [["wet", "cold"], [], None, ["dry"], ["cold"]])
    assert [row.label for row in table.rows] == [("cold", "wet"), (), (), ("dry",), ("cold",)]
    labels = label_names(table)
    assert labels == ("cold", "dry", "wet")
    targets = label_targets(table.rows, labels, tmp_path)
    assert targets.dtype == np.float32
    assert targets.tolist() == [[1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 1, 0], [1, 0, 0]]
    assert label_targets(table.rows, labels[::-1], tmp_path).tolist() == targets[:, ::-1].tolist()


def test_numbers_are_ordered_by_their_value(tmp_path: Path) -> None:
    assert label_names(_read(tmp_path, [[10, 9], [2]])) == ("2", "9", "10")


def test_separated_text_of_a_csv_is_split_and_said(tmp_path: Path) -> None:
    rows = [{"text": "one", "tags": "b|a"}, {"text": "two", "tags": ""}, {"text": "three", "tags": "c"}]
    table = read_multilabel_table(write_rows(tmp_path / "a.csv", rows))
    assert [row.label for row in table.rows] == [("a", "b"), (), ("c",)]
    assert str(table) == "text “text”, labels “tags” (separated by “|”)"


def test_several_columns_of_0_and_1_are_named(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "comment": "so rude", "rude": 1, "kind": 0, "long": 0},
        {"id": 2, "comment": "so kind", "rude": 0, "kind": 1, "long": 0},
        {"id": 3, "comment": "and both", "rude": 1, "kind": 1, "long": 1},
    ]
    path = write_rows(tmp_path / "a.csv", rows)
    table = read_multilabel_table(path, TableConfig(label="rude, kind"))
    assert label_names(table) == ("rude", "kind")
    assert [row.label for row in table.rows] == [("rude",), ("kind",), ("kind", "rude")]
    assert str(table) == "text “comment”, labels “rude”, “kind” (0 or 1 in each)"
    with pytest.raises(InputError, match=r"--label must be one of.*kin, for .*Did you mean kind\?"):
        read_multilabel_table(path, TableConfig(label="rude,kin"))


def test_a_label_column_is_asked_for_where_none_can_be_told(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.csv", [{"text": "one", "rude": 1, "kind": 0}])
    with pytest.raises(InputError, match=r"holds the label must be known.*text, rude, kind.*--label.*--label a,b,c"):
        read_multilabel_table(path)


def test_a_value_other_than_0_or_1_in_a_column_is_refused_with_its_row(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.csv", [{"text": "x", "a": 1, "b": 0}, {"text": "y", "a": 3, "b": 0}])
    with pytest.raises(InputError, match=r"1 or 0.*line 3: a='3'"):
        read_multilabel_table(path, TableConfig(label="a,b"))


def test_a_blank_cell_among_columns_of_0_and_1_is_refused_or_its_row_left_out(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.csv", [{"text": "x", "a": 1, "b": 0}, {"text": "y", "a": "", "b": 0}])
    with pytest.raises(InputError, match=r"1 blank in .*line 3 \(a\)"):
        read_multilabel_table(path, TableConfig(label="a,b"))
    table = read_multilabel_table(path, TableConfig(label="a,b", blank_rows="skip"))
    assert len(table.rows) == 1
    assert table.table.skipped == ("line 3 (a)",)


def test_a_blank_text_is_refused_though_a_blank_label_is_none(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.csv", [{"text": "x", "labels": ""}, {"text": " ", "labels": "a"}])
    with pytest.raises(InputError, match=r"1 blank in .*line 3 \(text\)"):
        read_multilabel_table(path)


def test_a_ragged_row_stops_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,labels\none,a\ntwo,a,b\n")
    with pytest.raises(InputError, match=r"line 3: 3 fields where the header has 2"):
        read_multilabel_table(path)


def test_validation_is_read_as_training_was(tmp_path: Path) -> None:
    train = _read(tmp_path, ["a;b", "b, c"], name="train.jsonl")
    assert train.layout.separator == ";"
    held_out = _read(tmp_path, ["b, c"], name="held.jsonl", like=train)
    assert held_out.rows[0].label == ("b, c",)
    flags = _read(tmp_path, [[0, 1, 1], [1, 0, 0]], name="train.jsonl")
    assert _read(tmp_path, [[1, 0, 0]], name="held.jsonl", like=flags).rows[0].label == ("0",)
    with pytest.raises(InputError, match=r"held\.jsonl, line 1: 2 in labels, and 3 in the first row"):
        _read(tmp_path, [[1, 0]], name="held.jsonl", like=flags)


def test_a_label_only_in_validation_is_named_with_its_row(tmp_path: Path) -> None:
    labels = label_names(_read(tmp_path, [["wet"], ["dry"]]))
    held_out = _read(tmp_path, [["wet"], ["dry", "weet"]], name="held.jsonl")
    with pytest.raises(InputError, match=r"dry, wet.*“weet” in .*held\.jsonl, line 2.*Did you mean wet\?"):
        label_targets(held_out.rows, labels, held_out.table.path)


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ([[], None, []], r"must have labels.*none in all 3 rows"),
        ([["a", "b"], ["b", "a"]], r"must differ.*a, b in all 2 rows"),
        ([[f"name {number}"] for number in range(10)], r"must recur.*each of 10 rows"),
    ],
)
def test_rows_from_which_nothing_can_be_learned_are_refused(tmp_path: Path, labels: list[Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        label_names(_read(tmp_path, labels))


def test_one_label_that_some_rows_have_is_enough(tmp_path: Path) -> None:
    assert label_names(_read(tmp_path, [["spam"], [], ["spam"]])) == ("spam",)


def test_rows_are_split_by_their_rarest_label() -> None:
    targets = np.zeros((120, 3), np.float32)
    targets[:100, 0] = 1
    targets[80:110, 1] = 1
    targets[70:80, 2] = 1
    strata = label_strata(targets)
    assert [len(set(strata[part].tolist())) for part in (slice(0, 70), slice(70, 80), slice(80, 110))] == [1, 1, 1]
    assert set(strata[110:].tolist()) == {0}
    assert len(set(strata.tolist())) == 4
    _, held = stratified_split(strata, share=0.1, seed=0)
    assert len(held) == 7 + 3 + 1 + 1
    assert targets[held].sum(0)[1:].tolist() == [3, 1]


def test_balanced_weights_make_lacking_and_having_weigh_the_same() -> None:
    targets = np.zeros((100, 3), np.float32)
    targets[:5, 0] = 1
    targets[:, 2] = 1
    (lacking, having), absent, always = balanced_label_weights(targets)
    assert 95 * lacking == pytest.approx(5 * having)
    assert 95 * lacking + 5 * having == pytest.approx(100)
    assert absent == always == (1.0, 1.0)


def test_notes_tell_what_stands_out() -> None:
    targets = np.array([[1, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1]], np.float32)
    labels = ("a", "b", "c", "d")
    assert set_counts(targets, labels) == {"a": 1, "b": 0, "c": 0, "d": 3}
    assert label_set_notes(targets, labels) == ["no training row has b, c", "every training row has d"]
    notes = label_set_notes(np.array([[1, 0], [0, 0], [0, 1]], np.float32), ("a", "b"))
    assert notes[0] == "1 of 3 training rows has no label, which is a valid answer"
    assert "the task is classify" in notes[1]


def test_whole_numbers_are_the_same_labels_however_they_are_written(tmp_path: Path) -> None:
    for rows in (["1.0|2", "2.0", "1"], [[1.0, "2"], [2], ["1.0"]]):
        table = _read(tmp_path, rows)
        labels = label_names(table)
        assert labels == ("1", "2")
        assert label_targets(table.rows, labels, tmp_path).tolist() == [[1, 1], [0, 1], [1, 0]]
    assert label_names(_read(tmp_path, ["1.0|1.1", "beta"])) == ("1.0", "1.1", "beta")


def test_validation_may_write_labels_in_another_way_than_training(tmp_path: Path) -> None:
    train = _read(tmp_path, [["wet", "cold"], ["dry"]], name="train.jsonl")
    rows = [{"text": "one", "labels": "wet|dry"}, {"text": "two", "labels": "cold"}]
    bars = read_multilabel_table(write_rows(tmp_path / "held.csv", rows), like=train)
    assert [row.label for row in bars.rows] == [("dry", "wet"), ("cold",)]
    assert _read(tmp_path, [["wet", "dry"]], name="held.jsonl", like=bars).rows[0].label == ("dry", "wet")
    semicolons = read_multilabel_table(write_rows(tmp_path / "b.csv", [{"text": "a", "labels": "wet;dry"}]), like=bars)
    assert semicolons.rows[0].label == ("dry", "wet")


@pytest.mark.parametrize(
    ("cells", "known", "expected"),
    [
        (["Food, Drink", "Travel"], ("Food, Drink", "Travel"), [("Food, Drink",), ("Travel",)]),
        (["Food, Drink", "Travel"], ("Drink", "Food", "Travel"), [("Drink", "Food"), ("Travel",)]),
        (["a|b;c", "d"], ("a|b", "c", "d"), [("a|b", "c"), ("d",)]),
        (["1.0", "0"], ("0", "1", "2"), [("1.0",), ("0",)]),
        (["1", "0"], ("labels",), [("labels",), ()]),
    ],
)
def test_the_labels_of_a_model_tell_what_parts_names(
    tmp_path: Path, cells: list[str], known: tuple[str, ...], expected: list[tuple[str, ...]]
) -> None:
    table = _read(tmp_path, cells, config=TableConfig(label="labels"), known=known)
    assert [row.label for row in table.rows] == expected


def test_columns_whose_names_have_a_comma_are_named_in_quotes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,film,"long, really",dull\none,1,0,1\ntwo,0,1,0\n')
    table = read_multilabel_table(path, TableConfig(label='film, "long, really"'))
    assert label_names(table) == ("film", "long, really")
    assert read_multilabel_table(path, like=table).layout == table.layout
    for one in ("long, really", '"long, really"'):
        assert label_names(read_multilabel_table(path, TableConfig(label=one))) == ("long, really",)
    with pytest.raises(
        InputError, match=r'columns: text, film, "long, really", dull.*A name with a comma stands in quotes'
    ):
        read_multilabel_table(path, TableConfig(label="film,long, really"))
    absent = np.zeros((2, 3), np.float32)
    assert f'no training row has {"film"}, "long, really", dull' in label_set_notes(
        absent, ("film", "long, really", "dull")
    )
