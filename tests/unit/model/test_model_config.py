"""Configs refuse what cannot be, presets have the published sizes, and fresh weights depend on nothing hidden."""

from typing import Any

import pytest
import torch
from small_models import encoder_config, small_model

from bertsmith.foundation.errors import InputError
from bertsmith.model import (
    PRESETS,
    Dropout,
    Encoder,
    EncoderConfig,
    HeadsConfig,
    Model,
    ModelConfig,
    empty_model,
    new_model,
    preset,
)
from bertsmith.model.config import Config


def refused(kind: type[Config], values: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        kind.parse(values, where="model.toml")
    return str(caught.value)


def num_parameters(config: ModelConfig) -> int:
    with torch.device("meta"):
        model = Model(config, Encoder(config.encoder))
    return sum(parameter.numel() for parameter in model.parameters())


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
        ("type_vocab_size", 0),
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
    assert "tie_embeddings must be false" in refused(HeadsConfig, wide)
    assert not HeadsConfig.parse(wide | {"tie_embeddings": False}, where="x").tie_embeddings
    for fitting in ({"mlm_head": "linear"}, {"mlm_head_input": "all_layers"}):
        assert HeadsConfig.parse(fitting, where="x").tie_embeddings


def test_only_heads_that_other_programs_know_count_as_published() -> None:
    assert HeadsConfig().as_published
    assert not HeadsConfig(mlm_head="linear").as_published
    assert not HeadsConfig(mlm_head_input="all_layers").as_published
    assert HeadsConfig(masked_language_model=False, mlm_head="linear").as_published


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        encoder_config().hidden_size = 32  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("name", "encoder", "with_heads"),
    [("bert-base", 109_482_240, 110_106_428), ("bert-large", 335_141_888, 336_226_108)],
)
def test_presets_have_as_many_parameters_as_published(name: str, encoder: int, with_heads: int) -> None:
    config = preset(name, vocab_size=30_522)
    pooled = HeadsConfig(masked_language_model=False, pooler=True)
    assert num_parameters(ModelConfig(encoder=config, heads=pooled)) == encoder
    pretraining = HeadsConfig(pooler=True, next_sentence=True)
    assert num_parameters(ModelConfig(encoder=config, heads=pretraining)) == with_heads


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_makes_a_config(name: str) -> None:
    config = preset(name, vocab_size=100, max_position_embeddings=33)
    assert (config.vocab_size, config.max_position_embeddings) == (100, 33)
    assert config.intermediate_size == 4 * config.hidden_size
    assert config.head_size * config.num_attention_heads == config.hidden_size


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
