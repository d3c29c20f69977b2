"""A small text, a tiny model, and runs that were made of them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import TINY_MODEL, FinishedRun, Outcome, command, pretrained, small_text


@pytest.fixture(name="command", scope="session")
def _command() -> Callable[..., Outcome]:
    return command


@pytest.fixture(scope="session")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text file of some twenty kilobytes."""
    path = tmp_path_factory.mktemp("text") / "small.txt"
    path.write_text(small_text(), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `config.json` for fresh weights."""
    path = tmp_path_factory.mktemp("tiny") / "config.json"
    path.write_text(json.dumps(TINY_MODEL), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def mlm_run(text_file: Path, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """A finished run of the default objective."""
    return pretrained(text_file, tiny_model, tmp_path_factory.mktemp("mlm") / "run", "mlm")


@pytest.fixture(scope="session")
def pairs_run(text_file: Path, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """A finished run with next sentence prediction."""
    return pretrained(text_file, tiny_model, tmp_path_factory.mktemp("pairs") / "run", "mlm+nsp")


@pytest.fixture
def listing(tmp_path: Path) -> Callable[[], dict[str, bytes | None]]:
    """Everything under `tmp_path`, hidden names included: paths with contents, None for folders."""

    def look() -> dict[str, bytes | None]:
        return {
            str(path.relative_to(tmp_path)): path.read_bytes() if path.is_file() else None
            for path in sorted(tmp_path.rglob("*"))
        }

    return look
