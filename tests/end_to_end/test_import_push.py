"""`bertsmith import` and `bertsmith push` as people type them, against a Hub on this machine."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import FinishedRun, Outcome, refused
from typer.main import get_command

import bertsmith
from bertsmith.cli.main import app
from hub_server import OWNER, TOKEN, UPLOAD_WARNING, HubServer, serving, stand_in_for_the_hub

Command = Callable[..., Outcome]
pytestmark = pytest.mark.filterwarnings(UPLOAD_WARNING)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with serving() as server:
        stand_in_for_the_hub(server, monkeypatch, tmp_path / "home")
        yield server


def test_a_model_goes_to_the_hub_and_comes_back_and_fills_masks_the_same(
    hub: HubServer, command: Command, mlm_run: FinishedRun, tmp_path: Path
) -> None:
    pushed = command("push", mlm_run.folder, f"{OWNER}/bert", "--license", "apache-2.0", "--language", "en", "--json")
    assert pushed.code == 0, pushed.err
    (done,) = pushed.objects
    assert done["name"] == f"{OWNER}/bert"
    assert done["url"] == f"{hub.endpoint}/{OWNER}/bert"
    assert hub.files(done["name"])["model.safetensors"] == (mlm_run.model / "model.safetensors").read_bytes()
    back = command("import", done["name"], "--out", tmp_path / "back", "--json")
    assert back.code == 0, back.err
    (found,) = back.objects
    assert (found["source"], found["revision"], found["family"]) == (done["name"], done["commit"], "bert")
    assert command("verify", tmp_path / "back").code == 0
    fill = ("fill", "The [MASK] is near the river.", "--json")
    first, second = (command(fill[0], folder, *fill[1:]) for folder in (mlm_run.model, tmp_path / "back"))
    assert first.code == 0, first.err
    assert first.objects == second.objects


def test_a_private_branch_and_a_revision(
    hub: HubServer, command: Command, mlm_run: FinishedRun, tmp_path: Path
) -> None:
    pushed = command("push", mlm_run.model, "bert", "--private", "--branch", "experiment")
    assert pushed.code == 0, pushed.err
    assert "license: unknown" in pushed.err
    assert hub.models[f"{OWNER}/bert"].private
    refused(command("import", f"{OWNER}/bert", "--out", tmp_path / "main"), "must hold config.json", ".gitattributes")
    outcome = command("import", f"{OWNER}/bert", "--out", tmp_path / "back", "--revision", "experiment")
    assert outcome.code == 0, outcome.err
    again = command("import", f"{OWNER}/bert", "--out", tmp_path / "again", "--revision", "experiment", "--offline")
    assert again.code == 0, again.err
    weights = (tmp_path / "again" / "model.safetensors").read_bytes()
    assert weights == (mlm_run.model / "model.safetensors").read_bytes()


def test_an_export_in_the_model_s_folder_is_neither_pushed_nor_in_the_way(
    hub: HubServer, command: Command, mlm_run: FinishedRun, tmp_path: Path
) -> None:
    model = shutil.copytree(mlm_run.model, tmp_path / "model")
    assert command("export", model).code == 0
    pushed = command("push", model, f"{OWNER}/with-graph", "--json")
    assert pushed.code == 0, pushed.err
    there = hub.files(f"{OWNER}/with-graph")
    assert "model.safetensors" in there
    assert not [name for name in there if name.startswith("onnx")]


def test_notes_go_to_standard_error_and_into_the_result(command: Command, mlm_run: FinishedRun, tmp_path: Path) -> None:
    outcome = command("import", mlm_run.model, "--out", tmp_path / "out", "--json")
    assert outcome.code == 0, outcome.err
    (found,) = outcome.objects
    assert any("NO POOLER" in note for note in found["notes"])
    assert all(f"note: {note}" in outcome.err for note in found["notes"])


def test_what_cannot_be_imported_or_pushed_exits_with_2_and_changes_nothing(
    hub: HubServer, command: Command, mlm_run: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bert.zip").write_bytes(b"PK\x03\x04")
    before = sorted(tmp_path.rglob("*"))
    out = ("--out", tmp_path / "out")
    refused(command("import", tmp_path / "bert.zip", *out), "unpacks no archive")
    refused(command("import", "nobody/nothing", *out), "nobody/nothing", "HTTP 404")
    refused(command("import", "nobody/nothing", "--offline", *out), "must be in the cache")
    refused(command("import", tmp_path / "nowhere", *out), "SOURCE must be")
    refused(command("import", mlm_run.model, "--out", mlm_run.model), "--out must be a new or empty folder")
    refused(command("push", tmp_path / "nowhere", "bert"), "A model folder must exist")
    refused(command("push", mlm_run.folder / "tokenizer", "bert"), "a tokenizer")
    monkeypatch.delenv("HF_TOKEN")
    refused(command("push", mlm_run.model, "bert"), "needs a token", "HF_TOKEN")
    assert sorted(path for path in tmp_path.rglob("*") if "home" not in path.parts) == before
    assert hub.models == {}


def test_the_environment_names_hub_token_and_cache(
    hub: HubServer, command: Command, mlm_run: FinishedRun, tmp_path: Path
) -> None:
    """In a process of its own, as a person runs it: nothing of the library is set from here but its environment."""
    assert command("push", mlm_run.model, "bert", "--private").code == 0
    source = Path(bertsmith.__file__).parents[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")} | {
        "HF_ENDPOINT": hub.endpoint,
        "HF_TOKEN": TOKEN,
        "HF_HOME": str(tmp_path / "hf"),
        "PYTHONPATH": str(source),
        "OMP_NUM_THREADS": "1",
    }
    asked = [sys.executable, "-m", "bertsmith", "import", f"{OWNER}/bert", "--out", str(tmp_path / "out"), "--json"]
    ended = subprocess.run(asked, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["source"] == f"{OWNER}/bert"
    lines = ended.stderr.splitlines()
    assert lines[0] == f"import of {OWNER}/bert begins"
    assert all(line.startswith("note: ") for line in lines[1:])
    assert (tmp_path / "hf" / "hub").is_dir()
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == (mlm_run.model / "model.safetensors").read_bytes()


def _documented() -> list[list[str]]:
    guide = (Path(__file__).parents[2] / "docs" / "coming-from-elsewhere.md").read_text(encoding="utf-8")
    return [shlex.split(line)[1:] for line in guide.splitlines() if line.startswith("bertsmith ")]


@pytest.mark.parametrize("arguments", _documented(), ids=" ".join)
def test_the_commands_of_the_guide_are_known(arguments: list[str]) -> None:
    group = get_command(app)
    context = group.make_context("bertsmith", list(arguments), resilient_parsing=True)
    name, parsed, rest = group.resolve_command(context, list(arguments))  # pyright: ignore[reportAttributeAccessIssue]
    assert parsed is not None
    parsed.make_context(name, rest)


@pytest.mark.parametrize("verb", ["import", "push"])
def test_help_shows_an_example(command: Command, verb: str) -> None:
    outcome = command(verb, "--help")
    assert outcome.code == 0
    assert f"Example: bertsmith {verb} " in outcome.out
