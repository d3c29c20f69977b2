"""How many tokens a validation of a run sees."""

from typing import Any

import pytest

from bertsmith.recipes.pretraining.begin import validation_tokens_of_run
from bertsmith.recipes.pretraining.options import PretrainConfig


def _tokens(**values: Any) -> int:
    config = PretrainConfig.parse({"sources": ["text"], **values}, where="a test")
    return validation_tokens_of_run(config, batches_per_epoch=100)


@pytest.mark.parametrize(
    ("length", "tokens"), [({"steps": 10}, 10_000), ({"epochs": 10}, 61_440), ({"steps": 10**6}, 200_000)]
)
def test_it_follows_the_length_of_the_run(length: dict[str, float], tokens: int) -> None:
    # 1,000 steps of 4,096 tokens; a twentieth of three times as much, in ten parts.
    assert _tokens(length=length, training={"batch_tokens": 4096}) == tokens


def test_what_is_given_is_taken() -> None:
    assert _tokens(length={"steps": 10**6}, training={"validation_tokens": 600}) == 600


def test_fewer_validations_see_more_each() -> None:
    training = {"batch_tokens": 4096, "validate_every_share": 0.5}
    assert _tokens(length={"epochs": 1}, training=training) == 30_720
