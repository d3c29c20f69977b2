"""A model folder goes to the Hub in one commit, whole and with its card."""

import json
from pathlib import Path
from typing import NoReturn

import pytest

from bertsmith.exchange import push as module
from bertsmith.exchange.push import Destination, push
from bertsmith.folders.model_folder import write_model
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import folder_faults, new_folder, read_manifest, sha256, write_json
from bertsmith.model import new_model
from bertsmith.recipes.import_model import import_model_run
from bertsmith.recipes.push import push_run
from hub_server import OWNER, TOKEN, UPLOAD_WARNING, HubServer, stand_in_for_the_hub
from made_corpora import made_model, made_tokenizer

pytestmark = pytest.mark.filterwarnings(UPLOAD_WARNING)


@pytest.fixture
def ours(foreign: Path, tmp_path: Path) -> Path:
    """A finished model folder."""
    return import_model_run(foreign, tmp_path / "ours").folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_push_is_one_commit_with_every_file_byte_for_byte(hub: HubServer, ours: Path) -> None:
    done = push(ours, Destination(f"{OWNER}/bert"))
    repository = hub.models[f"{OWNER}/bert"]
    assert len(repository.commits) == 2
    assert done.commit == repository.branches["main"]
    assert (done.name, done.url) == (f"{OWNER}/bert", f"{hub.endpoint}/{OWNER}/bert")
    uploaded = hub.files(done.name)
    uploaded.pop(".gitattributes")
    assert uploaded == contents(ours)
    assert not repository.private


def test_what_was_pushed_comes_back_the_same(hub: HubServer, ours: Path, tmp_path: Path) -> None:
    done = push(ours, Destination("bert"))
    back = import_model_run(done.name, tmp_path / "back")
    assert done.name == f"{OWNER}/bert"
    assert back.revision == done.commit
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        assert (back.folder / name).read_bytes() == (ours / name).read_bytes(), name


def test_heads_of_an_earlier_push_go_and_what_else_lies_there_stays(hub: HubServer, ours: Path, tmp_path: Path) -> None:
    first = tmp_path / "first"
    tokenizer = made_tokenizer()
    model = made_model(tokenizer.vocab_size, pairs=True)
    heads = model.config.heads.model_copy(update={"mlm_head": "linear"})
    with new_folder(first, seal={"kind": "model"}) as temporary:
        write_model(temporary, new_model(model.config.model_copy(update={"heads": heads}), seed=1), tokenizer)
    push(first, Destination("bert"))
    repository = hub.models[f"{OWNER}/bert"]
    assert "bertsmith_heads.safetensors" in hub.files(f"{OWNER}/bert")
    others = {"notes.txt": b"kept", "merges.txt": b"of another tokenizer"}
    repository.commit(hub.files(f"{OWNER}/bert") | others)
    commits = len(repository.commits)
    push(ours, Destination("bert"))
    assert len(repository.commits) == commits + 1
    assert set(hub.files(f"{OWNER}/bert")) == {*contents(ours), ".gitattributes", "notes.txt"}
    back = import_model_run(f"{OWNER}/bert", tmp_path / "back")
    assert back.notes == ()
    assert (back.folder / "model.safetensors").read_bytes() == (ours / "model.safetensors").read_bytes()


def test_the_pipeline_is_told_by_the_config_alone(ours: Path, monkeypatch: pytest.MonkeyPatch, hub: HubServer) -> None:
    (ours / "README.md").unlink()
    manifest = read_manifest(ours)
    del manifest["files"]["README.md"]
    write_json(ours / "manifest.json", manifest)

    def refuse(folder: Path) -> NoReturn:
        raise AssertionError(f"the weights of {folder} were read")

    monkeypatch.setattr(module, "read_model", refuse)
    done = push(ours, Destination("bert"))
    assert b"pipeline_tag: fill-mask" in hub.files(done.name)["README.md"]


def test_only_what_the_manifest_lists_is_uploaded(hub: HubServer, ours: Path) -> None:
    (ours / "password.txt").write_text("secret", encoding="utf-8")
    push(ours, Destination("bert"))
    assert "password.txt" not in hub.files(f"{OWNER}/bert")


