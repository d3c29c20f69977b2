"""Options that several commands have."""

import inspect
from collections.abc import Callable

import pytest

from bertsmith.cli import options
from bertsmith.cli.compare_commands import compare
from bertsmith.cli.finetune_commands import finetune
from bertsmith.cli.predict_commands import answer, choose, classify, embed, multilabel, regress, tag
from bertsmith.cli.train_commands import pretrain
from bertsmith.cli.use_commands import fill

OF_EVERY_TRAINING = {
    "out": options.RunFolder,
    "steps": options.Steps,
    "minutes": options.Minutes,
    "config": options.Settings,
    "assignments": options.Assignments,
    "device": options.TrainingDevice,
    "precision": options.TrainingPrecision,
    "threads": options.Threads,
    "max_length": options.MaxLength,
    "seed": options.Seed,
    "restart": options.Restart,
    "as_json": options.Json,
}


@pytest.mark.parametrize("command", [pretrain, finetune, compare])
def test_a_training_has_the_options_of_every_training(command: Callable[..., None]) -> None:
    parameters = inspect.signature(command).parameters
    assert {name: parameters[name].annotation for name in OF_EVERY_TRAINING} == OF_EVERY_TRAINING
    assert parameters["epochs"].annotation == (options.EpochsOfRows if command is finetune else options.Epochs)


@pytest.mark.parametrize("command", [pretrain, compare])
def test_a_training_on_text_says_how_files_are_chosen(command: Callable[..., None]) -> None:
    annotation = inspect.signature(command).parameters["sources"].annotation
    assert annotation == options.TrainingText
    assert "every text and table is taken" in annotation.__metadata__[0].help


@pytest.mark.parametrize("command", [classify, regress, multilabel, tag, answer, choose, embed, fill])
def test_a_prediction_lets_the_engine_be_chosen(command: Callable[..., None]) -> None:
    parameters = inspect.signature(command).parameters
    expected = {"device": options.Device, "precision": options.PrecisionOfUse, "engine": options.Engine}
    assert {name: parameters[name].annotation for name in expected} == expected
    assert (parameters["precision"].default, parameters["engine"].default) == ("fp32", "auto")
