"""Configs refuse what cannot be, presets have the published sizes, and fresh weights depend on nothing hidden."""

from typing import Any

import pytest
import torch
from small_models import KINDS, encoder_config, small_model

from bertsmith.foundation.config import Config
from bertsmith.foundation.errors import InputError
from bertsmith.model import (
    PRESETS,
    Dropout,
    EncoderConfig,
    HeadsConfig,
    ModelConfig,
    RotaryConfig,
    empty_model,
    meta_model,
    new_model,
    preset,
)


def refused(kind: type[Config], values: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        kind.parse(values, where="model.toml")
    return str(caught.value)


def num_parameters(config: ModelConfig) -> int:
    return sum(parameter.numel() for parameter in meta_model(config).parameters())


def test_heads_must_divide_the_hidden_size() -> None:
    message = refused(EncoderConfig, encoder_config().model_dump() | {"num_attention_heads": 3})
    assert "num_attention_heads must divide hidden_size, and 3 does not divide 16" in message
    assert "model.toml" in message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("vocab_size", 0),
        ("hidden_size", -16),
        ("num_hidden_layers", 0),
        ("num_attention_heads", 0),
        ("intermediate_size", 0),
        ("max_position_embeddings", 0),
        ("type_vocab_size", -1),
        ("layer_norm_eps", 0.0),
        ("initializer_range", 0.0),
        ("pad_token_id", -1),
        ("activation", "gelu_new"),
        ("hidden_size", 16.5),
    ],
)
def test_a_value_outside_its_rule_is_named(field: str, value: object) -> None:
    message = refused(EncoderConfig, encoder_config().model_dump() | {field: value})
    assert f"Received: {field}={value!r}" in message


def test_a_mistyped_field_names_the_nearest() -> None:
    assert "Did you mean hidden_size?" in refused(EncoderConfig, encoder_config().model_dump() | {"hidden_sise": 16})


@pytest.mark.parametrize("rate", [-0.1, 1.0, 10.0])
@pytest.mark.parametrize("place", ["embeddings", "attention_weights", "attention_output", "feed_forward"])
def test_dropout_is_a_share(place: str, rate: float) -> None:
    assert place in refused(Dropout, {place: rate})


def test_next_sentence_needs_the_pooler() -> None:
    assert "pooler must be true" in refused(HeadsConfig, {"next_sentence": True})
    assert HeadsConfig(next_sentence=True, pooler=True).next_sentence


def test_a_linear_head_over_all_layers_cannot_be_tied() -> None:
    wide = {"mlm_head": "linear", "mlm_head_input": "all_layers"}
    encoder = encoder_config(num_hidden_layers=2)
    assert "tie_embeddings must be false" in refused(ModelConfig, {"encoder": encoder, "heads": wide})
    for fitting in (wide | {"tie_embeddings": False}, {"mlm_head": "linear"}, {"mlm_head_input": "all_layers"}):
        ModelConfig.parse({"encoder": encoder, "heads": fitting}, where="x")


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        encoder_config().hidden_size = 32  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"family": "albert", "embedding_size": 8}, "num_hidden_groups belongs to family albert"),
        ({"family": "albert", "num_hidden_groups": 1}, "embedding_size belongs to families albert and elmo"),
        (KINDS["albert"] | {"num_hidden_layers": 4, "num_hidden_groups": 3}, "and 3 does not divide 4"),
        (KINDS["albert"] | {"num_hidden_groups": 0}, "num_hidden_groups=0"),
        ({"num_hidden_groups": 1}, "num_hidden_groups belongs to family albert"),
        ({"embedding_size": 8}, "embedding_size belongs to"),
        ({"rotary": RotaryConfig()}, "rotary belongs to family modern"),
        ({"family": "modern", "type_vocab_size": 0}, "rotary belongs to family modern"),
        (KINDS["modern"] | {"type_vocab_size": 2}, "type_vocab_size must be 0 in family modern"),
        (KINDS["modern"] | {"hidden_size": 20, "num_attention_heads": 4}, "heads of even width"),
        ({"family": "distilbert"}, "type_vocab_size must be 0 in family distilbert"),
        (KINDS["distilbert"] | {"layer_norm_eps": 1e-5}, "layer_norm_eps must be 1e-12 in family distilbert"),
        (KINDS["roberta"] | {"causal": True}, "causal belongs to family bert"),
        (KINDS["roberta"] | {"max_position_embeddings": 2}, "must exceed the 2 rows that no token uses"),
        ({"family": "robarta"}, "family"),
    ],
)
def test_parts_that_do_not_fit_their_family_are_refused(change: dict[str, Any], said: str) -> None:
    assert said in refused(EncoderConfig, encoder_config().model_dump() | change)


@pytest.mark.parametrize(
    ("field", "value"),
    [("global_every", 0), ("window", 0), ("window", 7), ("global_theta", 0.0), ("local_theta", -1.0)],
)
def test_a_rotary_value_outside_its_rule_is_named(field: str, value: object) -> None:
    assert f"Received: {field}={value!r}" in refused(RotaryConfig, {field: value})


def test_a_sequence_may_be_as_long_as_there_are_positions() -> None:
    assert encoder_config().num_positions == 64
    assert encoder_config(**KINDS["roberta"]).num_positions == 64
    assert encoder_config(**KINDS["roberta"] | {"pad_token_id": 4}).num_positions == 61
    model = small_model(**KINDS["roberta"] | {"pad_token_id": 4})
    model.encoder(torch.arange(61)[None] % 50)
    with pytest.raises(ValueError, match="62 tokens, 61 positions"):
        model.encoder(torch.arange(62)[None] % 50)


