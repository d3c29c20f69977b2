"""log.jsonl."""

import json
import math
from pathlib import Path

import pytest

from bertsmith.training.events import CheckpointWritten, Progress, Sampled, StepsDecided, Validated
from bertsmith.training.log import LogWriter, read_log


def _progress(step: int, losses: dict[str, float] | None = None) -> Progress:
    losses = losses or {"mlm": 1 / 3}
    return Progress(
        step=step,
        total_steps=40,
        epoch=step / 7,
        tokens=100 * step,
        loss=sum(losses.values()),
        losses=losses,
        learning_rate=1e-3 / 3,
        tokens_per_second=123.456,
        seconds_left=9.87,
    )


def _run(path: Path, first: int, last: int) -> None:
    writer = LogWriter(path, resumed_at=first - 1)
    for step in range(first, last + 1):
        writer(_progress(step))
        if step % 5 == 0:
            writer(Validated(step, {"loss": 2.5, "mlm_accuracy": 0.1}))
            writer(Sampled(step, ("a [cat?] sat  →  dog 9%",)))
            writer(CheckpointWritten(step, "somewhere"))


def test_a_resumed_log_has_each_step_once_and_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    _run(tmp_path / "whole.jsonl", 1, 20)
    cut = tmp_path / "cut.jsonl"
    # Killed at step 13, with a checkpoint at step 10.
    _run(cut, 1, 13)
    _run(cut, 11, 20)
    assert cut.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert [entry["step"] for entry in read_log(cut) if entry["kind"] == "train"] == list(range(1, 21))


def test_numbers_come_back_to_the_last_bit_and_terms_are_told_where_there_are_several(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "log.jsonl", resumed_at=0)
    writer(_progress(1))
    writer(_progress(2, {"mlm": 0.1, "nsp": 0.2}))
    writer(StepsDecided(2, 77))
    one, two, decision = read_log(tmp_path / "log.jsonl")
    assert (one["loss"], one["learning_rate"]) == (1 / 3, 1e-3 / 3)
    assert "mlm_loss" not in one
    assert (two["mlm_loss"], two["nsp_loss"], two["loss"]) == (0.1, 0.2, 0.1 + 0.2)
    assert decision == {"kind": "decision", "step": 2, "total_steps": 77}


def test_what_is_no_finite_number_is_null_in_the_file_and_no_number_again_when_read(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    LogWriter(path, resumed_at=0)(Validated(1, {"loss": math.nan, "accuracy": 0.5}))
    assert json.loads(path.read_text(), parse_constant=pytest.fail)["loss"] is None
    (entry,) = read_log(path)
    assert math.isnan(entry["loss"])
    assert entry["accuracy"] == 0.5


def test_a_last_line_that_was_cut_anywhere_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    writer = LogWriter(path, resumed_at=0)
    writer(_progress(1))
    first = path.read_bytes()
    # Cuts go through letters of several bytes too.
    writer(Sampled(1, ("→ 東京 →",)))
    second = path.read_bytes()[len(first) :]
    for cut in range(1, len(second) - 1):
        path.write_bytes(first + second[:cut])
        assert [entry["kind"] for entry in read_log(path)] == ["train"], cut
    LogWriter(path, resumed_at=1)(_progress(2))
    assert [entry["step"] for entry in read_log(path)] == [1, 2]


def test_a_new_run_begins_an_empty_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"kind": "train", "step": 9}\n', encoding="utf-8")
    LogWriter(path, resumed_at=0)
    assert path.read_bytes() == b""
    assert read_log(tmp_path / "none.jsonl") == []


def test_every_line_is_one_json_object_in_utf8(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    _run(path, 1, 5)
    lines = path.read_bytes().decode("utf-8").splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["train"] * 5 + ["validation", "samples"]
    assert "→" in lines[-1]
