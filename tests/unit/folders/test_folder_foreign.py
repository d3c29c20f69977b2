"""Folders from elsewhere are read where they can be and refused in plain words where they cannot."""

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from made_folders import (
    assert_equal_models,
    change_config,
    change_weights,
    from_elsewhere,
    small_config,
    varied_model,
    weights_of,
)
from safetensors.torch import save_file
from torch import Tensor

from bertsmith.folders.model_folder import ReadModel, read_model, read_tokenizer, write_model
from bertsmith.foundation.errors import InputError
from bertsmith.model import HeadsConfig
from bertsmith.tokenization import Tokenizer


def refusal(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_model(folder)
    return str(caught.value)


def without(*endings: str) -> Any:
    return lambda weights: {name: value for name, value in weights.items() if not name.endswith(endings)}


def with_renamed(rename: Any) -> Any:
    return lambda weights: {rename(name): value for name, value in weights.items()}


def unchanged(folder: Path, change: Any) -> ReadModel:
    """Read the folder before and after a change that must make no difference."""
    from_elsewhere(folder)
    before = read_model(folder)
    change_weights(folder, change)
    after = read_model(folder)
    assert_equal_models(after.model, before.model)
    assert after.model.config == before.model.config
    return after


@pytest.mark.parametrize("prefix", ["bert.embeddings.", "embeddings."])
def test_position_ids_may_be_there_or_not(folder: Path, prefix: str) -> None:
    read = unchanged(folder, lambda weights: weights | {f"{prefix}position_ids": torch.arange(24)[None]})
    assert read.notes == ()


def test_norms_may_have_their_old_names(folder: Path) -> None:
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}

    def rename(name: str) -> str:
        for new, ancient in old.items():
            name = name.replace(new, ancient)
        return name

    read = unchanged(folder, with_renamed(rename))
    assert sum(name.endswith(".gamma") for name in weights_of(folder)) == 6
    assert read.notes == ("12 weights have old names (gamma, beta): read as weight and bias",)


def test_a_projection_that_repeats_the_embedding_is_no_matter(folder: Path) -> None:
    read = unchanged(
        folder,
        lambda weights: (
            weights
            | {
                "cls.predictions.decoder.weight": weights["bert.embeddings.word_embeddings.weight"],
                "cls.predictions.decoder.bias": weights["cls.predictions.bias"],
            }
        ),
    )
    assert read.notes == ()


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
        ("cls.predictions.decoder.bias", "cls.predictions.bias"),
    ],
)
def test_tied_weights_that_disagree_are_refused(folder: Path, name: str, twin: str) -> None:
    change_weights(folder, lambda weights: weights | {name: weights[twin] + 1})
    message = refusal(folder)
    assert "Tied weights must agree" in message
    assert f"{name} differs from {twin}" in message
    assert "tie_word_embeddings" in message


def test_untied_weights_take_the_bias_of_the_projection(folder: Path) -> None:
    from_elsewhere(folder)
    change_config(folder, tie_word_embeddings=False)
    own_bias = torch.arange(40.0)
    projection = torch.randn(40, 12)
    change_weights(
        folder,
        lambda weights: (
            weights | {"cls.predictions.decoder.weight": projection, "cls.predictions.decoder.bias": own_bias}
        ),
    )
    head = read_model(folder).model.masked_language_model
    assert head is not None
    assert torch.equal(head.projection, projection)
    assert torch.equal(head.bias, own_bias)


def test_untied_weights_without_a_projection_are_refused(folder: Path) -> None:
    from_elsewhere(folder)
    change_config(folder, tie_word_embeddings=False)
    assert "1 missing" in (message := refusal(folder))
    assert "cls.predictions.decoder.weight" in message


def test_a_folder_without_pooler_gives_a_model_without_one(folder: Path) -> None:
    from_elsewhere(folder)
    change_weights(folder, without("pooler.dense.weight", "pooler.dense.bias"))
    read = read_model(folder)
    assert read.model.pooler is None
    assert read.model.next_sentence is None
    assert read.notes == ("not used: cls.seq_relationship.bias, cls.seq_relationship.weight",)


def test_heads_that_are_not_known_are_named(folder: Path) -> None:
    change_weights(folder, lambda weights: weights | {"classifier.weight": torch.ones(3, 12)})
    assert read_model(folder).notes == ("not used: classifier.weight",)


