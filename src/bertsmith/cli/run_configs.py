"""Options of the commands that train or measure training, as a run's config: each option's setting stands here once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.settings import given_settings

_SHARED = {
    "max_length": "max_length",
    "epochs": "length.epochs",
    "steps": "length.steps",
    "minutes": "length.minutes",
    "device": "runtime.device",
    "precision": "runtime.precision",
    "threads": "runtime.threads",
    "seed": "training.seed",
}
_PRETRAINING = _SHARED | {
    "sources": "sources",
    "tokenizer": "tokenizer_folder",
    "model": "model.start",
    "objective": "objective",
    "extend_vocabulary": "extend_vocabulary",
    "batch_tokens": "training.batch_tokens",
}
_FINETUNING = _SHARED | {
    "task": "task",
    "train": "train",
    "model": "model",
    "validation": "validation",
    "text": "data.text",
    "pair": "data.pair",
    "label": "data.label",
    "strict": "data.strict",
    "encoding": "data.encoding",
    "batch_size": "training.batch_size",
    "learning_rate": "training.optimizer.learning_rate",
    "seeds": "seeds",
}
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
    values = _settings(_PRETRAINING, config, assignments, options)
    if not values.get("sources"):
        raise InputError(f"{command} needs text", "no source", "Name files, folders or a prepared corpus.")
    return PretrainConfig.parse(values, where=_where(config))


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
    values = _settings(_FINETUNING, config, assignments, options)
    for key, what in _NEEDED.items():
        if not values.get(key):
            raise InputError(f"{command} needs {what}", "none", f"For example: {example}")
    return FinetuneConfig.parse(values, where=_where(config))


def _settings(
    places: dict[str, str], config: Path | None, assignments: Sequence[str] | None, options: dict[str, Any]
) -> dict[str, Any]:
    """Values by setting; a path is written as it was typed."""
    given: dict[str, Any] = {}
    for name, value in options.items():
        # No text at all reaches a command as an empty list.
        given[places[name]] = str(value) if isinstance(value, Path) else None if value == [] else value
    return given_settings(config, given, assignments or [])


def _where(config: Path | None) -> str:
    return "the options" if config is None else str(config)
