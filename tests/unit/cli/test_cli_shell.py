"""Commands that are shown to be tried: they can be typed as they stand."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from bertsmith.cli import finetune_commands, shell
from bertsmith.recipes.results import Run


def _tried(folder: Path, shown: pytest.CaptureFixture[str], **error: str) -> list[str]:
    error |= {"label": "a", "predicted": "b", "place": "line 1"}
    evaluation: dict[str, Any] = {"rows": 9, "worst_errors": [error]}
    run = Run(folder, folder / "model", 1, 1, {"accuracy": 0.5}, None, False, evaluation, {})
    finetune_commands._show_run(run, "classify", as_json=False)
    return shlex.split(shown.readouterr().err.splitlines()[-1].removeprefix("try it: "))


def test_a_folder_with_a_space_is_one_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "my runs"
    assert _tried(folder, capsys, text="a boat") == ["bertsmith", "classify", str(folder / "model"), "a boat"]


@pytest.mark.parametrize("text", ["-5 degrees", "--help", "a $ sign", ""])
def test_a_text_that_would_be_read_otherwise_is_passed_over(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _tried(tmp_path, capsys, text=text)[3:] == ["Some text of yours."]


def test_windows_knows_double_quotes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = Path("my runs/a"), Path("runs\\a")
    monkeypatch.setattr(shell.os, "name", "nt")
    assert [shell.typed(folder) for folder in folders] == [f'"{folders[0]}"', "runs\\a"]
