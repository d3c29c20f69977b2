"""Texts for an int8 model: out of whatever a person has, in the form that the job's predictor takes."""

import json
from pathlib import Path
from typing import Any

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.inference.engine import Job
from bertsmith.recipes.exporting.texts import FEWEST_TEXTS, MOST_TEXTS, calibration_items
from made_predictors import TASKS, as_rows, made_items, made_predictor
from made_tasks import write_rows


def _lines(path: Path, count: int) -> Path:
    path.write_text("".join(f"line number {number} of a text\n" for number in range(count)), encoding="utf-8")
    return path


def test_lines_are_spread_over_the_file_and_no_text_is_in_both_parts(tmp_path: Path) -> None:
    found = calibration_items("classify", _lines(tmp_path / "a.txt", 5_000))
    assert found.source == "a.txt"
    assert len(found.to_calibrate) == len(found.to_judge) == MOST_TEXTS
    assert not set(found.to_calibrate) & set(found.to_judge)
    assert found.to_calibrate[0] == "line number 0 of a text"
    assert found.to_judge[-1] == "line number 4999 of a text"


def test_documents_are_taken_whole_where_there_are_many(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n\n".join(f"first {number}\nsecond {number}" for number in range(600)), encoding="utf-8")
    assert calibration_items("embed", path).to_calibrate[0] == "first 0\nsecond 0"
    path.write_text("\n\n".join(f"first {number}\nsecond {number}" for number in range(20)), encoding="utf-8")
    assert calibration_items("embed", path).to_calibrate[0] == "first 0"


@pytest.mark.parametrize("task", TASKS)
def test_rows_are_read_as_the_command_of_the_job_reads_them(tmp_path: Path, task: Job) -> None:
    items = made_items(task, 20)
    path = write_rows(tmp_path / "rows.jsonl", as_rows(task, items))
    found = calibration_items(task, path)
    assert len(found.to_calibrate) + len(found.to_judge) == 20
    assert made_predictor(task).prepare(list(found.to_judge))


@pytest.mark.parametrize("task", TASKS)
def test_items_of_every_job_are_made_of_plain_text(tmp_path: Path, task: Job) -> None:
    found = calibration_items(task, _lines(tmp_path / "a.txt", 60))
    predictions: list[Any] = made_predictor(task)(list(found.to_judge))
    assert len(predictions) == len(found.to_judge) > 20


def test_a_model_of_pairs_is_given_pairs(tmp_path: Path) -> None:
    for source in (None, _lines(tmp_path / "a.txt", 60)):
        found = calibration_items("classify", source, pairs=True)
        assert all(isinstance(item, tuple) and len(item) == 2 for item in (*found.to_calibrate, *found.to_judge))
    rows = [{"sentence1": f"red {number}", "sentence2": "blue"} for number in range(40)]
    table = write_rows(tmp_path / "pairs.csv", rows)
    assert ("red 0", "blue") in calibration_items("classify", table, pairs=True).to_calibrate
    with pytest.raises(InputError, match=r"--calibrate must hold texts that stand alone.*pair “sentence2”"):
        calibration_items("classify", table, pairs=False)


def test_a_mask_stands_in_the_middle_of_every_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one two three four\n" * 20 + "東京の川は長い\n" * 20, encoding="utf-8")
    found = calibration_items("fill", path)
    assert found.to_calibrate[0] == "one two [MASK] four"
    assert found.to_judge[-1] == "東京の[MASK]は長い"


def test_a_row_that_cannot_be_used_is_passed_over(tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"text {number}"}) for number in range(30)]
    (tmp_path / "rows.jsonl").write_text("\n".join([*lines, "{", *lines]), encoding="utf-8")
    found = calibration_items("classify", tmp_path / "rows.jsonl")
    assert len(found.to_calibrate) + len(found.to_judge) == 60


def test_the_documentation_of_python_serves_where_nothing_is_named() -> None:
    found = calibration_items("classify", None)
    assert len(found.to_calibrate) == len(found.to_judge) == MOST_TEXTS
    assert "CPython" in found.source


def test_too_few_texts_and_no_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"{FEWEST_TEXTS} texts at least.*15 in a\.txt"):
        calibration_items("classify", _lines(tmp_path / "a.txt", 15))
    with pytest.raises(InputError, match="--calibrate must name a file or a folder"):
        calibration_items("classify", tmp_path / "none.txt")
