"""Options of the commands that train or measure training, as a run's config."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.run_options import FINETUNING_SETTINGS, PRETRAINING_SETTINGS, by_setting
from bertsmith.recipes.settings import given_settings, told_where

_NEEDED = {"train": "a file of rows to learn from", "model": "--model, the folder of an encoder"}


def pretraining_config(
    command: str, config: Path | None, assignments: Sequence[str] | None, **options: Any
) -> PretrainConfig:
    """What a pre-training is asked to do.

    Args:
        command: as it is typed, for errors.
        config: a TOML file of settings, or the name of some.
        assignments: ``key=value``, over all else.
        options: by the name of their parameter in the command; None, or an empty list, says that one was not given.

    Raises:
        InputError: if they are no settings of a pre-training, or name no text.
    """
    values = given_settings(config, by_setting(PRETRAINING_SETTINGS, options), assignments or [], by_name=True)
    if not values.get("sources"):
        raise InputError(f"{command} needs text", "no source", "Name files, folders or a prepared corpus.")
    return PretrainConfig.parse(values, where=told_where(config, "the options"))


def finetuning_config(
    command: str, example: str, config: Path | None, assignments: Sequence[str] | None, **options: Any
) -> FinetuneConfig:
    """What a fine-tuning is asked to do, from the same arguments as of `pretraining_config`.

    Args:
        command: as it is typed, for errors.
        example: the whole command, where it lacks something.
        config: a TOML file of settings.
        assignments: ``key=value``, over all else.
        options: by the name of their parameter in the command.

    Raises:
        InputError: if they are no settings of a fine-tuning, or name no rows or no model.
    """
    values = given_settings(config, by_setting(FINETUNING_SETTINGS, options), assignments or [])
    for key, what in _NEEDED.items():
        if not values.get(key):
            raise InputError(f"{command} needs {what}", "none", f"For example: {example}")
    return FinetuneConfig.parse(values, where=told_where(config, "the options"))
