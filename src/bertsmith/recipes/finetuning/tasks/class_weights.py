"""Class weights where a task has no classes."""

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.finetuning.options import FinetuneConfig


def refuse_class_weights(config: FinetuneConfig, reason: str) -> None:
    """Raise an `InputError` for class weights in a task that has no classes."""
    if config.class_weights != "none":
        raise InputError(
            f"class_weights must be none for {config.task}: {reason}", config.class_weights, "Leave it out."
        )
