"""An encoder, a table, and the settings of a fine-tuning of a few steps."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from bertsmith.folders.model_folder import read_model
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.results import Run
from bertsmith.training.events import Event, Validated
from bertsmith.training.log import read_log
from made_tasks import made_encoder, made_rows, write_rows

COUNTS = {"wet": 60, "dry": 40}
QUICK: dict[str, Any] = {
    "runtime": {"device": "cpu", "precision": "fp32", "threads": 1},
    "training": {"optimizer": {"learning_rate": 5e-3}, "log_every_steps": 5},
}


def fill_work(folder: Path) -> Path:
    """Put an encoder and a table into a folder."""
    made_encoder(folder / "encoder")
    write_rows(folder / "train.csv", made_rows(COUNTS))
    return folder


def config_of(work: Path, **more: Any) -> FinetuneConfig:
    """Six steps on what `fill_work` made, unless told otherwise."""
    values = {"train": str(work / "train.csv"), "model": str(work / "encoder"), **QUICK}
    return FinetuneConfig.parse(values | {"length": {"steps": 6}} | more, where="a test")


def assert_refused(config: FinetuneConfig, out: Path, told: str) -> None:
    """Hold that a fine-tuning is refused with a message that matches, and leaves nothing."""
    with pytest.raises(InputError, match=told):
        finetune_run(config, out)
    assert not out.exists()


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    """The weights in a model folder, by name."""
    return read_model(folder).model.state_dict()


def same_weights(first: Path, second: Path) -> bool:
    """Whether two model folders hold the same weights to the bit."""
    one, other = weights_of(first), weights_of(second)
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


class StopsAt:
    """An observer that asks for a stop, as a signal does."""

    def __init__(self, step: int) -> None:
        self._step = step

    def __call__(self, event: Event) -> None:
        if isinstance(event, Validated) and event.step >= self._step:
            os.kill(os.getpid(), signal.SIGTERM)


def validations_of(run: Run) -> list[dict[str, float]]:
    """What a run's log says of its validations."""
    return [entry for entry in read_log(run.folder / "log.jsonl") if entry["kind"] == "validation"]
