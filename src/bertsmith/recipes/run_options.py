"""Options of the commands and functions that train, by their names: each one's setting in a run's config stands here
once."""

from pathlib import Path
from typing import Any

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
PRETRAINING_SETTINGS = _SHARED | {
    "sources": "sources",
    "tokenizer": "tokenizer_folder",
    "model": "model.start",
    "objective": "objective",
    "extend_vocabulary": "extend_vocabulary",
    "batch_tokens": "training.batch_tokens",
}
FINETUNING_SETTINGS = _SHARED | {
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


def by_setting(places: dict[str, str], options: dict[str, Any]) -> dict[str, Any]:
    """Values of options by setting, a path as it was typed; None, or an empty list, says that one was not given.

    Args:
        places: the setting of each option.
        options: values by the names of their options.
    """
    given: dict[str, Any] = {}
    for name, value in options.items():
        is_empty = isinstance(value, list) and not value
        given[places[name]] = str(value) if isinstance(value, Path) else None if is_empty else value
    return given
