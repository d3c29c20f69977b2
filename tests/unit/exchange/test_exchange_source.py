"""What a person names as a source is told apart, and what cannot be one is refused."""

from pathlib import Path

import pytest

from bertsmith.exchange.source import HubName, HuggingFaceFolder, TensorFlowFolder, find_source, import_command
from bertsmith.foundation.errors import InputError


def with_files(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).touch()
    return folder


@pytest.mark.parametrize("name", ["google-bert/bert-base-cased", "bert-base-cased", "a/b.c_d-e", "0x/1"])
def test_what_is_no_path_is_a_name_on_the_hub(name: str) -> None:
    assert find_source(name) == HubName(name)


def test_a_path_that_exists_wins_over_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with_files(tmp_path / "bert-base-cased")
    assert find_source("bert-base-cased") == HuggingFaceFolder(Path("bert-base-cased"))


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin", "pytorch_model.bin.index.json"])
def test_a_folder_with_config_and_weights_is_a_hugging_face_folder(tmp_path: Path, weights: str) -> None:
    folder = with_files(tmp_path, "config.json", weights, "bert_config.json", "bert_model.ckpt.index")
    assert find_source(str(folder)) == HuggingFaceFolder(folder)


@pytest.mark.parametrize("config", ["bert_config.json", "albert_config.json"])
@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
def test_the_config_of_pytorch_weights_may_have_its_old_name(tmp_path: Path, config: str, weights: str) -> None:
    folder = with_files(tmp_path, config, weights, "vocab.txt")
    assert find_source(str(folder)) == HuggingFaceFolder(folder)


def test_a_home_folder_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for source in ("~nobody-of-this-name/bert", "~nobody-of-this-name"):
        with pytest.raises(InputError, match="must lead to a home folder"):
            find_source(source)
    monkeypatch.setenv("HOME", str(tmp_path))
    with_files(tmp_path / "bert", "config.json", "model.safetensors")
    assert find_source("~/bert") == HuggingFaceFolder(tmp_path / "bert")


@pytest.mark.parametrize(
    ("config", "prefix"), [("bert_config.json", "bert_model.ckpt"), ("albert_config.json", "model.ckpt-best")]
)
def test_a_folder_of_an_original_checkpoint_is_known_by_its_config(tmp_path: Path, config: str, prefix: str) -> None:
    folder = with_files(tmp_path, config, f"{prefix}.index", f"{prefix}.data-00000-of-00001", "vocab.txt")
    assert find_source(str(folder)) == TensorFlowFolder(folder, prefix, folder / config)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("bert_config.json",), "without NAME.ckpt.index"),
        (("bert_model.ckpt.index",), "without bert_config.json or albert_config.json"),
        (("bert_config.json", "a.ckpt.index", "b.ckpt.index"), "2 in"),
    ],
)
def test_an_original_checkpoint_lacking_a_part_or_in_doubt_is_refused(
    tmp_path: Path, names: tuple[str, ...], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        find_source(str(with_files(tmp_path, *names)))
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["bert.zip", "uncased_L-12_H-768_A-12.tar.gz", "model.TGZ", "nowhere/bert.tar"])
@pytest.mark.parametrize("there", [True, False])
def test_an_archive_is_refused_and_nothing_is_unpacked(tmp_path: Path, name: str, there: bool) -> None:
    path = tmp_path / name
    if there:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"PK\x03\x04")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="unpacks no archive"):
        find_source(str(path))
    assert sorted(tmp_path.rglob("*")) == before


def test_other_sources_are_refused_with_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(InputError, match=f"Give its folder: {tmp_path}"):
        find_source(str(tmp_path / "model.safetensors"))
    with pytest.raises(InputError, match="Give it so: google-bert/bert-base-cased"):
        find_source("https://a.hub/google-bert/bert-base-cased/tree/main")
    for neither in ("./nowhere", "/nowhere/at/all", "one/two/three", "a b", ""):
        with pytest.raises(InputError, match="SOURCE must be"):
            find_source(neither)


def test_the_command_that_fetches_a_model_is_told_for_what_can_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    fetch = "bertsmith import google-bert/bert-base-cased --out bert-base-cased"
    assert import_command("google-bert/bert-base-cased") == fetch
    assert import_command("bert-base-cased") == "bertsmith import bert-base-cased --out bert-base-cased"
    for path in ("runs/classifier", "./bert", "/tmp/bert", "a/b/c", "~/bert", "", "https://hub.example/a/b"):
        assert import_command(path) is None
