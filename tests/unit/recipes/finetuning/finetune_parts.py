"""An encoder, a table, and the settings of a fine-tuning of a few steps."""

from pathlib import Path
from typing import Any

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.run import finetune_run
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
