"""Settings of a fine-tuning: defaults as published, what is given over them."""

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.finetuning.options import FinetuneConfig, FinetuneTraining, default_batch_size, default_epochs
from bertsmith.training.config import OptimizerConfig


def _config(**more: object) -> FinetuneConfig:
    return FinetuneConfig.parse({"train": "train.csv", "model": "folder", **more}, where="a test")


def _rate(config: FinetuneConfig, hidden_size: int) -> float:
    return config.training_for(hidden_size).optimizer.learning_rate


def test_defaults_are_those_of_fine_tuning() -> None:
    config = _config()
    assert (config.training.optimizer.beta2, config.training.schedule.warmup_share) == (0.999, 0.1)
    assert (config.dropout, config.data.encoding) == (0.1, "utf-8")


@pytest.mark.parametrize(
    ("values", "share", "decay"),
    [
        ({}, 0.4, 0.9),
        ({"task": "tag", "training": {"optimizer": {"learning_rate": 1e-5}, "patience": 2}}, 0.4, 0.9),
        ({"training": {"average_share": 0.0, "optimizer": {"layer_decay": 0.8}}}, 0.0, 0.8),
        ({"training": FinetuneTraining(patience=2, optimizer=OptimizerConfig(beta2=0.999))}, 0.4, 0.9),
        # Nothing in the layers has been learned before.
        ({"fresh_weights": True}, 0.4, 1.0),
        ({"task": "embed"}, 0.0, 1.0),
    ],
)
def test_a_mean_is_left_and_lower_layers_learn_less(values: dict[str, object], share: float, decay: float) -> None:
    training = _config(**values).training_for(384)
    assert (training.average_share, training.optimizer.layer_decay) == (share, decay)
    assert (training.keep_checkpoints, training.optimizer.beta2) == (1, 0.999)


def test_one_setting_leaves_the_other_defaults() -> None:
    config = _config(training={"optimizer": {"weight_decay": 0.3}, "schedule": {"shape": "cosine"}, "seed": 4})
    assert (config.training.optimizer.weight_decay, config.training.optimizer.beta2) == (0.3, 0.999)
    assert (config.training.schedule.shape, config.training.schedule.warmup_share) == ("cosine", 0.1)
    assert config.training.keep_checkpoints == 1
    assert _config(training={"optimizer": {"beta2": 0.9}}).training.optimizer.beta2 == 0.9


def test_a_rate_that_is_not_given_falls_with_the_width() -> None:
    rates = [_rate(_config(), width) for width in (128, 768, 1024)]
    assert rates == sorted(rates, reverse=True)
    assert rates[1] == 5e-5
    assert _rate(_config(), 384) == 2e-4
    assert _rate(_config(task="embed"), 384) == 8e-5
    assert _rate(_config(), 8) == 1e-3
    assert _rate(_config(training={"optimizer": {"learning_rate": 2e-5}}), 128) == 2e-5


def test_a_rate_that_is_not_given_grows_with_weights_that_are_larger_than_usual() -> None:
    def rate(size: float, **values: object) -> float:
        return _config(**values).training_for(192, size).optimizer.learning_rate

    assert rate(0.28) == pytest.approx(4 * rate(0.07)) == pytest.approx(4 * 8e-4)
    assert rate(0.02) == rate(0.07) == rate(0.0)
    # A head alone has no large weights, and an embedder's rate was found otherwise.
    assert rate(0.28, freeze="encoder") == rate(0.07)
    assert rate(0.28, task="embed") == rate(0.07, task="embed")
    assert rate(0.28, training={"optimizer": {"learning_rate": 2e-5}}) == 2e-5


def test_what_the_model_decides_is_written_only_where_it_was_given() -> None:
    written = _config().written["training"]
    assert not {"learning_rate", "layer_decay", "average_share"} & (written.keys() | written["optimizer"].keys())
    given = _config(training={"average_share": 0.1, "optimizer": {"learning_rate": 2e-5, "layer_decay": 0.8}})
    written = given.written["training"]
    optimizer = written["optimizer"]
    assert (written["average_share"], optimizer["learning_rate"], optimizer["layer_decay"]) == (0.1, 2e-5, 0.8)


def test_a_run_that_is_begun_again_with_fresh_weights_has_their_rates() -> None:
    again = FinetuneConfig.parse(_config().written | {"fresh_weights": True}, where="a run")
    assert again.training_for(384).optimizer.layer_decay == 1.0


@pytest.mark.parametrize(
    "more", [{}, {"validation": "dev.csv"}, {"training": {"batch_size": 4, "optimizer": {"learning_rate": 1e-5}}}]
)
def test_what_is_written_begins_the_same_run_again(more: dict[str, object]) -> None:
    config = _config(**more)
    again = FinetuneConfig.parse(config.written, where="a run")
    assert again.written == config.written
    assert again.training_for(300) == config.training_for(300)


@pytest.mark.parametrize(("rows", "epochs", "batch_size"), [(100, 20, 16), (3000, 10, 32), (100_000, 3, 32)])
def test_few_rows_are_seen_more_often(rows: int, epochs: float, batch_size: int) -> None:
    assert (default_epochs(rows, num_tokens=30 * rows), default_batch_size(rows)) == (epochs, batch_size)


@pytest.mark.parametrize(("labels", "epochs"), [(2, 3), (30, 3), (77, 7.7), (1_000, 20)])
def test_many_labels_are_seen_more_often(labels: int, epochs: float) -> None:
    assert default_epochs(10_000, 150_000, labels) == epochs


@pytest.mark.parametrize(("tokens", "epochs"), [(100_000, 20), (500_000, 8), (5_000_000, 3)])
def test_long_rows_are_seen_less_often(tokens: int, epochs: float) -> None:
    assert default_epochs(700, tokens) == epochs


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"epoch": 3}, "epoch"),
        ({"task": "classification"}, "task"),
        ({"training": {"batch_tokens": 8192}}, r"training\.batch_tokens"),
        ({"class_weights": "equal"}, "class_weights"),
        ({"validation_share": 1.0}, "validation_share"),
        ({"task": "tag", "data": {"pair": "nope"}}, r"data\.pair goes with.*data\.pair=nope, and task tag"),
        ({"data": {"negative": "nah"}}, r"data\.negative belongs to task embed.*nah, and task classify"),
        (
            {"validation": "dev.csv", "validation_share": 0.2},
            r"no file.*validation_share=0\.2 beside validation=dev\.csv",
        ),
        (
            {"freeze": "encoder", "training": {"optimizer": {"layer_decay": 0.8}}},
            r"must have an effect.*layer_decay=0\.8 beside freeze=encoder",
        ),
        ({"length": {"epochs": 1, "steps": 5}}, "only one of epochs, steps and minutes"),
    ],
)
def test_unknown_and_impossible_settings_are_refused(more: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        _config(**more)


def test_several_seeds_share_the_time() -> None:
    one = _config(seeds=4, length={"minutes": 2}, training={"seed": 3}).with_seed(5)
    assert (one.seeds, one.training.seed, one.length.minutes) == (1, 5, 0.5)
    assert _config(seeds=4, length={"steps": 20}).with_seed(5).length.steps == 20
