"""The rows of a training and a validation file, and what is said and refused of them together."""

import json
from pathlib import Path
from typing import Any

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.finetuning.data import TaskData, task_data
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.tasks import TASKS

ROWS = [("red", "a"), ("blue", "b"), ("green", "a"), ("grey", "b")]


def _table(path: Path, *names: str, delimiter: str = ",", rows: Any = ROWS) -> Path:
    path.write_text("".join(f"{delimiter.join(row)}\n" for row in [names, *rows]), encoding="utf-8")
    return path


def _data(train: Path, validation: Path | None = None, *, task: str = "classify", **data: Any) -> TaskData:
    second = None if validation is None else str(validation)
    config = {"task": task, "train": str(train), "validation": second, "model": "none", "data": data}
    return task_data(TASKS[task], FinetuneConfig.parse(config, where="a test"))


@pytest.mark.parametrize("task", ["classify", "multilabel"])
def test_files_may_be_separated_in_different_ways_and_it_is_said_how(tmp_path: Path, task: str) -> None:
    train = _table(tmp_path / "train.csv", "Text", "Label", delimiter=";")
    validation = _table(tmp_path / "dev.csv", "Text", "Label")
    data = _data(train, validation, task=task)
    assert data.labels == ("a", "b")
    assert data.notes[0].endswith(", separated by “;”")
    assert len(data.train.items) == len(data.validation.items) == 4


def test_a_validation_file_without_rows_is_told_as_such(tmp_path: Path) -> None:
    train, empty = _table(tmp_path / "train.csv", "text", "label"), _table(tmp_path / "dev.csv", "a", "b", rows=[])
    for task in ("classify", "multilabel"):
        with pytest.raises(InputError, match=r"^A table must hold rows\. Received: .*dev\.csv without any"):
            _data(train, empty, task=task)


@pytest.mark.parametrize("task", ["classify", "multilabel"])
def test_a_column_that_only_the_training_file_told_is_not_laid_to_an_option(tmp_path: Path, task: str) -> None:
    train = _table(tmp_path / "train.csv", "text", "label")
    validation = _table(tmp_path / "dev.csv", "review", "label")
    with pytest.raises(
        InputError, match=r"read of train\.csv: text “text”.*dev\.csv with.*review.*without text"
    ) as told:
        _data(train, validation, task=task)
    assert "--text" not in str(told.value)
    with pytest.raises(InputError, match=r"^--text must be one of the file's columns: review, label.*text, for"):
        _data(train, validation, task=task, text="text")


def test_one_repeated_text_is_refused_whichever_rows_are_held_out(tmp_path: Path) -> None:
    distinct = [(f"{text} {number}", label) for number in range(10) for text, label in ROWS]
    for place in (0, 7, 20):
        rows = [*distinct, distinct[place]]
        train = _table(tmp_path / f"train-{place}.csv", "text", "label", rows=rows)
        with pytest.raises(InputError, match=rf"--strict.* 1 of {len(rows)} rows of .*: line {len(rows) + 1}\."):
            _data(train, strict=True)
    _data(_table(tmp_path / "train.csv", "text", "label", rows=distinct), strict=True)


def test_labels_are_the_same_whichever_kind_of_file_holds_them(tmp_path: Path) -> None:
    numbers = [("red", "1.0"), ("blue", "0.0"), ("green", "1.0"), ("grey", "0")]
    train = _table(tmp_path / "train.csv", "text", "label", rows=numbers)
    validation = tmp_path / "dev.jsonl"
    validation.write_text('{"text": "one", "label": 1.0}\n{"text": "two", "label": 0}\n')
    for task in ("classify", "multilabel"):
        data = _data(train, validation, task=task, label="label" if task == "classify" else None)
        assert data.labels == ("0", "1")


def test_a_label_with_a_line_break_breaks_no_note(tmp_path: Path) -> None:
    rows = [(text, '"a\nb"' if label == "a" else label) for text, label in ROWS]
    data = _data(
        _table(tmp_path / "train.csv", "text", "label", rows=rows),
        _table(tmp_path / "dev.csv", "text", "label", rows=rows),
    )
    assert "training: 4 rows, of “a\\nb” 2, “b” 2" in data.notes
    assert not any("\n" in note for note in data.notes)


def test_a_validation_file_that_writes_labels_in_another_way_is_read_and_said(tmp_path: Path) -> None:
    lists = [{"text": text, "labels": [label, "c"]} for text, label in ROWS]
    train = tmp_path / "train.jsonl"
    train.write_text("\n".join(json.dumps(row) for row in lists))
    validation = _table(tmp_path / "dev.csv", "text", "labels", rows=[("black", "a|b"), ("white", "c")])
    data = _data(train, validation, task="multilabel")
    assert data.labels == ("a", "b", "c")
    assert [row.label for row in data.validation.items] == [("a", "b"), ("c",)]
    assert "dev.csv: labels “labels” (separated by “|”)" in data.notes
    unknown = _table(tmp_path / "dev.csv", "text", "labels", rows=[("black", "a|d")])
    with pytest.raises(InputError, match=r"“d” in .*dev\.csv, line 2"):
        _data(train, unknown, task="multilabel")
