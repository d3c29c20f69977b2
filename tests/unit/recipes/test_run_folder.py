"""The folder of a run."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.foundation.folder_lock import locked_folder
from bertsmith.recipes.comparison.options import CompareConfig
from bertsmith.recipes.comparison.run import compare_run
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.run import pretrain_run
from bertsmith.recipes.run_folder import RunConfig, RunFolder, is_file_of_run, remove_earlier
from bertsmith.recipes.settings import RuntimeConfig

KINDS: dict[str, RunConfig] = {
    "a pre-training": PretrainConfig(sources=("text",)),
    "a fine-tuning": FinetuneConfig(train="rows.csv", model="model"),
    "a comparison": CompareConfig(sources=("text",)),
}


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


@pytest.mark.parametrize("kind", KINDS)
def test_the_precision_in_which_a_run_began_stays(tmp_path: Path, kind: str) -> None:
    def asking(precision: str) -> Any:
        config: Any = KINDS[kind]
        return config.model_copy(update={"runtime": RuntimeConfig.parse({"precision": precision}, where="a test")})

    RunFolder(tmp_path, asking("auto")).write({})
    RunFolder(tmp_path, asking("bf16")).write({"precision": "fp32"})
    for precision in ("auto", "fp32"):
        RunFolder(tmp_path, asking(precision))
    with pytest.raises(InputError, match=r"runtime\.precision was fp32 and is now bf16"):
        RunFolder(tmp_path, asking("bf16"))


@pytest.mark.parametrize("wanted", KINDS)
@pytest.mark.parametrize("held", KINDS)
def test_only_a_run_of_the_same_kind_is_removed(held: str, wanted: str, tmp_path: Path) -> None:
    path = tmp_path / "run"
    RunFolder(path, KINDS[held]).write({"steps": 3})
    if held == wanted:
        inode = path.stat().st_ino
        remove_earlier(path, KINDS[wanted], ())
        # The folder stays, so that whoever holds it does so still.
        assert (list(path.iterdir()), path.stat().st_ino) == ([], inode)
        return
    before = (path / "run.toml").read_bytes()
    with pytest.raises(InputError, match=f"which holds {held}, for {wanted}"):
        remove_earlier(path, KINDS[wanted], ())
    with pytest.raises(InputError, match=f"which holds {held}, for {wanted}") as caught:
        RunFolder(path, KINDS[wanted])
    assert "--restart" not in str(caught.value)
    assert (path / "run.toml").read_bytes() == before


def test_settings_of_another_program_are_not_removed(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("[server]\nport = 80\n", encoding="utf-8")
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(InputError, match="which holds something else, for a pre-training"):
        remove_earlier(tmp_path, _config(), ())
    assert (tmp_path / "thesis.txt").is_file()


def _run_with_a_model(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    RunFolder(path, _config()).write({})
    (path / "model").mkdir()
    (path / "model" / "config.json").write_text("{}", encoding="utf-8")
    return path


@pytest.mark.parametrize("named", ["run", "run/model", "run/model/config.json", "beside/../run/model"])
def test_a_run_that_another_is_made_from_is_not_removed(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _run_with_a_model(tmp_path)
    (tmp_path / "beside").mkdir()
    monkeypatch.chdir(tmp_path)
    for given in (named, tmp_path / named):
        with pytest.raises(InputError, match="must not remove what the run is made from") as caught:
            remove_earlier(path, _config(), ["bert-toy", None, given])
        assert str(given) in str(caught.value)
    assert (path / "model" / "config.json").is_file()


@pytest.mark.skipif(os.name == "nt", reason="Windows gives links to administrators alone")
def test_links_hide_nothing_that_a_run_is_made_from(tmp_path: Path) -> None:
    path = _run_with_a_model(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "alias").symlink_to(path)
    (tmp_path / "inwards").symlink_to(path / "model")
    (path / "outwards").symlink_to(elsewhere)
    for given in (tmp_path / "alias" / "model", tmp_path / "inwards", path / "outwards"):
        with pytest.raises(InputError, match="must not remove"):
            remove_earlier(path, _config(), [given])
    assert (path / "model" / "config.json").is_file()


def test_what_stands_beside_a_run_is_no_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _run_with_a_model(tmp_path)
    (tmp_path / "run-text").mkdir()
    monkeypatch.chdir(path)
    # A folder around the run is not lost with it, and a preset's name is no file here.
    remove_earlier(path, _config(), [tmp_path / "run-text", tmp_path, "bert-toy", "model/../../run-text", None])
    monkeypatch.chdir(tmp_path)
    assert list(path.iterdir()) == []
    assert (tmp_path / "run-text").is_dir()


def test_a_removal_that_was_interrupted_can_be_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _run_with_a_model(tmp_path)

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            remove_earlier(path, _config(), ())
    remove_earlier(path, _config(), ())
    assert list(path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows gives links to administrators alone")
def test_what_a_link_in_a_run_leads_to_is_not_removed_with_it(tmp_path: Path) -> None:
    path = _run_with_a_model(tmp_path)
    (tmp_path / "large-disk").mkdir()
    (path / "checkpoints").symlink_to(tmp_path / "large-disk")
    (tmp_path / "alias").symlink_to(path)
    remove_earlier(tmp_path / "alias", _config(), ())
    assert list(path.iterdir()) == []
    assert (tmp_path / "large-disk").is_dir()


def test_a_refusal_leaves_nothing_in_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run = RunFolder(path, _config())

    def begin() -> None:
        with run.absent_if_refused():
            run.write({})
            raise InputError("a rule", "something", "Do otherwise.")

    with pytest.raises(InputError, match="a rule"):
        begin()
    assert list(path.iterdir()) == []


def test_a_refusal_leaves_a_seed_that_was_finished_before_it(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, _config())

    def begin() -> None:
        with run.absent_if_refused():
            run.write({})
            (tmp_path / "seed-0" / "model").mkdir(parents=True)
            (tmp_path / "seed-0" / "model" / "manifest.json").write_text("{}")
            raise InputError("a rule", "something", "Do otherwise.")

    with pytest.raises(InputError, match="a rule"):
        begin()
    assert {path.name for path in tmp_path.iterdir()} == {"run.toml", "seed-0"}


def test_the_files_of_a_run_are_known_by_their_names(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run", _config())
    places = (run.log, run.report, run.evaluation, run.tokenizer, run.corpus, run.checkpoints, run.model)
    assert not any(map(is_file_of_run, places))
    run.write({})
    assert all(map(is_file_of_run, (run.path / "run.toml", *places)))
    assert not is_file_of_run(run.path / "predictions.csv")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_in_which_another_process_works_is_refused_before_anything_else(
    kind: str, restart: bool, tmp_path: Path
) -> None:
    config: Any = KINDS[kind]  # Of which nothing is there that it names.
    run: Any = {"a pre-training": pretrain_run, "a fine-tuning": finetune_run, "a comparison": compare_run}[kind]
    RunFolder(tmp_path, config).write({})
    (tmp_path / "log.jsonl").write_text("{}\n")
    with locked_folder(tmp_path), pytest.raises(InputError, match="One process at a time"):
        run(config, tmp_path, restart=restart)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "run.toml"]
