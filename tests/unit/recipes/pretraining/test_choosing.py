"""What a run with a time trains, where nobody said it."""

from pathlib import Path
from typing import Any

import pytest

from bertsmith.engine.device import Device
from bertsmith.engine.rates import MachineRates
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.pretraining.choosing import chosen_settings, is_to_be_chosen, with_settings
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.run import pretrain_run
from bertsmith.recipes.run_folder import record_of

SENTENCES = ("The cat sat on the mat.", "A dog barks at the small cat.", "Rain falls on the river.", "We see the sea.")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join(" ".join(SENTENCES[number % 3 :]) for number in range(60)), encoding="utf-8")
    return path


def asked(text: Path, **values: Any) -> PretrainConfig:
    return PretrainConfig.parse({"sources": [str(text)], "length": {"minutes": 15.0}, **values}, where="a test")


def rates(device: Device) -> MachineRates:
    return MachineRates(900e9, 900e9, 14e9)


def test_only_a_run_with_a_time_and_no_model_is_chosen_for(text: Path) -> None:
    assert is_to_be_chosen(asked(text))
    assert not is_to_be_chosen(asked(text, length={"steps": 10}))
    assert not is_to_be_chosen(asked(text, model={"start": "bert-toy"}))
    assert not is_to_be_chosen(asked(text, model={"hidden_size": 64}))
    assert not is_to_be_chosen(asked(text, objective="mlm+nsp"))


def test_the_choice_is_told_in_three_lines_and_fits_the_config(text: Path) -> None:
    told: list[str] = []
    found = chosen_settings(asked(text), Device("cpu", "bf16"), told.append, measure=rates)
    config = with_settings(asked(text), found)
    assert [line.split(":")[0] for line in told] == ["chosen"] * 3
    assert f"{config.model.num_hidden_layers} layers of {config.model.hidden_size}" in told[0]
    assert f"batches of {config.training.batch_tokens:,} tokens" in told[2]
    assert config.length.minutes == 15.0


def test_what_was_given_is_not_chosen(text: Path) -> None:
    config = asked(text, training={"batch_tokens": 1024, "validation_tokens": 500})
    found = chosen_settings(config, Device("cpu", "bf16"), lambda line: None, measure=rates)
    assert all(name.startswith("model.") for name in found)


def test_in_a_few_seconds_nothing_is_measured(text: Path) -> None:
    def measure(device: Device) -> MachineRates:
        raise AssertionError("measured")

    found = chosen_settings(
        asked(text, length={"minutes": 0.2}), Device("cpu", "fp32"), lambda line: None, measure=measure
    )
    assert (found["model.num_hidden_layers"], found["model.hidden_size"]) == (2, 128)


def test_a_run_goes_on_with_what_was_chosen(text: Path, tmp_path: Path) -> None:
    config = asked(text, length={"minutes": 0.15})
    first = pretrain_run(config, tmp_path / "run")
    chosen = record_of(first.folder)["chosen"]
    assert chosen["model.hidden_size"] == 128
    assert pretrain_run(config, tmp_path / "run").already_finished
    with pytest.raises(InputError, match=r"model\.hidden_size was 128 and is now 64"):
        pretrain_run(asked(text, length={"minutes": 0.15}, model={"hidden_size": 64}), tmp_path / "run")
