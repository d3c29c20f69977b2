"""Labels: found, ordered, mapped by name, split evenly."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertsmith.examples.classification import (
    balanced_weights,
    grouped_split,
    label_counts,
    label_ids,
    labels_of,
    stratified_split,
)
from bertsmith.examples.task_tables import TaskTable, read_task_table
from bertsmith.foundation.errors import InputError


def _table(folder: Path, labels: Sequence[Any], name: str = "a") -> TaskTable:
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(json.dumps({"text": f"t{n}", "label": label}) for n, label in enumerate(labels)))
    return read_task_table(path)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["pos", "neg", "pos"], ("neg", "pos")),
        ([5, 1, 2, 1], ("1", "2", "5")),
        (["10", "9", "-1"], ("-1", "9", "10")),
        ([True, False], ("false", "true")),
        ([1.0, 0.0], ("0", "1")),
        (["10", "9", "n/a"], ("10", "9", "n/a")),
        (["1.0", "2.00", "10."], ("1", "2", "10")),
        (["1.0", 1, 0.0], ("0", "1")),
        (["-1.0", "n/a"], ("-1", "n/a")),
        (["1.0", "1.10", "beta"], ("1.0", "1.10", "beta")),
        (["01.0", "v1.0", "1.0.0"], ("01.0", "1.0.0", "v1.0")),
        ([" a ", "a", "b"], ("a", "b")),
    ],
)
def test_labels_are_taken_from_the_data_in_order(tmp_path: Path, labels: list[Any], expected: tuple[str, ...]) -> None:
    table = _table(tmp_path, labels)
    assert labels_of(table) == expected
    ids = label_ids(table, expected)
    assert sorted(set(ids.tolist())) == list(range(len(expected)))


def test_ids_follow_the_names_whatever_their_order(tmp_path: Path) -> None:
    table = _table(tmp_path, ["b", "a", "c", "a"])
    assert label_ids(table, ("a", "b", "c")).tolist() == [1, 0, 2, 0]
    assert label_ids(table, ("c", "b", "a")).tolist() == [1, 2, 0, 2]


@pytest.mark.parametrize("labels", [("0", "1", "1.10"), ("0.0", "1.0", "1.10")])
def test_a_whole_number_is_the_same_label_however_a_file_or_a_model_writes_it(
    tmp_path: Path, labels: tuple[str, ...]
) -> None:
    table = _table(tmp_path, ["1.0", 1.0, 1, "1", "0", "1.10"])
    assert label_ids(table, labels).tolist() == [1, 1, 1, 1, 0, 2]
    with pytest.raises(InputError, match=r"“1\.1” in"):
        label_ids(_table(tmp_path, ["1.1"]), labels)


def test_a_label_that_training_lacks_is_named_with_its_row(tmp_path: Path) -> None:
    table = _table(tmp_path, ["wet", "dry", "dryy"], "validation")
    with pytest.raises(InputError, match=r"“dryy” in .*validation\.jsonl, line 3.*Did you mean dry\?"):
        label_ids(table, ("dry", "wet"))


@pytest.mark.parametrize("label", [["a"], {"a": 1}, 0.5])
def test_a_label_of_the_wrong_type_is_refused(tmp_path: Path, label: Any) -> None:
    with pytest.raises(InputError, match=r"name or a whole number.*line 2: label="):
        labels_of(_table(tmp_path, ["a", label]))


def test_one_label_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"two labels at least.*only “a” in all 3 rows"):
        labels_of(_table(tmp_path, ["a", "a", "a"]))


def test_numbers_with_fractions_are_no_labels(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"0\.5 among the 3 labels"):
        labels_of(_table(tmp_path, ["1", "0.5", "2", "1"]))


def test_labels_that_never_recur_are_taken_for_a_wrong_column(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must recur"):
        labels_of(_table(tmp_path, [f"name {number}" for number in range(10)]))
    assert len(labels_of(_table(tmp_path, [f"name {number}" for number in range(9)]))) == 9


@pytest.mark.parametrize("share", [0.1, 0.3, 0.9])
def test_a_split_holds_out_as_much_of_each_label(share: float) -> None:
    ids = np.array([0] * 100 + [1] * 10 + [2] * 2 + [3])
    train, held = stratified_split(ids, share=share, seed=0)
    assert sorted([*train.tolist(), *held.tolist()]) == list(range(len(ids)))
    counts = np.bincount(ids[held], minlength=4)
    assert counts.tolist() == [round(100 * share), max(1, min(9, round(10 * share))), 1, 0]


def test_a_split_is_drawn_by_its_seed() -> None:
    ids = np.arange(200) % 4
    first, again, other = (stratified_split(ids, share=0.2, seed=seed)[1].tolist() for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_a_split_by_groups_parts_none_and_holds_out_as_much_of_each_label() -> None:
    groups = [f"text {number // 5}" for number in range(500)]
    ids = (np.arange(500) % 5 == 0).astype(int)
    train, held = grouped_split(ids, groups, share=0.1, seed=0)
    assert sorted([*train.tolist(), *held.tolist()]) == list(range(500))
    assert not {groups[row] for row in train} & {groups[row] for row in held}
    assert np.bincount(ids[held]).tolist() == [40, 10]
    assert held.tolist() == grouped_split(ids, groups, share=0.1, seed=0)[1].tolist()
    assert held.tolist() != grouped_split(ids, groups, share=0.1, seed=1)[1].tolist()


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ("a" * 50 + "b" * 30, "b"),
        ("a" * 30 + "b" * 50, "a"),
        ("a" + "b" * 9, "a"),
    ],
)
def test_large_groups_are_held_out_as_a_whole_too(groups: str, expected: str) -> None:
    ids = np.zeros(len(groups), int)
    _, held = grouped_split(ids, groups, share=0.1, seed=0)
    assert {groups[row] for row in held} == {expected}
    assert len(held) == groups.count(expected)


def test_a_split_by_groups_leaves_rows_of_each_label_and_splits_a_single_group_by_rows() -> None:
    ids = np.array([0, 0, 0, 1])
    assert 3 in grouped_split(ids, "aabb", share=0.5, seed=0)[0]
    for groups in ("a" * 20, "a" * 10 + "b" * 10):
        ids = np.array([0] * 10 + [1] * 10)
        train, held = grouped_split(ids, groups, share=0.1, seed=0)
        assert np.bincount(ids[held]).tolist() == [1, 1]
        assert len(train) == 18


def test_balanced_weights_make_all_labels_weigh_the_same() -> None:
    ids = np.array([0] * 95 + [1] * 5)
    weights = balanced_weights(ids, 2)
    assert 95 * weights[0] == pytest.approx(5 * weights[1])
    assert np.array(weights)[ids].mean() == pytest.approx(1.0)
    assert label_counts(ids, ("a", "b")) == {"a": 95, "b": 5}
