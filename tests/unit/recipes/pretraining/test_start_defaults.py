"""What a run takes from where its model starts."""

from pathlib import Path
from typing import Any

import pytest

from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.start_defaults import with_start_defaults


def filled(tmp_path: Path, **values: Any) -> PretrainConfig:
    return with_start_defaults(PretrainConfig.parse({"sources": [str(tmp_path)], **values}, where="a test"))


def test_fresh_weights_are_trained_by_the_recipe_of_few_tokens(tmp_path: Path) -> None:
    config = filled(tmp_path)
    optimizer = config.training.optimizer
    assert (optimizer.kind, optimizer.matrices) == ("adamw", "muon")
    assert (optimizer.learning_rate, optimizer.muon_learning_rate, optimizer.weight_decay) == (5e-3, 0.03, 0.1)
    assert (config.model.start, config.masking.mask_rate, config.training.batch_tokens) == ("modern-toy", 0.3, 4096)


@pytest.mark.parametrize(
    ("model", "rate"),
    [
        ({"hidden_size": 64, "num_attention_heads": 2}, 5e-3),
        ({"hidden_size": 256, "num_attention_heads": 4}, 2.5e-3),
        ({"start": "bert-base"}, 5e-3 / 6),
    ],
)
def test_a_wide_model_has_a_lower_rate(tmp_path: Path, model: dict[str, Any], rate: float) -> None:
    optimizer = filled(tmp_path, model=model).training.optimizer
    assert (optimizer.learning_rate, optimizer.muon_learning_rate) == (pytest.approx(rate), 0.03)


@pytest.mark.parametrize("setting", [{"kind": "lamb"}, {"kind": "adamw", "beta2": 0.999}, {"matrices": "same"}])
def test_who_names_the_optimizer_has_a_recipe(tmp_path: Path, setting: dict[str, Any]) -> None:
    optimizer = filled(tmp_path, training={"optimizer": setting}).training.optimizer
    assert (optimizer.matrices, optimizer.learning_rate, optimizer.weight_decay) == ("same", 1e-3, 0.01)


def test_another_rate_leaves_the_recipe_as_it_is(tmp_path: Path) -> None:
    optimizer = filled(tmp_path, training={"optimizer": {"learning_rate": 5e-4}}).training.optimizer
    assert (optimizer.matrices, optimizer.learning_rate, optimizer.muon_learning_rate) == ("muon", 5e-4, 0.03)


@pytest.mark.parametrize(("setting", "rate"), [({"muon_learning_rate": 0.05}, 0.05), ({"matrices": "muon"}, 0.03)])
def test_who_asks_for_muon_has_the_recipe(tmp_path: Path, setting: dict[str, Any], rate: float) -> None:
    optimizer = filled(tmp_path, training={"optimizer": setting}).training.optimizer
    assert (optimizer.matrices, optimizer.learning_rate, optimizer.muon_learning_rate) == ("muon", 5e-3, rate)


def test_what_is_given_stays(tmp_path: Path) -> None:
    config = filled(
        tmp_path, masking={"unit": "whole_word"}, training={"batch_tokens": 8192}, model={"start": "bert-toy"}
    )
    assert (config.masking.mask_rate, config.training.batch_tokens, config.model.start) == (0.15, 8192, "bert-toy")


def test_a_batch_holds_two_of_the_longest_sequences(tmp_path: Path) -> None:
    assert filled(tmp_path, max_length=8192).training.batch_tokens == 16384


@pytest.mark.parametrize("objective", ["mlm+nsp", "mlm+sop", "causal", "bilm"])
def test_other_objectives_begin_with_bert(tmp_path: Path, objective: str) -> None:
    config = filled(tmp_path, objective=objective)
    assert config.model.start == "bert-toy"
    assert config.masking.mask_rate == (0.3 if objective.startswith("mlm") else 0.15)
    assert config.training.optimizer.matrices == ("same" if objective == "bilm" else "muon")
