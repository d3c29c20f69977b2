"""The folder of a run."""

from pathlib import Path

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.run_folder import RunFolder


def _config(**values: object) -> PretrainConfig:
    return PretrainConfig.parse({"sources": ["text"], **values}, where="a test")


@pytest.mark.parametrize("make", [False, True])
def test_a_new_or_empty_folder_is_taken(tmp_path: Path, make: bool) -> None:
    path = tmp_path / "run"
    if make:
        path.mkdir()
    run = RunFolder(path, _config())
    assert run.record() == {}
    assert not run.is_finished
    run.write({"precision": "fp32"})
    assert RunFolder(path, _config()).record() == {"precision": "fp32"}


def test_a_folder_that_holds_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(InputError, match=r"new or empty folder.*holds something else"):
        RunFolder(tmp_path, _config())
    assert (tmp_path / "thesis.txt").read_text(encoding="utf-8") == "years of work"


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="--out must be a folder"):
        RunFolder(tmp_path / "run", _config())


def test_what_an_interrupted_write_left_is_no_content(tmp_path: Path) -> None:
    (tmp_path / ".partial-12345678-run.toml").write_text("half", encoding="utf-8")
    RunFolder(tmp_path, _config()).write({})
    RunFolder(tmp_path, _config())
    assert [path.name for path in tmp_path.iterdir()] == ["run.toml"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_length": 64}, "max_length was 128 and is now 64"),
        ({"training": {"seed": 1}}, "training.seed was 0 and is now 1"),
        ({"length": {"steps": 5}}, "length.steps was not set and is now 5"),
        ({"model": {"dropout": {"embeddings": 0.1}}}, "model.dropout.embeddings was not set and is now 0.1"),
    ],
)
def test_another_run_is_refused_and_the_difference_told(
    tmp_path: Path, values: dict[str, object], message: str
) -> None:
    RunFolder(tmp_path, _config()).write({})
    before = (tmp_path / "run.toml").read_bytes()
    with pytest.raises(InputError, match=message) as caught:
        RunFolder(tmp_path, _config(**values))
    assert "--restart" in str(caught.value)
    assert (tmp_path / "run.toml").read_bytes() == before


def test_where_it_runs_may_change(tmp_path: Path) -> None:
    RunFolder(tmp_path, _config()).write({})
    RunFolder(tmp_path, _config(runtime={"device": "cpu", "threads": 3}))
