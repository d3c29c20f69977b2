"""Folders from elsewhere become model folders, and what was not as it is written today is said."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from made_foreign import Weights, change_config, change_weights, weights_of, write_foreign
from safetensors.torch import save_file

from bertsmith.exchange.reading import open_folder
from bertsmith.folders import tensors
from bertsmith.folders.model_folder import read_model, read_tokenizer
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import folder_faults
from bertsmith.recipes.import_model import import_model_run
from made_corpora import made_tokenizer


def assert_same_model(folder: Path, expected: Weights) -> None:
    found = weights_of(folder)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


def refusal(source: Path, out: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_model_run(source, out)
    assert sorted(path.name for path in out.parent.iterdir() if "out" in path.name) == []
    return str(caught.value)


def test_an_import_is_a_whole_model_folder_with_its_tokenizer_and_its_origin(foreign: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in foreign.iterdir()}
    found = import_model_run(foreign, tmp_path / "out")
    assert (found.source, found.revision, found.family, found.notes) == ("foreign", None, "bert", ())
    assert folder_faults(found.folder) == []
    assert_same_model(found.folder, weights_of(foreign))
    tokenizer = read_tokenizer(found.folder, vocab_size=found.vocab_size)
    assert tokenizer.fingerprint == made_tokenizer().fingerprint
    manifest = json.loads((found.folder / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["kind"], manifest["imported"]["source"]) == ("model", "foreign")
    assert "| source | foreign |" in (found.folder / "README.md").read_text(encoding="utf-8")
    assert {path.name: path.read_bytes() for path in foreign.iterdir()} == before


def test_the_card_holds_no_path_of_this_machine(foreign: Path, tmp_path: Path) -> None:
    found = import_model_run(foreign, tmp_path / "out")
    for name in ("README.md", "manifest.json", "config.json"):
        assert str(tmp_path) not in (found.folder / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("layout", ["bin", "bin shards", "safetensors shards"])
def test_every_layout_of_weights_gives_the_same_model(foreign: Path, tmp_path: Path, layout: str) -> None:
    expected = weights_of(foreign)
    (foreign / "model.safetensors").unlink()
    if layout == "bin":
        torch.save(expected, foreign / "pytorch_model.bin")
    else:
        whole = "pytorch_model.bin" if layout == "bin shards" else "model.safetensors"
        stem, ending = whole.split(".")
        parts: dict[str, Weights] = {}
        for number, (name, value) in enumerate(expected.items()):
            parts.setdefault(f"{stem}-0000{number % 2 + 1}-of-00002.{ending}", {})[name] = value
        for shard, weights in parts.items():
            (torch.save if ending == "bin" else save_file)(weights, foreign / shard)  # pyright: ignore[reportArgumentType]
        index = {"weight_map": {name: shard for shard, weights in parts.items() for name in weights}}
        (foreign / f"{whole}.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert_same_model(import_model_run(foreign, tmp_path / "out").folder, expected)


def test_old_names_of_norms_are_renamed_and_said(foreign: Path, tmp_path: Path) -> None:
    expected = weights_of(foreign)

    def aged(name: str) -> str:
        return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")

    change_weights(foreign, lambda weights: {aged(name): value for name, value in weights.items()})
    found = import_model_run(foreign, tmp_path / "out")
    assert_same_model(found.folder, expected)
    assert found.notes == ("12 weights have old names (gamma, beta): read as weight and bias",)


def test_position_ids_among_the_weights_or_not_give_the_same_model(foreign: Path, tmp_path: Path) -> None:
    expected = weights_of(foreign)
    without = import_model_run(foreign, tmp_path / "without")
    change_weights(foreign, lambda weights: weights | {"bert.embeddings.position_ids": torch.arange(24)[None]})
    found = import_model_run(foreign, tmp_path / "with")
    assert_same_model(found.folder, expected)
    assert_same_model(without.folder, expected)
    assert without.notes == ()
    assert found.notes == ("position_ids lay among the weights and were left out: they only count positions",)


def test_a_missing_pooler_is_told_loudly(foreign: Path, tmp_path: Path) -> None:
    change_weights(
        foreign,
        lambda weights: {name: v for name, v in weights.items() if "pooler" not in name and "seq_rel" not in name},
    )
    (note,) = import_model_run(foreign, tmp_path / "out").notes
    assert note.startswith("ATTENTION, NO POOLER")
    assert "random weights" in note
    assert read_model(tmp_path / "out").model.pooler is None


def test_a_padded_vocabulary_is_kept_and_said(tmp_path: Path) -> None:
    foreign = write_foreign(tmp_path / "padded", extra_rows=5)
    found = import_model_run(foreign, tmp_path / "out")
    assert_same_model(found.folder, weights_of(foreign))
    (note,) = found.notes
    assert note.startswith(f"padded vocabulary: {found.vocab_size:,} embeddings for {found.vocab_size - 5:,} tokens")


def test_a_config_without_a_family_is_read_as_bert_and_said(foreign: Path, tmp_path: Path) -> None:
    change_config(foreign, model_type=None)
    found = import_model_run(foreign, tmp_path / "out")
    assert found.notes == ("config.json names no model_type: read as bert",)
    assert json.loads((found.folder / "config.json").read_text(encoding="utf-8"))["model_type"] == "bert"


@pytest.mark.parametrize("old_name", ["bert_config.json", "albert_config.json"])
def test_a_config_of_the_old_name_is_read(foreign: Path, tmp_path: Path, old_name: str) -> None:
    expected = weights_of(foreign)
    change_config(foreign, model_type=None, architectures=None)
    (foreign / "config.json").rename(foreign / old_name)
    torch.save(expected, foreign / "pytorch_model.bin")
    (foreign / "model.safetensors").unlink()
    found = import_model_run(foreign, tmp_path / "out")
    assert found.notes == (f"{old_name} names no model_type: read as bert",)
    assert_same_model(found.folder, expected)


def test_every_file_of_weights_is_read_once(foreign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    load = tensors.load_file

    def counting(path: Path) -> Weights:
        read.append(path.name)
        return load(path)

    monkeypatch.setattr(tensors, "load_file", counting)
    change_weights(foreign, lambda weights: {name: value.half() for name, value in weights.items()})
    assert open_folder(foreign).notes == ("weights of float16 are written as float32",)
    assert read == ["model.safetensors"]


def test_a_cache_below_a_home_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must lead to a home folder"):
        import_model_run("somebody/bert", tmp_path / "out", cache="~nobody-of-this-name/cache")


def test_weights_of_another_width_and_unused_ones_are_said(foreign: Path, tmp_path: Path) -> None:
    change_weights(
        foreign, lambda weights: {n: v.half() for n, v in weights.items()} | {"span_head.weight": torch.ones(3, 12)}
    )
    notes = import_model_run(foreign, tmp_path / "out").notes
    assert notes == ("weights of float16 are written as float32", "not used: span_head.weight")
    assert {value.dtype for value in weights_of(tmp_path / "out").values()} == {torch.float32}


def test_a_checkpoint_whose_encoder_is_mostly_missing_is_refused_with_the_list(foreign: Path, tmp_path: Path) -> None:
    change_weights(foreign, lambda weights: {f"module.{name}": value for name, value in weights.items()})
    message = refusal(foreign, tmp_path / "out")
    assert "must hold all weights of its encoder" in message
    assert "missing" in message
    assert "embeddings.word_embeddings.weight" in message


def test_tied_weights_that_disagree_are_refused(foreign: Path, tmp_path: Path) -> None:
    change_weights(
        foreign,
        lambda weights: (
            weights | {"cls.predictions.decoder.weight": weights["bert.embeddings.word_embeddings.weight"] + 1}
        ),
    )
    assert "Tied weights must agree" in refusal(foreign, tmp_path / "out")


class Trap:
    """What a stranger could put among the weights: code that runs when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


def test_a_pickle_that_would_run_code_is_refused_and_runs_nothing(foreign: Path, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    torch.save({**weights_of(foreign), "trap": Trap(marker)}, foreign / "pytorch_model.bin")
    (foreign / "model.safetensors").unlink()
    assert "must be whole and hold tensors only" in refusal(foreign, tmp_path / "out")
    assert not marker.exists()
    torch.load(foreign / "pytorch_model.bin", weights_only=False)
    assert marker.exists()


def test_a_folder_without_a_tokenizer_is_refused(foreign: Path, tmp_path: Path) -> None:
    for name in ("tokenizer.json", "vocab.txt"):
        (foreign / name).unlink(missing_ok=True)
    assert "A tokenizer folder holds" in refusal(foreign, tmp_path / "out")


def test_an_out_that_holds_something_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    out = tmp_path / "kept"
    out.mkdir()
    (out / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="--out must be a new or empty folder"):
        import_model_run("nobody/nothing", out)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]


def test_a_revision_of_a_folder_is_refused(foreign: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--revision belongs to a name on the Hub"):
        import_model_run(foreign, tmp_path / "out", revision="main")


def test_opening_leaves_the_model_in_evaluation_mode(foreign: Path) -> None:
    assert not open_folder(foreign).model.training
