"""Classifying files and streams: in order, bad rows reported, whole files or none."""

import csv
import errno
import io
import json
import os
from pathlib import Path

import pytest

from bertsmith.engine.device import Device
from bertsmith.examples.task_tables import TableConfig
from bertsmith.foundation.errors import InputError
from bertsmith.inference.classify import ClassifyPredictor
from bertsmith.recipes.finetuning import classify_rows
from bertsmith.recipes.finetuning.classify_rows import (
    RowResult,
    classify_file,
    classify_stream,
    refuse_unwritable,
    write_results,
)
from made_corpora import made_texts, made_tokenizer
from made_tasks import made_classifier, write_rows

PREDICTOR = ClassifyPredictor(made_classifier(("no", "yes")), made_tokenizer(), Device("cpu", "fp32"))


def _results(path: Path, config: TableConfig = TableConfig()) -> list[RowResult]:
    return list(classify_file(PREDICTOR, path, config)[1])


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl"])
def test_rows_come_back_in_order_over_several_windows(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classify_rows, "_ROWS_AT_ONCE", 7)
    texts = [text.replace(",", "") for text in made_texts(25, sentences=(1, 3))]
    path = tmp_path / name
    if name == "a.txt":
        path.write_text("".join(f"{text}\n" for text in texts))
    else:
        write_rows(path, [{"text": text} for text in texts])
    found = _results(path)
    assert [result.number for result in found] == list(range(1, 26))
    for result, expected in zip(found, PREDICTOR(texts), strict=True):
        assert result.prediction is not None
        assert result.prediction.text == expected.text
        assert result.prediction.scores == pytest.approx(expected.scores, abs=1e-5)


def test_a_bad_row_is_reported_by_its_number_and_the_others_go_on(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one"}\n{\n{"text": ""}\n{"text": 4}\n{"other": "x"}\n{"text": "six"}\n')
    found = _results(path)
    assert [result.fault is None for result in found] == [True, False, False, False, False, True]
    told = [str(result.fault) for result in found if result.fault is not None]
    assert "line 2: not JSON" in told[0]
    assert "must not be blank" in told[1]
    assert "line 4: text=4" in told[2]
    assert set(found[1].values) == {"row", "place", "error"}
    assert set(found[1].values["error"]) == {"rule", "received", "do"}
    assert found[1].values["row"] == 2


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
def test_half_a_surrogate_pair_is_reported_and_the_others_are_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"text": text}) for text in ("one", "two \ud83d", "three")))
    found = list(write_results(_results(path), tmp_path / name))
    assert [result.fault is None for result in found] == [True, False, True]
    assert "surrogate pair" in (tmp_path / name).read_text(encoding="utf-8")


def test_errors_name_the_options_of_classify(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.csv", [{"words": "one", "phrases": "two"}])
    with pytest.raises(InputError, match="Name it with --text-column"):
        classify_file(PREDICTOR, path)
    with pytest.raises(InputError, match="--pair-column must be one of"):
        classify_file(PREDICTOR, path, TableConfig(text="words", pair="phrase"))


def test_ragged_rows_of_a_separated_file_do_not_stop_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,id\none,1\ntwo,2,3\nthree,3\n")
    assert [result.fault is None for result in _results(path)] == [True, False, True]


def test_pairs_are_read_from_their_columns(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.csv", [{"sentence1": "one", "sentence2": "two"}])
    columns, results = classify_file(PREDICTOR, path)
    assert (columns.text, columns.pair) == ("sentence1", "sentence2")
    (found,) = results
    assert found.prediction == PREDICTOR([("one", "two")])[0]
    (single,) = _results(path, TableConfig(text="sentence2"))
    assert single.prediction == PREDICTOR(["two"])[0]


def test_a_stream_is_read_line_by_line() -> None:
    stream = io.BytesIO("the old boat\n\n\u6771\u4eac\r\nlast".encode() + b"\nbad \xff byte\n")
    found = list(classify_stream(PREDICTOR, stream))
    assert [result.prediction.text if result.prediction else None for result in found] == [
        *("the old boat", None, "\u6771\u4eac", "last", None)
    ]
    assert "0xFF" in str(found[4].fault)


def test_a_stream_is_answered_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classify_rows, "_ROWS_AT_ONCE", 2)
    read: list[int] = []

    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
            read.append(1)
            line = b"the old boat\n"
            buffer[: len(line)] = line
            return len(line)

    results = classify_stream(PREDICTOR, io.BufferedReader(Endless(), 13))
    assert next(results).number == 1
    assert len(read) < 10


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.tsv"])
def test_results_are_written_whole_or_not_at_all(tmp_path: Path, name: str) -> None:
    source = tmp_path / "a.txt"
    source.write_text("one\n\nthree, and more\n")
    path = tmp_path / name
    results = write_results(_results(source), path)
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


def test_an_interrupted_writing_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "a.txt"
    source.write_text("one\ntwo\n")
    results = write_results(_results(source), tmp_path / "out.jsonl")
    next(results)
    results.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_rows_of_which_none_can_be_used_are_refused_and_no_file_is_left(tmp_path: Path) -> None:
    source = tmp_path / "a.txt"
    source.write_text("\n \n")
    for rows, told in ((classify_file(PREDICTOR, source)[1], "2 rows"), (classify_stream(PREDICTOR, []), "0 rows")):
        with pytest.raises(InputError, match=f"{told}, and none can"):
            list(write_results(rows, tmp_path / "out.jsonl"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_place_that_cannot_be_written_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "out.csv").write_text("kept")
    with pytest.raises(InputError, match=r"--output must be a file\. .*folder"):
        refuse_unwritable(tmp_path / "folder")
    with pytest.raises(InputError, match=r"--output must be a file that can be written"):
        refuse_unwritable(tmp_path / f"{'x' * 300}.csv")
    refuse_unwritable(tmp_path / "out.csv")
    refuse_unwritable(tmp_path / "new.csv")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "out.csv"]
    assert (tmp_path / "out.csv").read_text() == "kept"

    def refused(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "touch", refused)
    with pytest.raises(InputError, match=r"can be written.*out\.csv \(Permission denied\)"):
        next(write_results([], tmp_path / "out.csv"))


def test_what_the_system_refuses_at_the_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "a.txt"
    source.write_text("one\n")

    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(InputError, match=r"can be written.*Permission denied"):
        list(write_results(_results(source), tmp_path / "out.jsonl"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_places_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--input must name a file"):
        classify_file(PREDICTOR, tmp_path / "none.csv")
    with pytest.raises(InputError, match="--output must lie in a folder that exists"):
        next(write_results([], tmp_path / "none" / "out.jsonl"))