PRETRAINING = {
    "bert": HeadsConfig(pooler=True, next_sentence=True),
    "albert": HeadsConfig(pooler=True, sentence_order=True),
}


@pytest.mark.parametrize(
    ("name", "vocabulary", "encoder", "with_heads"),
    [
        ("bert-base", 30_522, 109_482_240, 110_106_428),
        ("bert-large", 30_522, 335_141_888, 336_226_108),
        ("albert-base", 30_000, 11_683_584, 11_813_810),
        ("albert-xxlarge", 30_000, 222_595_584, 223_158_450),
        ("roberta-base", 50_265, None, 124_697_433),
        ("roberta-large", 50_265, None, 355_412_057),
    ],
)
def test_presets_have_as_many_parameters_as_published(
    name: str, vocabulary: int, encoder: int | None, with_heads: int
) -> None:
    config = preset(name, vocab_size=vocabulary)
    if encoder is not None:
        pooled = HeadsConfig(masked_language_model=False, pooler=True)
        assert num_parameters(ModelConfig(encoder=config, heads=pooled)) == encoder
    heads = PRETRAINING.get(config.family, HeadsConfig())
    assert num_parameters(ModelConfig(encoder=config, heads=heads)) == with_heads


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_makes_a_config(name: str) -> None:
    config = preset(name, vocab_size=100, max_position_embeddings=33)
    assert (config.vocab_size, config.max_position_embeddings) == (100, 33)
    factor = 1.5 if config.family == "modern" else 4
    assert config.intermediate_size == factor * config.hidden_size
    assert config.head_size * config.num_attention_heads == config.hidden_size
    assert config.family == {"bert": "bert", "roberta": "roberta", "albert": "albert"}.get(name.split("-")[0], "modern")


@pytest.mark.parametrize("padding", [0, 1, 7])
def test_a_roberta_preset_has_512_positions_whatever_its_padding_token(padding: int) -> None:
    config = preset("roberta-base", vocab_size=100, pad_token_id=padding)
    assert (config.max_position_embeddings, config.num_positions) == (513 + padding, 512)


def test_a_model_of_any_size_can_be_counted_without_memory() -> None:
    model = meta_model(ModelConfig(encoder=preset("albert-xxlarge", vocab_size=30_000)))
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"Did you mean bert-base\?"):
        preset("bert-bas", vocab_size=10)


def test_a_change_to_a_preset_that_breaks_a_rule_names_the_preset() -> None:
    with pytest.raises(InputError, match="preset bert-base"):
        preset("bert-base", vocab_size=10, num_attention_heads=7)


@pytest.mark.parametrize(
    "heads",
    [
        HeadsConfig(pooler=True, next_sentence=True),
        HeadsConfig(tie_embeddings=False),
        HeadsConfig(mlm_head="linear", mlm_head_input="all_layers", tie_embeddings=False),
    ],
)
def test_fresh_weights_are_a_function_of_config_and_seed_alone(heads: HeadsConfig) -> None:
    torch.manual_seed(1)
    first = small_model(5, heads=heads).state_dict()
    torch.manual_seed(2)
    again = small_model(5, heads=heads, attention="recording").state_dict()
    other = small_model(6, heads=heads).state_dict()
    assert first.keys() == again.keys()
    assert all(torch.equal(first[name], again[name]) for name in first)
    drawn = [name for name in first if first[name].unique().numel() > 1]
    assert len(drawn) >= 3
    assert not any(torch.equal(first[name], other[name]) for name in drawn)


def test_making_a_model_leaves_the_global_random_state_alone() -> None:
    before = torch.random.get_rng_state()
    small_model(5)
    assert torch.equal(before, torch.random.get_rng_state())


def test_fresh_weights_have_the_published_distribution() -> None:
    heads = HeadsConfig(tie_embeddings=False, pooler=True, next_sentence=True)
    config = ModelConfig(encoder=encoder_config(vocab_size=4000, hidden_size=64, intermediate_size=256), heads=heads)
    model = new_model(config, seed=0)
    for name, value in model.state_dict().items():
        if name.endswith("bias"):
            assert not value.any(), name
        elif "norm" in name:
            assert (value == 1.0).all(), name
        else:
            assert value.std().item() == pytest.approx(0.02, rel=0.15), name
            assert abs(value.mean().item()) < 0.02 * 5 / value.numel() ** 0.5, name


def test_an_empty_model_has_the_parts_of_a_new_one() -> None:
    config = ModelConfig(encoder=encoder_config(), heads=HeadsConfig(pooler=True, next_sentence=True))
    empty, new = empty_model(config).state_dict(), new_model(config, seed=0).state_dict()
    assert {name: value.shape for name, value in empty.items()} == {name: value.shape for name, value in new.items()}
    assert all(value.device.type == "cpu" for value in empty.values())


@pytest.mark.parametrize("place", ["embeddings", "attention_weights", "attention_output", "feed_forward"])
@pytest.mark.parametrize("attention", ["fused", "recording"])
def test_dropout_acts_in_each_place_while_training_and_only_then(place: str, attention: str) -> None:
    model = small_model(attention=attention, dropout={place: 0.5})
    plain = small_model(attention=attention)
    tokens = torch.arange(20)[None]
    torch.manual_seed(0)
    noisy, noisy_again = model.encoder(tokens), model.encoder(tokens)
    assert not torch.allclose(noisy, noisy_again)
    torch.testing.assert_close(model.eval().encoder(tokens), plain.encoder(tokens))
