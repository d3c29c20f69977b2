"""An ELMo of like size."""

import pytest
from small_models import encoder_config

from bertsmith.model import HeadsConfig, ModelConfig, new_model, preset
from bertsmith.model.build import meta_model, num_parameters
from bertsmith.model.like_size import elmo_of_like_size


def count(config: ModelConfig) -> int:
    return num_parameters(meta_model(config))


@pytest.mark.parametrize("vocab_size", [400, 8000, 64_000])
@pytest.mark.parametrize("name", ["bert-toy", "bert-demo", "bert-base"])
def test_parameters_differ_by_two_percent_at_most(name: str, vocab_size: int) -> None:
    bert = ModelConfig(encoder=preset(name, vocab_size=vocab_size))
    elmo = elmo_of_like_size(bert)
    assert abs(count(elmo) / count(bert) - 1) <= 0.02
    assert (elmo.encoder.family, elmo.encoder.num_hidden_layers) == ("elmo", 2)


@pytest.mark.parametrize("pooler", [False, True])
def test_parameters_are_those_of_the_model_that_is_built(pooler: bool) -> None:
    config = ModelConfig(encoder=encoder_config(), heads=HeadsConfig(pooler=pooler, next_sentence=pooler))
    for each in (config, elmo_of_like_size(config)):
        assert count(each) == sum(weight.numel() for weight in new_model(each, seed=0).parameters())


def test_a_tiny_model_has_a_partner_within_five_percent() -> None:
    config = ModelConfig(encoder=encoder_config(vocab_size=100, hidden_size=32, intermediate_size=64))
    assert abs(count(elmo_of_like_size(config)) / count(config) - 1) <= 0.05
