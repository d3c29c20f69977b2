"""A model comes from the Hub with what is needed of it, once, and is what the Hub says it is."""

import json
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from made_foreign import change_weights, weights_of
from safetensors.torch import save_file

from bertsmith.exchange.pull import chosen_files, pull
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.import_model import import_model_run
from hub_server import HubServer

NAME = "somebody/bert"


def downloads(hub: HubServer) -> list[str]:
    """Paths of the files that were fetched since the last look."""
    fetched = [line.rsplit("/", 1)[-1] for line in hub.requests if line.startswith("GET /") and "/api/" not in line]
    hub.requests.clear()
    return sorted(fetched)


def test_a_pull_fetches_config_tokenizer_card_and_one_kind_of_weights(hub: HubServer, foreign: Path) -> None:
    torch.save(weights_of(foreign), foreign / "pytorch_model.bin")
    for name in ("tf_model.h5", "flax_model.msgpack", "training_args.bin", "README.md"):
        (foreign / name).write_bytes(b"something else")
    repository = hub.add(NAME, foreign)
    pulled = pull(NAME)
    expected = ["README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"]
    assert downloads(hub) == expected
    assert pulled.commit == repository.branches["main"]
    assert {path.name: path.read_bytes() for path in pulled.folder.iterdir()} == {
        name: (foreign / name).read_bytes() for name in expected
    }


def test_old_weights_are_fetched_where_there_are_no_safetensors(hub: HubServer, foreign: Path, tmp_path: Path) -> None:
    expected = weights_of(foreign)
    torch.save(expected, foreign / "pytorch_model.bin")
    (foreign / "model.safetensors").unlink()
    hub.add(NAME, foreign)
    found = import_model_run(NAME, tmp_path / "out")
    assert all(torch.equal(expected[name], value) for name, value in weights_of(found.folder).items())


@pytest.mark.parametrize(
    ("names", "weights"),
    [
        (("model.safetensors", "pytorch_model.bin"), ["model.safetensors"]),
        (
            ("model.safetensors.index.json", "model-00001-of-00001.safetensors", "pytorch_model.bin"),
            ["model.safetensors.index.json"],
        ),
        (("pytorch_model.bin.index.json", "pytorch_model-1-of-1.bin"), ["pytorch_model.bin.index.json"]),
    ],
)
def test_one_kind_of_weights_is_chosen(names: tuple[str, ...], weights: list[str]) -> None:
    assert chosen_files({"config.json", *names}, NAME) == ["config.json", *weights]


def in_shards(folder: Path, shards: tuple[str, str]) -> None:
    """Put the weights of a folder into two shards."""
    weights = weights_of(folder)
    weight_map = {name: shards[number % 2] for number, name in enumerate(weights)}
    for shard in shards:
        save_file({name: weights[name] for name, its in weight_map.items() if its == shard}, folder / shard)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}), encoding="utf-8")


def test_shards_are_those_that_the_index_names(hub: HubServer, foreign: Path, tmp_path: Path) -> None:
    expected = weights_of(foreign)
    in_shards(foreign, ("first.safetensors", "second.safetensors"))
    (foreign / "model-00001-of-00001.safetensors").write_bytes(b"of something else")
    hub.add(NAME, foreign)
    found = import_model_run(NAME, tmp_path / "out")
    assert all(torch.equal(expected[name], value) for name, value in weights_of(found.folder).items())
    fetched = downloads(hub)
    assert {"first.safetensors", "second.safetensors"} <= set(fetched)
    assert "model-00001-of-00001.safetensors" not in fetched
    cached = pull(NAME, offline=True).folder
    (cached / "second.safetensors").unlink()
    with pytest.raises(InputError, match="Offline, a model must be in the cache"):
        pull(NAME, offline=True)


@pytest.mark.parametrize(
    ("shard", "said"),
    [("../second.safetensors", "must lie in the folder of its index"), ("lost.safetensors", "must be there")],
)
def test_an_index_that_leads_elsewhere_is_refused(hub: HubServer, foreign: Path, shard: str, said: str) -> None:
    in_shards(foreign, ("first.safetensors", "second.safetensors"))
    index = foreign / "model.safetensors.index.json"
    index.write_text(index.read_text(encoding="utf-8").replace("second.safetensors", shard), encoding="utf-8")
    hub.add(NAME, foreign)
    with pytest.raises(InputError, match=said):
        pull(NAME)


@pytest.mark.parametrize("names", [{"config.json", "tf_model.h5"}, {"model.safetensors"}, set[str]()])
def test_a_model_without_config_or_weights_is_refused_with_what_it_has(names: set[str]) -> None:
    with pytest.raises(InputError) as caught:
        chosen_files(names, NAME)
    assert (sorted(names)[0] if names else "no file") in str(caught.value)


def test_a_revision_is_a_branch_a_tag_or_a_commit(hub: HubServer, foreign: Path) -> None:
    repository = hub.add(NAME, foreign)
    first = repository.branches["main"]
    change_weights(foreign, lambda weights: {name: value + 1 for name, value in weights.items()})
    second = repository.commit({path.name: path.read_bytes() for path in foreign.iterdir()}, "experiment")
    for revision, commit in ((None, first), ("main", first), ("experiment", second), (first, first), (second, second)):
        pulled = pull(NAME, revision=revision)
        assert pulled.commit == commit
        content = (pulled.folder / "model.safetensors").read_bytes()
        assert content == repository.commits[commit]["model.safetensors"]
    with pytest.raises(InputError, match="--revision must be a branch, a tag or a commit"):
        pull(NAME, revision="nowhere")


def test_a_second_pull_fetches_nothing_and_needs_no_network(
    hub: HubServer, foreign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(NAME, foreign)
    first = pull(NAME)
    downloads(hub)
    assert pull(NAME) == first
    assert downloads(hub) == []
    assert pull(NAME, offline=True) == first
    with monkeypatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        assert pull(NAME) == first
    assert hub.requests == []
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    silent = pull(NAME)
    assert silent.folder == first.folder
    assert "taken from the cache" in silent.notes[0]
    assert "127.0.0.1:9" in silent.notes[0]


def test_a_cache_of_ones_own_is_used(hub: HubServer, foreign: Path, tmp_path: Path) -> None:
    hub.add(NAME, foreign)
    pulled = pull(NAME, cache=tmp_path / "mine")
    assert pulled.folder.is_relative_to(tmp_path / "mine")
    assert not (tmp_path / "home" / "hub").exists()
    assert pull(NAME, cache=tmp_path / "mine", offline=True).folder == pulled.folder


def test_offline_without_a_whole_model_in_the_cache_is_refused(hub: HubServer, foreign: Path) -> None:
    with pytest.raises(InputError, match="Offline, a model must be in the cache"):
        pull(NAME, offline=True)
    hub.add(NAME, foreign)
    (pull(NAME).folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="Offline, a model must be in the cache"):
        pull(NAME, offline=True)
    assert (pull(NAME).folder / "model.safetensors").is_file()


def test_the_licence_that_the_model_has_there_stands_in_the_card_here(
    hub: HubServer, foreign: Path, tmp_path: Path
) -> None:
    (foreign / "README.md").write_text("---\nlicense: apache-2.0\nlanguage: cy\n---\n# Theirs\n", encoding="utf-8")
    repository = hub.add(NAME, foreign)
    found = import_model_run(NAME, tmp_path / "out")
    assert (found.source, found.revision) == (NAME, repository.branches["main"])
    card = (found.folder / "README.md").read_text(encoding="utf-8")
    assert "license: apache-2.0" in card
    assert "language: cy" in card
    assert f"| commit | {repository.branches['main']} |" in card
