"""An evaluation as files."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.recipes import evaluation_files
from bertsmith.recipes.evaluation_files import refuse_unfit_folder, write_evaluation
from bertsmith.recipes.results import Report

ERROR = {"place": "line 4", "text": "a\tb\nc <i>", "label": "dry", "predicted": "wet", "score": 0.75}
METRICS: dict[str, Any] = {
    "rows": 5,
    "accuracy": 0.6,
    "loss": 0.5,
    "per_class": {name: {"precision": 0.5, "recall": 0.5, "f1": 0.5, "rows": 2} for name in ("dry", "wet")},
    "labels": ["dry", "wet"],
    "confusion": [[2, 1], [1, 1]],
    "worst_errors": [ERROR, ERROR | {"pair": "the second text"}],
    "notes": ["columns of dev.csv: text “text”"],
}


def _report(**metrics: Any) -> Report:
    return Report(Path("runs/my-classifier/model"), Path("dev.csv"), metrics, tuple(metrics.get("worst_errors", ())))


def _write(folder: Path, **metrics: Any) -> list[str]:
    notices: list[str] = []
    write_evaluation(folder, _report(**metrics), notify=notices.append)
    return notices


def test_all_that_was_found_stands_in_files(tmp_path: Path) -> None:
    out = tmp_path / "new" / "evaluation"
    assert _write(out, **METRICS) == []
    names = {path.name for path in out.iterdir()}
    assert names == {"evaluation.json", "report.html", "confusion.png", "confusion.svg", "errors.tsv"}
    found = json.loads((out / "evaluation.json").read_text(encoding="utf-8"))
    assert found == {"folder": "runs/my-classifier/model", "source": "dev.csv"} | METRICS
    with open(out / "errors.tsv", encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file, delimiter="\t")
    assert (first["text"], first["pair"], first["score"]) == ("a\tb\nc <i>", "", "0.75")
    assert second["pair"] == "the second text"


def test_a_carriage_return_parts_no_row(tmp_path: Path) -> None:
    _write(tmp_path, **METRICS | {"worst_errors": [ERROR | {"text": "a\rb"}, ERROR]})
    with open(tmp_path / "errors.tsv", encoding="utf-8", newline="") as file:
        assert [row["text"] for row in csv.DictReader(file, delimiter="\t")] == ["a\rb", "a\tb\nc <i>"]


def test_the_report_is_one_page_with_the_picture_in_it(tmp_path: Path) -> None:
    _write(tmp_path, **METRICS)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for part in ("my-classifier", "dev.csv", "60.0%", "Each class", "<svg", "Worst errors", "a\tb\nc &lt;i&gt;"):
        assert part in page
    assert "<?xml" not in page
    assert "<i>" not in page
    assert 'src="http' not in page


def test_the_report_is_titled_as_an_evaluation_of_a_model_on_a_file(tmp_path: Path) -> None:
    _write(tmp_path, **METRICS)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<title>Evaluation of runs/my-classifier/model: bertsmith evaluation</title>" in page
    assert "On dev.csv" in page
    assert "bertsmith run" not in page


def test_every_error_stands_in_the_table_and_the_report_says_where(tmp_path: Path) -> None:
    errors = tuple(ERROR | {"place": f"line {number}"} for number in range(30))
    report = Report(Path("a/model"), Path("dev.csv"), METRICS | {"worst_errors": list(errors[:20])}, errors)
    write_evaluation(tmp_path, report, notify=lambda message: None)
    with open(tmp_path / "errors.tsv", encoding="utf-8", newline="") as file:
        assert [row["place"] for row in csv.DictReader(file, delimiter="\t")] == [error["place"] for error in errors]
    found = json.loads((tmp_path / "evaluation.json").read_text(encoding="utf-8"))
    assert len(found["worst_errors"]) == 20
    assert "The 20 worst of 30; all of them stand in errors.tsv." in (tmp_path / "report.html").read_text("utf-8")
    _write(tmp_path, **METRICS)
    assert "all of them stand in" not in (tmp_path / "report.html").read_text("utf-8")


def test_a_task_without_classes_has_no_picture(tmp_path: Path) -> None:
    _write(tmp_path, **METRICS)
    # One that an earlier evaluation left would be that of something else.
    _write(tmp_path, rows=5, pearson=0.4, worst_errors=[])
    assert {path.name for path in tmp_path.iterdir()} == {"evaluation.json", "report.html", "errors.tsv"}
    assert "0.400" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_an_evaluation_on_text_is_json_alone(tmp_path: Path) -> None:
    # Files that an earlier evaluation left would be those of something else.
    _write(tmp_path, **METRICS)
    _write(tmp_path, loss=2.5, perplexity=12.2)
    assert [path.name for path in tmp_path.iterdir()] == ["evaluation.json"]


def test_without_matplotlib_the_rest_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_files, "can_draw", lambda: False)
    (notice,) = _write(tmp_path, **METRICS)
    assert "matplotlib is not installed" in notice
    assert {path.name for path in tmp_path.iterdir()} == {"evaluation.json", "report.html", "errors.tsv"}
    assert "true class" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["run.toml", "manifest.json", "config.json"])
def test_no_run_or_model_is_written_over(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("kept")
    with pytest.raises(InputError, match=f"which holds {name}"):
        _write(tmp_path, **METRICS)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with pytest.raises(InputError, match="--out must be a folder"):
        refuse_unfit_folder(tmp_path / name, Path("dev.csv"))


@pytest.mark.parametrize("evaluation", [None, "{}", "[]", "half", '{"folder": "a run"}'])
@pytest.mark.parametrize("name", ["errors.tsv", "report.html", "evaluation.json", "confusion.png", "confusion.svg"])
def test_files_that_no_evaluation_wrote_are_not_replaced(tmp_path: Path, name: str, evaluation: str | None) -> None:
    if evaluation is not None:
        (tmp_path / "evaluation.json").write_text(evaluation)
    (tmp_path / name).write_text("years of work")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="replaces the files of an earlier evaluation alone"):
        _write(tmp_path, **METRICS)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_earlier_evaluation_is_replaced_and_other_files_beside_it_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("kept")
    _write(tmp_path, loss=2.5)
    _write(tmp_path, **METRICS)
    _write(tmp_path, **METRICS | {"accuracy": 0.7})
    assert json.loads((tmp_path / "evaluation.json").read_text(encoding="utf-8"))["accuracy"] == 0.7
    assert (tmp_path / "notes.txt").read_text() == "kept"


@pytest.mark.parametrize("linked", [False, True])
def test_an_earlier_evaluations_errors_are_not_replaced_by_an_evaluation_on_them(tmp_path: Path, linked: bool) -> None:
    _write(tmp_path / "out", **METRICS)
    source = tmp_path / "out" / "errors.tsv"
    if linked:
        source = tmp_path / "rows.tsv"
        source.symlink_to(tmp_path / "out" / "errors.tsv")
    before = source.read_bytes()
    with pytest.raises(InputError, match="must not replace the file that is evaluated"):
        refuse_unfit_folder(tmp_path / "out", source)
    refuse_unfit_folder(tmp_path / "another", source)
    assert source.read_bytes() == before
