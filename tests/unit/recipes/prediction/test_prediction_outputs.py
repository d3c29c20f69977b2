"""Results as files: whole files or none."""

import csv
import errno
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertsmith.cli.predicting import Use, predict
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import new_folder
from bertsmith.inference.regress import ValuePrediction
from bertsmith.recipes.prediction.items import file_input
from bertsmith.recipes.prediction.outputs import refuse_unwritable, write_results
from bertsmith.recipes.prediction.rows import RowResult, predict_rows
from made_predictors import TASKS, as_rows, made_items, made_predictor
from made_tasks import made_encoder, write_rows


def _results(path: Path, task: str = "classify") -> Any:
    return predict_rows(made_predictor(task), file_input(task, path).parts)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Three rows, the second of which is blank."""
    path = tmp_path / "a.txt"
    path.write_text("one\n\nthree, and more\n")
    return path


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.tsv"])
def test_results_are_written_whole_or_not_at_all(tmp_path: Path, source: Path, name: str) -> None:
    path = tmp_path / name
    results = write_results(_results(source), path, "classify")
    next(results)
    assert not path.exists()
    rest = list(results)
    assert len(rest) == 2
    if name == "out.jsonl":
        objects = [json.loads(line) for line in path.read_text().splitlines()]
        assert [("label" in one, "error" in one) for one in objects] == [(True, False), (False, True), (True, False)]
        assert "pair" not in objects[0]
    else:
        delimiter = "," if name == "out.csv" else "\t"
        rows = list(csv.DictReader(io.StringIO(path.read_text()), delimiter=delimiter))
        assert [row["text"] for row in rows] == ["one", "", "three, and more"]
        assert "must not be blank" in rows[1]["error"]
        assert rows[0]["label"] in ("no", "yes")
    assert {entry.name for entry in tmp_path.iterdir()} == {"a.txt", name}


@pytest.mark.parametrize("task", TASKS)
def test_a_table_has_the_columns_of_its_task(tmp_path: Path, task: str) -> None:
    path = write_rows(tmp_path / "a.jsonl", as_rows(task, made_items(task, 2)))
    results = list(write_results(_results(path, task), tmp_path / "out.csv", task))
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["row"] for row in rows] == ["1", "2"]
    for row, result in zip(rows, results, strict=True):
        values = result.values
        if task == "tag":
            assert json.loads(row["words"]) == [word["word"] for word in values["words"]]
            assert json.loads(row["labels"]) == [word["label"] for word in values["words"]]
        for name, cell in row.items():
            value = values.get(name)
            if isinstance(value, float):
                assert float(cell) == value
            elif isinstance(value, str):
                assert cell == value
            elif isinstance(value, list | dict) and task != "tag":
                assert json.loads(cell) == value
        # What a task finds stands in its table.
        assert set(row) - {"row", "error", "pair", "start"} <= {*values, "labels"}


def test_half_a_surrogate_pair_is_reported_and_the_others_are_written(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"text": text}) for text in ("one", "two \ud83d", "three")))
    for name in ("out.jsonl", "out.csv"):
        found = list(write_results(_results(path), tmp_path / name, "classify"))
        assert [result.fault is None for result in found] == [True, False, True]
        assert "surrogate pair" in (tmp_path / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("blanks", [(), (0,), (1, 2), (3,)])
def test_vectors_are_a_matrix_with_a_row_each(tmp_path: Path, blanks: tuple[int, ...]) -> None:
    texts = ["" if number in blanks else text for number, text in enumerate(made_items("embed", 4))]
    (tmp_path / "a.txt").write_text("".join(f"{text}\n" for text in texts))
    results = list(write_results(_results(tmp_path / "a.txt", "embed"), tmp_path / "out.npy", "embed"))
    matrix = np.load(tmp_path / "out.npy", allow_pickle=False)
    assert (matrix.shape, matrix.dtype) == ((4, 16), np.float32)
    for row, result in zip(matrix, results, strict=True):
        if result.fault is None:
            assert np.array_equal(row, np.array(result.values["embedding"], np.float32))
        else:
            assert np.isnan(row).all()


def test_the_header_of_vectors_has_room_for_any_number_of_rows(tmp_path: Path) -> None:
    (prediction,) = made_predictor("embed")(["the old boat"])
    results = (RowResult(number, "", prediction, None) for number in range(1_234))
    num_results = sum(1 for _ in write_results(results, tmp_path / "out.npy", "embed"))
    matrix = np.load(tmp_path / "out.npy", mmap_mode="r")
    assert matrix.shape == (num_results, 16) == (1_234, 16)
    assert np.array_equal(matrix[-1], prediction.embedding)


def test_vectors_are_written_of_embeddings_alone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a file of vectors"):
        refuse_unwritable(tmp_path / "out.npy", "classify")


@pytest.mark.parametrize("name", ["out.parquet", "out.CSV.gz", "out.jsonl.zst", "out.xlsx"])
def test_a_name_that_tells_of_something_else_is_refused(tmp_path: Path, name: str) -> None:
    for task, known in (("classify", r"\.csv, \.tsv or JSON lines"), ("embed", r"\.csv, \.tsv, \.npy or JSON lines")):
        with pytest.raises(InputError, match=f"--output must be {known} for {task}.*which names"):
            refuse_unwritable(tmp_path / name, task)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["out.csv", "out.tsv"])
def test_a_carriage_return_parts_no_row(tmp_path: Path, name: str) -> None:
    texts = ["one\rtwo", "three\r\nfour", "five"]
    predictions = [ValuePrediction(text, None, 1.5, cut=False) for text in texts]
    results = [RowResult(number, "", prediction, None) for number, prediction in enumerate(predictions, 1)]
    list(write_results(results, tmp_path / name, "regress"))
    with open(tmp_path / name, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="," if name == "out.csv" else "\t"))
    assert [row["text"] for row in rows] == texts


def test_a_small_value_keeps_its_digits_in_a_table(tmp_path: Path) -> None:
    prediction = ValuePrediction("one", None, 3.25e-6, cut=False)
    list(write_results([RowResult(1, "", prediction, None)], tmp_path / "out.csv", "regress"))
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as file:
        assert [float(row["value"]) for row in csv.DictReader(file)] == [3.25e-6]


def test_an_interrupted_writing_leaves_nothing(tmp_path: Path, source: Path) -> None:
    for name, task in (("out.jsonl", "classify"), ("out.npy", "embed")):
        results = write_results(_results(source, task), tmp_path / name, task)
        next(results)
        results.close()  # pyright: ignore[reportAttributeAccessIssue]
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_no_file_is_left_where_no_row_can_be_used(tmp_path: Path, source: Path) -> None:
    source.write_text("\n \n")
    for name, task in (("out.jsonl", "classify"), ("out.npy", "embed")):
        with pytest.raises(InputError, match="2 rows, and none can"):
            list(write_results(_results(source, task), tmp_path / name, task))
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_place_that_cannot_be_written_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "out.csv").write_text("kept")
    with pytest.raises(InputError, match=r"--output must be a file\. .*folder"):
        refuse_unwritable(tmp_path / "folder", "classify")
    with pytest.raises(InputError, match=r"--output must be a file that can be written"):
        refuse_unwritable(tmp_path / f"{'x' * 300}.csv", "classify")
    refuse_unwritable(tmp_path / "out.csv", "classify")
    refuse_unwritable(tmp_path / "new.csv", "classify")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "out.csv"]
    assert (tmp_path / "out.csv").read_text() == "kept"
    with pytest.raises(InputError, match="--output must lie in a folder that exists"):
        next(write_results([], tmp_path / "none" / "out.jsonl", "classify"))

    def refused(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "touch", refused)
    with pytest.raises(InputError, match=r"can be written.*out\.csv \(Permission denied\)"):
        next(write_results([], tmp_path / "out.csv", "classify"))


def test_what_the_system_refuses_at_the_end_is_told(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(InputError, match=r"can be written.*Permission denied"):
        list(write_results(_results(source), tmp_path / "out.jsonl", "classify"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


NO_LINKS = pytest.mark.skipif(os.name == "nt", reason="Windows gives links to administrators alone")


@NO_LINKS
def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path, source: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "out.csv"
    link.symlink_to(tmp_path / "there" / "target.csv")
    for _ in ("new", "there already"):
        assert len(list(write_results(_results(source), link, "classify"))) == 3
        assert link.is_symlink()
        assert "three, and more" in (tmp_path / "there" / "target.csv").read_text()
        assert [path.name for path in (tmp_path / "there").iterdir()] == ["target.csv"]


@NO_LINKS
def test_no_device_or_pipe_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "link.csv").symlink_to("/dev/null")
    for path in (Path("/dev/stdout"), Path("/dev/null"), tmp_path / "pipe.csv", tmp_path / "link.csv"):
        with pytest.raises(InputError, match=r"--output must be a file\..*redirect standard output"):
            refuse_unwritable(path, "classify")
        with pytest.raises(InputError, match=r"--output must be a file\."):
            next(write_results([], path, "classify"))


@NO_LINKS
def test_the_source_is_not_replaced_whatever_it_is_called(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link.txt").symlink_to(source)
    os.link(source, tmp_path / "hard.txt")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path)
    for output in (source, Path("a.txt"), Path("below/../a.txt"), tmp_path / "link.txt", tmp_path / "hard.txt"):
        for given in (source, tmp_path / "link.txt"):
            with pytest.raises(InputError, match="--output must not replace what is read"):
                refuse_unwritable(output, "classify", source=given)
    refuse_unwritable(tmp_path / "b.txt", "classify", source=source)
    refuse_unwritable(source, "classify", source=tmp_path / "elsewhere.txt")
    # Of a data set that is a folder, no file is replaced.
    (tmp_path / "below" / "data.arrow").write_text("rows")
    with pytest.raises(InputError, match="--output must not replace what is read"):
        refuse_unwritable(tmp_path / "below" / "data.arrow", "classify", source=tmp_path / "below")


def test_a_command_refuses_its_input_as_output_before_it_opens_the_model(tmp_path: Path, source: Path) -> None:
    use = Use(tmp_path / "no-model", str(source), source, {}, "auto", "auto", "auto", as_json=False)
    with pytest.raises(InputError, match="--output must not replace what is read"):
        predict("classify", use, [])
    assert source.read_text() == "one\n\nthree, and more\n"


@pytest.mark.parametrize(
    "name", ["model/config.json", "model/new.csv", "sealed/new.csv", "sealed/train/tokens.bin", "run/log.jsonl"]
)
def test_no_part_of_a_model_a_corpus_or_a_run_is_replaced(tmp_path: Path, name: str) -> None:
    made_encoder(tmp_path / "model")
    with new_folder(tmp_path / "sealed", seal={}) as folder:
        (folder / "train").mkdir()
        (folder / "train" / "tokens.bin").write_text("ids")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.toml").write_text("")
    with pytest.raises(InputError, match="--output must not be part of a model"):
        refuse_unwritable(tmp_path / name, "classify")
    refuse_unwritable(tmp_path / "run" / "new.csv", "classify")


@NO_LINKS
def test_a_model_of_links_as_the_hub_keeps_it_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "0123").write_text("{}")
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot" / "config.json").symlink_to("../blobs/0123")
    with pytest.raises(InputError, match="--output must not be part of a model"):
        refuse_unwritable(tmp_path / "snapshot" / "config.json", "classify")


def test_a_table_of_classes_has_every_score_and_one_of_vectors_no_pair(tmp_path: Path, source: Path) -> None:
    (first, *_) = write_results(_results(source), tmp_path / "out.csv", "classify")
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file))
    assert json.loads(row["scores"]) == first.values["scores"]
    list(write_results(_results(source, "embed"), tmp_path / "vectors.csv", "embed"))
    assert (tmp_path / "vectors.csv").read_text().splitlines()[0] == "row,text,embedding,error"