def test_a_card_is_completed_on_the_way_and_the_manifest_with_it(hub: HubServer, ours: Path, tmp_path: Path) -> None:
    before = contents(ours)
    done = push(ours, Destination("bert"), license_id="mit", language="en")
    assert done.license == "mit"
    assert contents(ours) == before
    there = tmp_path / "there"
    there.mkdir()
    for name, content in hub.files(done.name).items():
        (there / name).write_bytes(content)
    assert folder_faults(there) == []
    card = (there / "README.md").read_text(encoding="utf-8")
    assert "license: mit" in card
    assert "language: en" in card
    assert "| source | foreign |" in card
    assert sha256(there / "README.md") != sha256(ours / "README.md")


def test_a_branch_is_made_where_it_is_missing(hub: HubServer, ours: Path) -> None:
    for _ in range(2):
        done = push_run(ours, "bert", revision="experiment")
    assert hub.models[done.name].branches["experiment"] == done.commit
    assert set(hub.files(done.name, "main")) == {".gitattributes"}
    assert set(contents(ours)) <= set(hub.files(done.name, "experiment"))


def test_a_private_push_makes_a_private_model_and_never_lands_in_a_public_one(hub: HubServer, ours: Path) -> None:
    push(ours, Destination("bert", private=True))
    assert hub.models[f"{OWNER}/bert"].private
    push(ours, Destination("open"))
    before = dict(hub.models[f"{OWNER}/open"].commits)
    with pytest.raises(InputError, match="which is public"):
        push(ours, Destination("open", private=True))
    assert hub.models[f"{OWNER}/open"].commits == before


def test_a_push_without_a_token_says_how_to_give_one(
    hub: HubServer, ours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in_for_the_hub(hub, monkeypatch, tmp_path / "elsewhere", token=None)
    with pytest.raises(InputError, match="needs a token") as caught:
        push(ours, Destination("bert"))
    assert "HF_TOKEN" in str(caught.value)
    assert "hf auth login" in str(caught.value)
    assert hub.requests == []
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "token").write_text(TOKEN, encoding="utf-8")
    push(ours, Destination("bert"))


def test_a_token_that_may_not_write_is_told(hub: HubServer, ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of-somebody-else")
    with pytest.raises(InputError, match="HTTP 401 with the token given"):
        push(ours, Destination("bert"))
    assert hub.models == {}


def test_a_folder_that_is_no_whole_model_folder_is_refused_before_anything_is_sent(
    hub: HubServer, ours: Path, foreign: Path, tmp_path: Path
) -> None:
    def refusal(folder: Path) -> str:
        with pytest.raises(InputError) as caught:
            push(folder, Destination("bert"))
        return str(caught.value)

    assert "no folder" in refusal(tmp_path / "nowhere")
    assert f"bertsmith import {foreign}" in refusal(foreign)
    with new_folder(tmp_path / "tokenizer", seal={"kind": "tokenizer"}) as temporary:
        (temporary / "tokenizer.json").touch()
    assert "a tokenizer" in refusal(tmp_path / "tokenizer")
    with open(ours / "model.safetensors", "r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x01")
    assert "model.safetensors: content differs" in refusal(ours)
    assert hub.requests == []


def test_a_name_that_the_hub_does_not_know_as_one_is_refused(hub: HubServer, ours: Path) -> None:
    with pytest.raises(InputError, match="A name on the Hub is owner/name"):
        push(ours, Destination("not a name"))


def test_a_push_offline_is_refused(hub: HubServer, ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="A push needs a network"):
        push(ours, Destination("bert"))


def test_the_uploaded_manifest_is_that_of_the_folder(hub: HubServer, ours: Path) -> None:
    done = push(ours, Destination("bert"))
    manifest = json.loads(hub.files(done.name)["manifest.json"])
    assert manifest["kind"] == "model"
    assert set(manifest["files"]) == set(contents(ours)) - {"manifest.json"}
