"""The README's commands run, in its order, on a small text; the long ones are at least parsed."""

import inspect
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome
from typer.main import get_command

import bertsmith
from bertsmith.cli.main import app

Command = Callable[..., Outcome]
ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def _commands(language: str) -> list[list[str]]:
    lines = [line for block in _blocks(language) for line in block.splitlines() if line.startswith("bertsmith ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def test_the_tour_runs_from_its_first_command_to_its_last(
    command: Command, text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "news").mkdir()
    shutil.copy(text_file, tmp_path / "news" / "small.txt")
    commands = _commands("sh")
    assert len(commands) >= 10
    for arguments in commands:
        outcome = command(*arguments)
        assert outcome.code == 0, (arguments, outcome.err)
    for block in _blocks("python"):
        exec(compile(block, "README.md", "exec"), {})


@pytest.mark.parametrize("arguments", _commands("console"), ids=" ".join)
def test_the_options_of_the_long_commands_are_known(arguments: list[str]) -> None:
    group = get_command(app)
    context = group.make_context("bertsmith", list(arguments), resilient_parsing=True)
    name, parsed, rest = group.resolve_command(context, list(arguments))  # pyright: ignore[reportAttributeAccessIssue]
    assert parsed is not None
    parsed.make_context(name, rest)


def test_every_make_target_that_documents_name_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    for document in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / document).read_text(encoding="utf-8")
        named = set(re.findall(r"^make ([a-z]+)|`make ([a-z]+)`", text, re.MULTILINE))
        assert named
        assert {first or second for first, second in named} <= targets


def test_every_package_has_its_line_and_every_line_its_package() -> None:
    listed = set(re.findall(r"^  ([a-z_]+)/ ", README.split("src/bertsmith/\n")[1].split("tests/\n")[0], re.MULTILINE))
    package = Path(inspect.getfile(bertsmith)).parent
    assert listed == {path.parent.name for path in package.glob("*/__init__.py")}
