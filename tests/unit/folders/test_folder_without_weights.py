"""What a model folder is, told without reading its weights."""

import json
from pathlib import Path

import pytest
import torch
from made_folders import KINDS, LABELS, UNUSUAL_HEADS, change_weights, from_elsewhere, named, weights_of, written
from safetensors.torch import save_file

from bertsmith.folders.model_folder import ReadModel, read_model
from bertsmith.foundation.errors import InputError
from bertsmith.model import HeadsConfig
from bertsmith.tokenization import Tokenizer

CLASSIFIER = HeadsConfig(masked_language_model=False, pooler=True, labels=LABELS)
WEIGHTS = "model.safetensors"


def _agrees(folder: Path) -> ReadModel:
    """Read both ways, with one result but for the values."""
    bare, whole = read_model(folder, weights=False), read_model(folder)
    assert bare.model.config == whole.model.config
    assert (bare.notes, bare.differences) == (whole.notes, whole.differences)
    assert all(weight.is_meta for weight in bare.model.state_dict().values())
    shapes = [{name: value.shape for name, value in read.model.state_dict().items()} for read in (bare, whole)]
    assert shapes[0] == shapes[1]
    return bare


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("heads", UNUSUAL_HEADS, ids=named)
def test_names_and_shapes_tell_the_model(kind: str, heads: HeadsConfig, tmp_path: Path, tokenizer: Tokenizer) -> None:
    written(tmp_path, kind, heads, tokenizer)
    _agrees(tmp_path)


@pytest.mark.parametrize("kind", ["bert", "roberta", "modern"])
def test_a_folder_from_elsewhere_shows_its_heads_without_its_weights(
    kind: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    written(tmp_path, kind, CLASSIFIER if kind == "bert" else HeadsConfig(), tokenizer)
    from_elsewhere(tmp_path)
    change_weights(tmp_path, lambda weights: {name: value.half() for name, value in weights.items()})
    found = _agrees(tmp_path)
    assert found.differences
    assert found.model.config.heads.labels == (LABELS if kind == "bert" else ())


@pytest.mark.parametrize("archive", [True, False])
def test_an_old_file_or_shards_tell_as_much(archive: bool, folder: Path) -> None:
    before = read_model(folder, weights=False).model.config
    weights = weights_of(folder)
    (folder / WEIGHTS).unlink()
    torch.save(weights, folder / "pytorch_model.bin", _use_new_zipfile_serialization=archive)
    assert _agrees(folder).model.config == before
    (folder / "pytorch_model.bin").unlink()
    parts = {"a.safetensors": sorted(weights)[::2], "b.safetensors": sorted(weights)[1::2]}
    for file, names in parts.items():
        save_file({name: weights[name] for name in names}, folder / file)
    index = {"weight_map": {name: file for file, names in parts.items() for name in names}}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert _agrees(folder).model.config == before


def test_what_is_missing_cut_off_or_of_another_size_is_refused_all_the_same(folder: Path) -> None:
    name = "bert.pooler.dense.weight"
    weights = weights_of(folder)
    change_weights(folder, lambda weights: weights | {name: weights[name][:3]})
    with pytest.raises(InputError, match=r"must have the sizes that config\.json says"):
        read_model(folder, weights=False)
    save_file({key: value for key, value in weights.items() if "layer.1" not in key}, folder / WEIGHTS)
    with pytest.raises(InputError, match="must hold all weights"):
        read_model(folder, weights=False)
    save_file(weights, folder / WEIGHTS)
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-5])
    with pytest.raises(InputError, match="must be whole"):
        read_model(folder, weights=False)