@pytest.mark.parametrize("ours", [True, False], ids=["from here", "from elsewhere"])
def test_missing_encoder_weights_are_refused_with_their_names(folder: Path, ours: bool) -> None:
    if not ours:
        from_elsewhere(folder)
    change_weights(folder, without("layer.1.attention.self.key.weight", "token_type_embeddings.weight"))
    message = refusal(folder)
    assert "must hold all weights of its encoder" in message
    assert "2 missing" in message
    assert "bert.encoder.layer.1.attention.self.key.weight" in message
    assert "bert.embeddings.token_type_embeddings.weight" in message


def test_a_renamed_prefix_is_refused_rather_than_left_random(folder: Path) -> None:
    from_elsewhere(folder)
    change_weights(folder, with_renamed(lambda name: name.replace("bert.", "model.backbone.")))
    assert "missing" in refusal(folder)


def test_a_layer_less_than_the_config_says_is_refused(folder: Path) -> None:
    change_config(folder, num_hidden_layers=3)
    assert "16 missing" in refusal(folder)


@pytest.mark.parametrize("field", ["vocab_size", "hidden_size", "intermediate_size", "max_position_embeddings"])
def test_sizes_that_contradict_the_config_are_refused_with_both(folder: Path, field: str) -> None:
    value = json.loads((folder / "config.json").read_text(encoding="utf-8"))[field]
    change_config(folder, **{field: 2 * value})
    message = refusal(folder)
    assert "must have the sizes that config.json says" in message
    assert str(value) in message
    assert str(2 * value) in message


@pytest.mark.parametrize("shape", [(12, 11), (11, 12), (12,), ()])
def test_one_of_several_parts_that_has_another_size_is_named(folder: Path, shape: tuple[int, ...]) -> None:
    name = "bert.encoder.layer.1.attention.self.key.weight"
    change_weights(folder, lambda weights: weights | {name: torch.ones(shape)})
    assert f"{name} of shape {shape}, expected (12, 12)" in refusal(folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_type": "robarta"}, "model_type 'robarta'"),
        ({"model_type": "robarta"}, "Did you mean roberta?"),
        ({"model_type": ["bert"]}, "model_type ['bert']"),
        ({"architectures": "BertModel"}, "architectures must be a list"),
        ({"architectures": [7]}, "architectures must be a list"),
        ({"model_type": "t5"}, "bert, roberta, albert, distilbert, modernbert, elmo"),
        ({"hidden_act": "swish"}, "hidden_act must be one of: gelu"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type 'relative_key'"),
        ({"model_type": "roberta", "is_decoder": True}, "must read in both directions"),
        ({"add_cross_attention": True}, "must read its own text alone"),
        ({"num_attention_heads": 5}, "num_attention_heads must divide hidden_size"),
        ({"hidden_size": "wide"}, "hidden_size"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"hidden_act": ["gelu"]}, "hidden_act must be one of: gelu"),
        ({"bertsmith": ["heads"]}, "bertsmith must be an object"),
        ({"bertsmith": {"heads": ["pooler"]}}, "bertsmith.heads must be an object"),
        ({"bertsmith": {"dropout": 0.1}}, "bertsmith.dropout must be an object"),
        ({"bertsmith": {"heads": {"poolr": True}}}, "poolr"),
        ({"bertsmith": None, "tie_word_embeddings": "perhaps"}, "tie_embeddings"),
        ({"bertsmith": None, "hidden_dropout_prob": 7}, "embeddings=7"),
    ],
)
def test_a_config_that_cannot_be_followed_is_refused(folder: Path, changes: dict[str, Any], said: str) -> None:
    change_config(folder, **changes)
    message = refusal(folder)
    assert said in message
    assert "config.json" in message


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", "\xff"])
def test_a_damaged_config_is_refused(folder: Path, content: str) -> None:
    (folder / "config.json").write_bytes(content.encode("latin-1"))
    assert "config.json must be a JSON object" in refusal(folder)


def test_a_folder_above_model_folders_lists_them(folder: Path, tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    for name in ("second", "first"):
        shutil.copytree(folder, above / name, ignore=shutil.ignore_patterns("above"))
    assert "Below it there is: first, second" in refusal(above)
    assert "config.json" in refusal(tmp_path / "nowhere")
    assert "config.json" in refusal(folder / "config.json")


def test_a_folder_without_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert "without weights" in refusal(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "bertsmith_heads.safetensors"])
@pytest.mark.parametrize("damage", ["cut", "empty", "text", "header"])
def test_broken_safetensors_are_refused_with_their_name(folder: Path, name: str, damage: str) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    broken = {"cut": whole[:-50], "empty": b"", "text": b"<html>not found</html>", "header": b"\xff" * 8 + whole[8:]}
    (folder / name).write_bytes(broken[damage])
    message = refusal(folder)
    assert "must be whole and hold tensors only" in message
    assert name in message


