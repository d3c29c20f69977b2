"""The command line as a process: help, weight, encodings, pipes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bertsmith import __version__
from bertsmith.cli import main

COMMANDS = (
    ("demo",),
    ("pretrain",),
    ("prepare",),
    ("tokenizer", "train"),
    ("tokenizer", "report"),
    ("finetune",),
    ("fill",),
    ("attention",),
    ("classify",),
    ("regress",),
    ("multilabel",),
    ("tag",),
    ("answer",),
    ("choose",),
    ("embed",),
    ("evaluate",),
    ("compare",),
    ("plan",),
    ("profile", "pretrain"),
    ("profile", "finetune"),
    ("import",),
    ("push",),
    ("export",),
    ("info",),
    ("verify",),
)
HEAVY = ("torch", "tokenizers", "numpy", "pydantic", "pyarrow", "transformers", "onnx", "onnxruntime")


def _python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, check=False, timeout=60, env=os.environ | environment
    )


def _call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["bertsmith", *arguments])
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        main.run()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize(
    "code", ["import bertsmith", "import sys; sys.argv = ['bertsmith', '--help']; from bertsmith.cli.main import run"]
)
def test_neither_the_import_nor_the_help_loads_anything_heavy(code: str) -> None:
    ending = "\ntry: run()\nexcept SystemExit: pass" if "run" in code else ""
    told = f"\nimport sys; print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    found = _python("-c", code + ending + told)
    assert found.returncode == 0
    assert found.stderr.decode().strip() == "[]"


def test_every_command_of_the_help_is_listed_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _call(monkeypatch, "--help") == 0
    listed = set(re.findall(r"^│ ([a-z]+) ", capsys.readouterr().out, re.MULTILINE))
    assert listed == {names[0] for names in COMMANDS}


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_has_an_example(
    names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _call(monkeypatch, *names, "--help") == 0
    assert f"Example: bertsmith {' '.join(names)} " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("pretrian", "x"), "pretrain"),
        (("pretrain", "x"), "--out"),
        (("fill", "model"), "texts"),
        (("prepare", "x", "--outt", "y"), "--out"),
        (("pretrain", "x", "--out", "y", "--steps", "many"), "--steps"),
    ],
)
def test_wrong_usage_ends_with_2_and_names_what_is_wrong(
    arguments: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _call(monkeypatch, *arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert told in shown.err


def test_the_module_is_the_command_line() -> None:
    found = _python("-m", "bertsmith", "--version")
    assert found.returncode == 0
    assert found.stdout.decode().strip() == __version__
    assert found.stderr == b""


def test_text_is_utf8_whatever_the_terminal_says(tmp_path: Path) -> None:
    found = _python("-m", "bertsmith", "info", str(tmp_path / "مجلد"), PYTHONIOENCODING="cp1252")
    assert found.returncode == 2
    assert "مجلد" in found.stderr.decode("utf-8")


@pytest.mark.skipif(os.name == "nt", reason="a closed pipe is no error number there")
@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_reader_that_has_gone_is_met_in_silence(closed: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | {closed: writing}
    arguments = ["--help"] if closed == "stdout" else ["info", "nowhere"]
    run = subprocess.run([sys.executable, "-m", "bertsmith", *arguments], check=False, timeout=60, **streams)
    os.close(writing)
    assert run.returncode == (0 if closed == "stdout" else 2)
    assert not (run.stderr if closed == "stdout" else run.stdout)


def test_a_command_that_ends_does_not_look_for_garbage_among_what_it_loaded() -> None:
    code = (
        "import atexit, gc, sys; atexit.register(lambda: print(gc.get_freeze_count() > 0)); "
        "from bertsmith.cli.main import run; sys.argv = ['bertsmith', '--version']; run()"
    )
    assert _python("-c", code).stdout.split()[-1] == b"True"
