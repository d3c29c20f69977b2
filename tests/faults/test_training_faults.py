"""Runs that are stopped, killed, given again or given with other settings, through the command line."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bertsmith.cli.main import _exit_code
from made_corpora import made_texts

STEPS = 24
CLOCK_FIELDS = ("tokens_per_second", "seconds_left")
_DEADLINE_SECONDS = 100


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n\n".join(made_texts(60)), encoding="utf-8")
    return path


def _arguments(text: Path, out: Path, objective: str, *more: str) -> list[str]:
    settings = {
        "model.dropout.embeddings": 0.1,
        "model.dropout.attention_weights": 0.1,
        "model.dropout.attention_output": 0.1,
        "model.dropout.feed_forward": 0.1,
        "tokenizer.vocab_size": 260,
        "corpus.validation_fraction": 0.2,
        "corpus.workers": 1,
        "training.log_every_steps": 1,
        "training.validate_every_share": 0.2,
        "training.validation_tokens": 600,
    }
    options = f"--model bert-toy --objective {objective} --max-length 32 --batch-tokens 256 --steps {STEPS}"
    runtime = "--threads 1 --device cpu --precision fp32"
    assignments = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    return ["pretrain", str(text), "--out", str(out), *options.split(), *runtime.split(), *assignments, *more]


@pytest.fixture
def bertsmith(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], int]:
    """The command line in this process; returns its exit code."""

    def run(arguments: list[str]) -> int:
        monkeypatch.setattr(sys, "argv", ["bertsmith", *arguments])
        return _exit_code()

    return run


@pytest.fixture(scope="module")
def whole_runs(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Uninterrupted runs by objective, each made once."""
    made: dict[str, Path] = {}

    def run(objective: str) -> Path:
        if objective not in made:
            out = tmp_path_factory.mktemp("whole") / "run"
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sys, "argv", ["bertsmith", *_arguments(text, out, objective)])
                assert _exit_code() == 0
            made[objective] = out
        return made[objective]

    return run


def _begun(arguments: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bertsmith", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def _wait_for_step(process: subprocess.Popen[str], log: Path, step: int) -> None:
    """Return as soon as the log tells of a step."""
    give_up_at = time.monotonic() + _DEADLINE_SECONDS
    while time.monotonic() < give_up_at and process.poll() is None:
        if log.is_file() and re.search(rb'"train", "step": %d,' % step, log.read_bytes()):
            return
        time.sleep(0.002)
    process.kill()
    pytest.fail(f"no step {step}: {process.communicate()[1]}")


def _log(run: Path) -> list[dict[str, Any]]:
    lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [{key: value for key, value in json.loads(line).items() if key not in CLOCK_FIELDS} for line in lines]


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _assert_same_run(run: Path, whole: Path) -> None:
    assert _files(run / "model").keys() == _files(whole / "model").keys()
    assert (run / "model/model.safetensors").read_bytes() == (whole / "model/model.safetensors").read_bytes()
    assert _log(run) == _log(whole)
    assert [entry["step"] for entry in _log(run) if entry["kind"] == "train"] == list(range(1, STEPS + 1))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals that ask to stop")
@pytest.mark.parametrize(("objective", "asked"), [("mlm", signal.SIGTERM), ("mlm+nsp", signal.SIGINT)])
def test_a_stopped_run_given_again_is_the_same_to_the_bit(
    objective: str,
    asked: signal.Signals,
    text: Path,
    tmp_path: Path,
    bertsmith: Callable[[list[str]], int],
    whole_runs: Callable[[str], Path],
) -> None:
    out = tmp_path / "run"
    arguments = _arguments(text, out, objective)
    process = _begun(arguments)
    _wait_for_step(process, out / "log.jsonl", 7)
    process.send_signal(asked)
    message = process.communicate(timeout=_DEADLINE_SECONDS)[1]
    assert process.returncode == 3, message
    stopped_at = re.search(rf"Stopped at step (\d+) of {STEPS}\. The same command goes on", message)
    assert stopped_at is not None, message
    assert (out / "checkpoints" / f"step-{int(stopped_at[1]):08d}").is_dir()
    assert not (out / "model").exists()
    assert bertsmith(arguments) == 0
    _assert_same_run(out, whole_runs(objective))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_run_given_again_is_the_same_to_the_bit(
    text: Path, tmp_path: Path, bertsmith: Callable[[list[str]], int], whole_runs: Callable[[str], Path]
) -> None:
    out = tmp_path / "run"
    arguments = _arguments(text, out, "mlm")
    process = _begun(arguments)
    # Checkpoints stand after every fifth step.
    _wait_for_step(process, out / "log.jsonl", 8)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert (out / "checkpoints/step-00000005").is_dir()
    assert bertsmith(arguments) == 0
    _assert_same_run(out, whole_runs("mlm"))


def test_a_finished_run_given_again_says_so_and_changes_nothing(
    text: Path,
    bertsmith: Callable[[list[str]], int],
    whole_runs: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = whole_runs("mlm")
    before = _files(out)
    capsys.readouterr()
    assert bertsmith(_arguments(text, out, "mlm")) == 0
    shown = capsys.readouterr()
    assert "is finished" in shown.err
    assert "--restart" in shown.err
    assert _files(out) == before


def test_another_setting_for_the_same_folder_is_refused_and_named(
    text: Path,
    bertsmith: Callable[[list[str]], int],
    whole_runs: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = whole_runs("mlm")
    before = _files(out)
    assert bertsmith(_arguments(text, out, "mlm", "--set", "training.optimizer.learning_rate=0.5")) == 2
    assert "training.optimizer.learning_rate was 0.005 and is now 0.5" in capsys.readouterr().err
    assert _files(out) == before


def test_a_checkpoint_that_was_damaged_costs_only_the_steps_after_the_one_before(
    text: Path,
    tmp_path: Path,
    bertsmith: Callable[[list[str]], int],
    whole_runs: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "run"
    arguments = _arguments(text, out, "mlm")
    with monkeypatch.context() as patch:
        # The disk is full when the model is to be written, so that the run stays unfinished.
        patch.setattr("bertsmith.recipes.pretraining.run.write_model", _no_room)
        assert bertsmith(arguments) == 2
    newest = max((out / "checkpoints").iterdir())
    assert newest.name == f"step-{STEPS:08d}"
    weights = newest / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert bertsmith(arguments) == 0
    _assert_same_run(out, whole_runs("mlm"))


def _no_room(*arguments: object) -> None:
    raise OSError(28, "No space left on device")
