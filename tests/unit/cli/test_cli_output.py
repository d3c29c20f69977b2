"""What results and events look like."""

import json
import sys

import pytest

from bertsmith.cli.output import CountDisplay, TrainingDisplay, result
from bertsmith.training.events import CheckpointWritten, Progress, RunStarted, Sampled, StepsDecided, Validated


def _progress(step: int) -> Progress:
    return Progress(
        step=step,
        total_steps=100,
        epoch=step / 50,
        tokens=step * 512,
        loss=3.25,
        losses={"mlm": 3.25},
        learning_rate=1e-3,
        tokens_per_second=12345.6,
        seconds_left=3725.0,
    )


def test_json_is_one_line_with_letters_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    result({"text": "القط", "loss": 0.5}, as_json=True)
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    assert "القط" in line
    assert json.loads(line) == {"text": "القط", "loss": 0.5}


def test_a_result_for_people_is_a_list_of_readable_values(capsys: pytest.CaptureFixture[str]) -> None:
    result(
        {"tokens": 12345, "loss": 0.123456, "whole": True, "labels": [], "train": {"documents": 7}, "model": None},
        as_json=False,
    )
    shown = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert {name.strip(): value.strip() for name, value in shown.items()} == {
        "tokens": "12,345",
        "loss": "0.1235",
        "whole": "yes",
        "labels": "–",
        "train": "documents 7",
        "model": "–",
    }


def test_training_is_shown_as_plain_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    display = TrainingDisplay()
    display(RunStarted(step=0, total_steps=100, resumed=False, precision="fp32", device="cpu"))
    for step in (10, 20, 100):
        display(_progress(step))
    display(StepsDecided(step=100, total_steps=90))
    display(Validated(step=100, metrics={"loss": 2.5, "mlm_loss": 2.5, "mlm_accuracy": 0.25, "mlm_count": 70}))
    display(Sampled(step=100, lines=("ذهب [القط?]",)))
    display(CheckpointWritten(step=100, folder="run/checkpoints/step-00000100"))
    shown = capsys.readouterr()
    assert shown.out == ""
    # The second of three quick progress events is left out, the last never.
    assert shown.err.splitlines() == [
        "training begins: 100 steps on cpu in fp32",
        "step 10/100  epoch 0.20  loss 3.250  12,346 tokens/s  1:02:05 left",
        "step 100/100  epoch 2.00  loss 3.250  12,346 tokens/s  1:02:05 left",
        "step 100: 90 steps fit the time",
        "step 100: validation loss 2.500, MLM accuracy 25.0%",
        "    ذهب [القط?]",
    ]


def test_training_is_shown_as_one_live_line_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    display = TrainingDisplay()
    display(_progress(10))
    display(_progress(20))
    before_validation = capsys.readouterr().err
    assert "\n" not in before_validation
    assert before_validation.count("\r") == 2
    display(Validated(step=20, metrics={"loss": 2.5}))
    assert capsys.readouterr().err == "\r\x1b[Kstep 20: validation loss 2.500\n"


def test_a_terminal_that_has_gone_does_not_end_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    display = TrainingDisplay()
    display(_progress(10))
    display(Validated(step=20, metrics={"loss": 2.5}))


def test_rows_are_counted_in_plain_lines_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([100.0, 105.0, 110.0, 111.0, 120.0, 140.0])
    monkeypatch.setattr("bertsmith.cli.output.time.monotonic", lambda: next(clock))
    display = CountDisplay(4000)
    for done in (500, 1000, 1100, 2000, 4100):
        display(done)
    display.close()
    assert capsys.readouterr().err.splitlines() == [
        "1,000 of about 4,000 rows  100 rows/s  0:30 left",
        "2,000 of about 4,000 rows  100 rows/s  0:20 left",
        "4,100 of about 4,100 rows  102 rows/s  0:00 left",
    ]


def test_what_is_slow_is_counted_to_a_tenth_and_a_total_that_is_known_is_no_guess(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([100.0, 110.0])
    monkeypatch.setattr("bertsmith.cli.output.time.monotonic", lambda: next(clock))
    CountDisplay(44, counted="steps", is_exact=True)(4)
    assert capsys.readouterr().err == "4 of 44 steps  0.4 steps/s  1:40 left\n"


def test_rows_are_counted_in_one_live_line_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    clock = iter([100.0, 101.0, 101.1, 102.0])
    monkeypatch.setattr("bertsmith.cli.output.time.monotonic", lambda: next(clock))
    display = CountDisplay(None)
    for done in (10, 11, 20):
        display(done)
    display.close()
    shown = capsys.readouterr().err
    assert "10 rows  10 rows/s" in shown
    assert "20 rows  10 rows/s" in shown
    assert "11 rows" not in shown
    assert "\n" not in shown
    assert shown.endswith("\r\x1b[K")
