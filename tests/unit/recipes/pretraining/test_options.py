"""Settings: TOML, --set, and what is refused."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.start_defaults import with_start_defaults
from bertsmith.recipes.settings import given_settings, named_settings, put, read_settings, with_assignments

BASE: dict[str, Any] = {"sources": ["text"]}


def _parse(values: dict[str, Any]) -> PretrainConfig:
    return PretrainConfig.parse(BASE | values, where="the options")


def test_a_config_written_as_toml_comes_back_equal(tmp_path: Path) -> None:
    config = _parse(
        {
            "objective": "mlm+nsp",
            "length": {"minutes": 1.5},
            "model": {"start": "bert-demo", "dropout": {"embeddings": 0.1}},
            "training": {"optimizer": {"learning_rate": 3e-4}, "schedule": {"shape": "cosine"}},
        }
    )
    path = tmp_path / "run.toml"
    path.write_text(tomli_w.dumps(config.model_dump(mode="json", exclude_none=True)), encoding="utf-8")
    assert PretrainConfig.parse(read_settings(path), where=str(path)) == config


def test_the_record_of_a_run_is_no_setting(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('sources = ["text"]\n[record]\nprecision = "bf16"\n', encoding="utf-8")
    assert read_settings(path) == BASE


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no file"), (b"a = \n", "must be TOML"), (b'a = "\xff"\n', "must be TOML")],
)
def test_settings_that_cannot_be_read_are_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "run.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_settings(path)


def test_a_folder_in_place_of_settings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--config must name a TOML file"):
        read_settings(tmp_path)


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("training.seed=7", 7),
        ("training.optimizer.learning_rate=1e-4", 1e-4),
        ("model.tie_embeddings=false", False),
        ("model.start=bert-demo", "bert-demo"),
        ('model.start = "bert mini"', "bert mini"),
        ("sources=['a', 'b']", ["a", "b"]),
        ("model.start=a=b", "a=b"),
    ],
)
def test_an_assignment_sets_a_value_of_its_kind(assignment: str, value: object) -> None:
    before = {"training": {"seed": 1}}
    found: Any = with_assignments(before, [assignment])
    for part in assignment.partition("=")[0].strip().split("."):
        found = found[part]
    assert found == value
    assert type(found) is type(value)
    assert before == {"training": {"seed": 1}}


def test_a_later_assignment_wins_and_others_stay() -> None:
    values = with_assignments({"training": {"seed": 1, "batch_tokens": 64}}, ["training.seed=2", "training.seed=3"])
    assert values == {"training": {"seed": 3, "batch_tokens": 64}}


def test_numbers_of_numpy_are_plain_ones_and_dates_are_told_of() -> None:
    values = given_settings(None, {"training.seed": np.int64(7), "length.epochs": np.float32(0.5)}, ())
    assert values == {"training": {"seed": 7}, "length": {"epochs": 0.5}}
    assert {type(values["training"]["seed"]), type(values["length"]["epochs"])} == {int, float}
    with pytest.raises(InputError, match=r"objective: .*2020"):
        _parse(with_assignments({}, ["objective=2020-01-01"]))


def test_a_length_takes_the_place_of_the_files_however_it_is_given(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("[length]\nepochs = 2.0\n", encoding="utf-8")
    assert given_settings(path, {"length.steps": 3}, ())["length"] == {"steps": 3}
    assert given_settings(path, {"length.steps": None}, ["length.minutes = 4"])["length"] == {"minutes": 4}
    assert given_settings(path, {}, ["training.seed=1"])["length"] == {"epochs": 2.0}


def test_settings_that_come_along_are_those_of_a_pretraining(tmp_path: Path) -> None:
    assert given_settings(Path("bert-base"), {}, (), by_name=True)["max_length"] == 512
    with pytest.raises(InputError, match="bert-base, the name of settings of a pre-training"):
        given_settings(Path("bert-base"), {}, ())
    with pytest.raises(InputError, match=r"no file .*run\.toml") as caught:
        given_settings(tmp_path / "run.toml", {}, ())
    assert "bert-base" not in str(caught.value)


@pytest.mark.parametrize("assignment", ["training.seed", "=3", " = 3", ""])
def test_what_is_no_assignment_is_refused(assignment: str) -> None:
    with pytest.raises(InputError, match="--set takes key=value"):
        with_assignments({}, [assignment])


def test_a_key_through_a_value_is_refused() -> None:
    with pytest.raises(InputError, match="objective is no table"):
        put({"objective": "mlm"}, "objective.kind", 1)


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("max_lenght", "max_length"),
        ("traning.seed", "training"),
        ("training.sede", "seed"),
        ("training.optimizer.learningrate", "learning_rate"),
        ("masking.mask_rat", "mask_rate"),
        ("tokenizer.vocabsize", "vocab_size"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_one_there(key: str, near: str) -> None:
    with pytest.raises(InputError, match=rf"Did you mean {near}\?"):
        _parse(with_assignments({}, [f"{key}=1"]))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"length": {"epochs": 1, "steps": 10}}, "only one of epochs, steps and minutes.*epochs and steps"),
        ({"length": {"epochs": 1, "minutes": 1}}, "only one of epochs, steps and minutes.*epochs and minutes"),
        ({"length": {"steps": 0}}, "length.steps"),
        ({"length": {"epochs": math.inf}}, "length.epochs: input should be a finite number"),
        ({"length": {"minutes": math.inf}}, "length.minutes: input should be a finite number"),
        ({"training": {"optimizer": {"learning_rate": math.inf}}}, "learning_rate: input should be a finite number"),
        ({"training": {"optimizer": {"weight_decay": math.inf}}}, "weight_decay: input should be a finite number"),
        ({"masking": {"mask_rate": 15}}, r"masking.mask_rate.*Did you mean 0\.15\?"),
        ({"training": {"schedule": {"shape": "constant"}}}, "training.schedule.shape"),
        (
            {"training": {"schedule": {"shape": "stable_then_decay", "warmup_share": 0.8, "decay_share": 0.3}}},
            "warmup_share and decay_share",
        ),
        ({"training": {"schedule": {"decay_share": 0.1}}}, "decay_share must be given with shape stable_then_decay"),
        (
            {"training": {"optimizer": {"muon_learning_rate": 0.1, "matrices": "same"}}},
            "muon_learning_rate must not be given with matrices same",
        ),
        ({"objective": "nsp"}, "objective"),
        ({"max_length": 7}, "max_length"),
        ({"runtime": {"threads": 0}}, "runtime.threads"),
        ({"model": {"dropout": {"embeddings": 1.0}}}, "model.dropout.embeddings"),
    ],
)
def test_a_value_outside_its_rule_is_refused_by_name(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        _parse(values)


def test_what_a_run_writes_down_without_its_being_given_is_taken() -> None:
    config = _parse({})
    assert config.written["training"]["schedule"]["decay_share"] == 0.3
    assert config.written["training"]["optimizer"]["muon_learning_rate"] == 0.02
    assert PretrainConfig.parse(config.written, where="a run").written == config.written


@pytest.mark.parametrize("length", [{"epochs": 1}, {"steps": 10}, {"minutes": 0.5}, {}])
def test_one_length_or_none_is_taken(length: dict[str, Any]) -> None:
    assert _parse({"length": length}).length.model_dump(exclude_none=True) == length


@pytest.mark.parametrize("name", [name for name in named_settings() if name != "arabic"])
def test_settings_that_come_with_the_package_leave_nothing_to_the_recipe_of_few_tokens(name: str) -> None:
    given = read_settings(Path(name))
    config = PretrainConfig.parse({"sources": ["text"], **given}, where=name)
    filled = with_start_defaults(config)
    assert (filled.training, filled.masking, filled.model) == (config.training, config.masking, config.model)


def test_a_folder_does_not_stand_before_settings_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "arabic").mkdir()
    monkeypatch.chdir(tmp_path)
    assert read_settings(Path("arabic"))["length"] == {"minutes": 60}
