"""Folders of every family: written and read, by whose names they are told apart, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from made_folders import (
    KINDS,
    LABELS,
    UNUSUAL_HEADS,
    assert_equal_models,
    change_config,
    change_weights,
    from_elsewhere,
    named,
    small_config,
    varied_model,
    weights_of,
    written,
)

from bertsmith.folders.config_json import architecture
from bertsmith.folders.formats import published_class
from bertsmith.folders.model_folder import read_config, read_model, write_model
from bertsmith.foundation.errors import InputError
from bertsmith.model import Dropout, HeadsConfig
from bertsmith.tokenization import Tokenizer

CLASSIFIER = HeadsConfig(masked_language_model=False, pooler=True, labels=LABELS)


def refusal(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_model(folder)
    return str(caught.value)


@pytest.mark.parametrize("heads", UNUSUAL_HEADS, ids=named)
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_any_family_is_read_as_it_was_written(
    kind: str, heads: HeadsConfig, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    model = written(tmp_path, kind, heads, tokenizer)
    read = read_model(tmp_path)
    assert read.notes == ()
    assert read.model.config == model.config
    assert_equal_models(read.model, model)
    name = architecture(model.config)
    assert read_config(tmp_path)["architectures"] == [name]
    # What no class computes lies apart, under the name of the plain encoder's class.
    apart = (tmp_path / "bertsmith_heads.safetensors").is_file()
    unknown_pooler = heads.pooler and kind in ("distilbert", "modern")
    assert apart == (published_class(model.config) is None or unknown_pooler)
    encoder_classes = ("BertModel", "RobertaModel", "AlbertModel", "DistilBertModel", "ModernBertModel")
    assert published_class(model.config) is not None or name in encoder_classes


@pytest.mark.parametrize("heads", [HeadsConfig(pooler=True), CLASSIFIER], ids=named)
@pytest.mark.parametrize("kind", ["distilbert", "modern"])
def test_a_pooler_that_a_class_has_no_place_for_lies_apart(
    kind: str, heads: HeadsConfig, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    model = written(tmp_path, kind, heads, tokenizer)
    opened = getattr(transformers, architecture(model.config) or "")
    _, loading = opened.from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]


@pytest.mark.parametrize("heads", [HeadsConfig(), HeadsConfig(masked_language_model=False)], ids=named)
@pytest.mark.parametrize("kind", KINDS)
def test_the_family_is_inferred_where_the_config_names_none(
    kind: str, heads: HeadsConfig, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    model = written(tmp_path, kind, heads, tokenizer)
    told = read_config(tmp_path)["model_type"]
    change_config(tmp_path, model_type=None)
    read = read_model(tmp_path)
    assert read.notes == (f"config.json names no model_type: read as {told}",)
    assert read.model.config == model.config
    assert_equal_models(read.model, model)


def test_without_family_and_class_groups_tell_an_albert_and_the_rest_is_bert(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    for kind in ("albert", "bert"):
        model = written(tmp_path / kind, kind, HeadsConfig(), tokenizer)
        change_config(tmp_path / kind, model_type=None, architectures=None)
        assert read_model(tmp_path / kind).model.config == model.config


FOREIGN = [(one, other) for one in KINDS for other in KINDS if one != other and {one, other} != {"bert", "causal"}]


@pytest.mark.parametrize(("weights", "claimed"), FOREIGN)
def test_weights_of_another_family_are_refused_with_their_names(
    weights: str, claimed: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    written(tmp_path / "one", weights, HeadsConfig(), tokenizer)
    written(tmp_path / "other", claimed, HeadsConfig(), tokenizer)
    (tmp_path / "one" / "model.safetensors").replace(tmp_path / "other" / "model.safetensors")
    message = refusal(tmp_path / "other")
    assert "must hold all weights of its encoder and heads" in message
    assert "missing in" in message
    assert ".weight" in message
    assert "another family" in message


@pytest.mark.parametrize("kind", ["roberta", "albert", "distilbert", "modern"])
def test_a_renamed_prefix_is_refused_rather_than_left_random(kind: str, tmp_path: Path, tokenizer: Tokenizer) -> None:
    written(tmp_path, kind, HeadsConfig(), tokenizer)
    from_elsewhere(tmp_path)
    prefix = next(name.split(".")[0] for name in weights_of(tmp_path) if "embeddings" in name)
    change_weights(
        tmp_path, lambda weights: {name.replace(f"{prefix}.", "backbone."): value for name, value in weights.items()}
    )
    assert "missing in" in refusal(tmp_path)


@pytest.mark.parametrize("kind", ["roberta", "albert", "distilbert"])
def test_position_ids_may_be_there_or_not_in_every_family(kind: str, tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = written(tmp_path, kind, HeadsConfig(), tokenizer)
    from_elsewhere(tmp_path)
    for prefix in (f"{kind}.embeddings.", "embeddings."):
        buffers = {f"{prefix}position_ids": torch.arange(24)[None]}
        change_weights(tmp_path, lambda weights, extra=buffers: weights | extra)
        read = read_model(tmp_path)
        assert read.notes == ()
        assert_equal_models(read.model, model)


@pytest.mark.parametrize(
    ("kind", "name", "twin"),
    [
        ("roberta", "lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"),
        ("roberta", "lm_head.decoder.bias", "lm_head.bias"),
        ("albert", "predictions.decoder.weight", "albert.embeddings.word_embeddings.weight"),
        ("albert", "predictions.decoder.bias", "predictions.bias"),
        ("distilbert", "vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight"),
        ("modern", "decoder.weight", "model.embeddings.tok_embeddings.weight"),
    ],
)
def test_tied_weights_may_be_there_twice_if_they_agree(
    kind: str, name: str, twin: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    model = written(tmp_path, kind, HeadsConfig(), tokenizer)
    change_weights(tmp_path, lambda weights: weights | {name: weights[twin]})
    assert read_model(tmp_path).notes == ()
    assert_equal_models(read_model(tmp_path).model, model)
    change_weights(tmp_path, lambda weights: weights | {name: weights[twin] + 1})
    message = refusal(tmp_path)
    assert "Tied weights must agree" in message
    assert f"{name} differs from {twin}" in message


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        ("albert", {"num_hidden_groups": 3}, "num_hidden_groups must divide num_hidden_layers"),
        ("albert", {"inner_group_num": 2}, "inner_group_num 2"),
        ("albert", {"num_attention_heads": 5}, "num_attention_heads must divide hidden_size"),
        ("roberta", {"is_decoder": True}, "must read in both directions"),
        ("roberta", {"max_position_embeddings": 2}, "must exceed the 2 rows"),
        ("roberta", {"position_embedding_type": "relative_key"}, "must be absolute"),
        ("distilbert", {"activation": "swish"}, "activation must be one of"),
        ("distilbert", {"n_heads": 5}, "num_attention_heads must divide hidden_size"),
        ("modern", {"norm_bias": True}, "norm_bias"),
        ("modern", {"attention_bias": True}, "attention_bias"),
        ("modern", {"decoder_bias": False}, "must have a bias"),
        ("modern", {"classifier_activation": "relu"}, "one activation"),
        ("modern", {"local_attention": 7}, "window"),
        ("modern", {"global_attn_every_n_layers": 0, "layer_types": None}, "global_every"),
        ("modern", {"layer_types": ["sliding_attention", "full_attention"]}, "equal distances"),
        ("modern", {"layer_types": 3}, "equal distances"),
        ("modern", {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "must not be scaled"),
        ("modern", {"rope_parameters": "none"}, "rope_parameters"),
    ],
)
def test_a_config_of_a_family_that_cannot_be_followed_is_refused(
    kind: str, changes: dict[str, Any], said: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    written(tmp_path, kind, HeadsConfig(), tokenizer)
    change_config(tmp_path, **changes)
    message = refusal(tmp_path)
    assert said in message
    assert "config.json" in message


def test_a_modernbert_of_an_older_program_says_its_thetas_and_distances_flat(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    model = written(tmp_path, "modern", HeadsConfig(), tokenizer)
    change_config(tmp_path, layer_types=None, rope_parameters=None, global_rope_theta=160000.0, local_rope_theta=10000)
    assert read_model(tmp_path).model.config == model.config


def test_layer_types_count_where_they_contradict_the_distance(tmp_path: Path, tokenizer: Tokenizer) -> None:
    written(tmp_path, "modern", HeadsConfig(), tokenizer)
    change_config(tmp_path, layer_types=["full_attention", "full_attention"])
    rotary = read_model(tmp_path).model.config.encoder.rotary
    assert rotary is not None
    assert rotary.global_every == 1


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert"])
def test_an_encoder_without_its_pooler_is_read_without_one_and_gives_no_classifier(
    kind: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    written(tmp_path, kind, HeadsConfig(masked_language_model=False, pooler=True), tokenizer)
    from_elsewhere(tmp_path)
    change_weights(
        tmp_path, lambda weights: {name: value for name, value in weights.items() if not name.startswith("pooler")}
    )
    read = read_model(tmp_path)
    assert read.model.pooler is None
    assert read.model.config.heads == HeadsConfig(
        masked_language_model=False, classifier_dropout=read.model.config.heads.classifier_dropout
    )


@pytest.mark.parametrize(
    ("id2label", "labels"),
    [
        ({"0": "LABEL_0", "1": "LABEL_1"}, ("LABEL_0", "LABEL_1", "LABEL_2")),
        (None, ("LABEL_0", "LABEL_1", "LABEL_2")),
        ({"2": "c", "0": "a", "1": "b"}, ("a", "b", "c")),
        ({"0": "a", "1": "b"}, None),
        ({"0": "a", "1": "b", "2": "c", "3": "d"}, None),
        ({"first": "a", "1": "b", "2": "c"}, None),
        (["a", "b", "c"], None),
        ({"0": "a", "1": "a", "2": "c"}, None),
    ],
)
def test_labels_are_those_of_the_config_in_their_order_or_refused(
    id2label: Any, labels: tuple[str, ...] | None, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    written(tmp_path, "bert", CLASSIFIER, tokenizer)
    from_elsewhere(tmp_path)
    change_config(tmp_path, id2label=id2label)
    if labels is None:
        assert "label" in refusal(tmp_path)
    else:
        assert read_model(tmp_path).model.config.heads.labels == labels


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_of_each_family_is_written_and_read(kind: str, tmp_path: Path, tokenizer: Tokenizer) -> None:
    rates = {"distilbert": Dropout(embeddings=0.2, attention_weights=0.3, feed_forward=0.2)}
    rates["modern"] = Dropout(embeddings=0.2, attention_weights=0.3, attention_output=0.3, feed_forward=0.1)
    usual = Dropout(embeddings=0.2, attention_weights=0.3, attention_output=0.2, feed_forward=0.2)
    dropout = rates.get(kind, usual)
    config = small_config(HeadsConfig(), **KINDS[kind] | {"dropout": dropout})
    write_model(tmp_path, varied_model(config), tokenizer)
    from_elsewhere(tmp_path)
    assert read_model(tmp_path).model.config.encoder.dropout == dropout


@pytest.mark.parametrize(
    ("kind", "entry"), [("bert", "hidden_dropout_prob"), ("distilbert", "attention_dropout"), ("modern", "mlp_dropout")]
)
def test_a_rate_that_somebody_changed_in_the_config_counts(
    kind: str, entry: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    uneven = Dropout(embeddings=0.1, attention_weights=0.2, feed_forward=0.3)
    write_model(tmp_path, varied_model(small_config(HeadsConfig(), **KINDS[kind] | {"dropout": uneven})), tokenizer)
    assert read_model(tmp_path).model.config.encoder.dropout == uneven
    change_config(tmp_path, **{entry: 0.75})
    assert 0.75 in read_model(tmp_path).model.config.encoder.dropout.model_dump().values()


def test_the_length_of_a_roberta_leaves_out_the_rows_below_its_offset(tmp_path: Path, tokenizer: Tokenizer) -> None:
    written(tmp_path, "roberta", HeadsConfig(), tokenizer)
    assert json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))["model_max_length"] == 22
