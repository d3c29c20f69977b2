"""The sums of a model's weights: of every file that holds some, as it is now."""

import hashlib
import json
from pathlib import Path

import pytest
from made_folders import change_weights, written

from bertsmith.folders.tensors import weight_sums
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import new_folder
from bertsmith.model import HeadsConfig
from bertsmith.tokenization import Tokenizer


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_weights_that_were_put_there_after_the_manifest_count(tmp_path: Path, tokenizer: Tokenizer) -> None:
    folder = tmp_path / "model"
    with new_folder(folder, seal={"kind": "model"}) as temporary:
        written(temporary, "bert", HeadsConfig(), tokenizer)
    before = weight_sums(folder)
    assert before == {"model.safetensors": _sum(folder / "model.safetensors")}
    change_weights(folder, lambda tensors: {name: value + 1 for name, value in tensors.items()})
    assert weight_sums(folder) == {"model.safetensors": _sum(folder / "model.safetensors")} != before


def test_heads_that_lie_apart_count_too(tmp_path: Path, tokenizer: Tokenizer) -> None:
    written(tmp_path, "modern", HeadsConfig(pooler=True), tokenizer)
    names = ("model.safetensors", "bertsmith_heads.safetensors")
    assert weight_sums(tmp_path) == {name: _sum(tmp_path / name) for name in names}


def test_of_shards_every_one_counts(tmp_path: Path) -> None:
    for name in ("a.safetensors", "b.safetensors"):
        (tmp_path / name).write_bytes(name.encode())
    index = {"weight_map": {"one": "a.safetensors", "two": "b.safetensors", "three": "a.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert weight_sums(tmp_path) == {name: _sum(tmp_path / name) for name in ("a.safetensors", "b.safetensors")}


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without weights"):
        weight_sums(tmp_path)