def as_old_file(folder: Path) -> Path:
    weights = weights_of(folder)
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    return folder / "pytorch_model.bin"


def test_an_old_file_gives_the_same_model(folder: Path) -> None:
    expected = read_model(folder).model
    as_old_file(folder)
    assert_equal_models(read_model(folder).model, expected)


class Trap:
    """What a stranger could put among the weights: code that runs when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("layout", ["torch", "old torch", "bare pickle"])
@pytest.mark.parametrize("shard", [False, True])
def test_a_pickle_that_would_run_code_is_refused_and_nothing_runs(
    folder: Path, tmp_path: Path, layout: str, shard: bool
) -> None:
    marker = tmp_path / "marker"
    old_file = as_old_file(folder)
    trapped = {**torch.load(old_file, weights_only=True), "trap": Trap(marker)}
    if layout == "bare pickle":
        old_file.write_bytes(pickle.dumps(trapped, protocol=2))
    else:
        torch.save(trapped, old_file, _use_new_zipfile_serialization=layout == "torch")
    if shard:
        old_file.rename(folder / "part.bin")
        index = {"weight_map": {"trap": "part.bin"}}
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert "must be whole and hold tensors only" in refusal(folder)
    assert not marker.exists()
    with open(folder / "part.bin" if shard else old_file, "rb") as file:
        if layout == "bare pickle":  # The trap is a real one.
            pickle.load(file)
            assert marker.exists()


@pytest.mark.parametrize("content", [b"", b"abc", b"PK\x03\x04 cut"])
def test_a_broken_old_file_is_refused(folder: Path, content: bytes) -> None:
    as_old_file(folder).write_bytes(content)
    assert "pytorch_model.bin" in refusal(folder)


@pytest.mark.parametrize("content", [[torch.ones(2)], torch.ones(2), {}])
def test_an_old_file_of_something_else_is_refused(folder: Path, content: object) -> None:
    torch.save(content, as_old_file(folder))
    assert "Received" in refusal(folder)


def in_shards(folder: Path, weights: dict[str, Tensor], shard_of: Any) -> None:
    weight_map = {name: shard_of(number) for number, name in enumerate(weights)}
    for shard in set(weight_map.values()):
        part = {name: value for name, value in weights.items() if weight_map[name] == shard}
        save_file(part, folder / shard)
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def test_weights_in_shards_give_the_same_model_and_a_lost_shard_is_named(folder: Path) -> None:
    expected, weights = read_model(folder).model, weights_of(folder)
    (folder / "model.safetensors").unlink()
    in_shards(folder, weights, lambda number: f"model-{number % 3}.safetensors")
    assert_equal_models(read_model(folder).model, expected)
    (folder / "model-1.safetensors").unlink()
    assert "model-1.safetensors" in refusal(folder)


@pytest.mark.parametrize("shard", ["../outside.safetensors", "{outside}", "..\\outside.safetensors", "..", ""])
def test_a_shard_outside_the_folder_is_refused(tmp_path: Path, tokenizer: Tokenizer, shard: str) -> None:
    folder, outside = tmp_path / "model", tmp_path / "outside.safetensors"
    folder.mkdir()
    write_model(folder, varied_model(small_config(HeadsConfig())), tokenizer)
    weights = weights_of(folder)
    (folder / "model.safetensors").rename(outside)
    # One of the same name inside shows that the name is refused, and not quietly taken for another.
    shutil.copy(outside, folder / "outside.safetensors")
    index = {"weight_map": dict.fromkeys(weights, shard.format(outside=outside))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert "A shard must lie in the folder of its index" in refusal(folder)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"weight_map": ["a"]}'])
def test_a_damaged_index_is_refused(folder: Path, content: str) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(content, encoding="utf-8")
    assert "model.safetensors.index.json" in refusal(folder)


def test_a_tokenizer_larger_than_the_embeddings_is_refused_with_both_numbers(folder: Path) -> None:
    assert read_tokenizer(folder, vocab_size=36).vocab_size == 36
    with pytest.raises(InputError, match="36 entries, 35 embeddings"):
        read_tokenizer(folder, vocab_size=35)
