"""The tokenizer that somebody means."""

import os
from pathlib import Path

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.predict import model_folder_of
from bertsmith.tokenization.tokenizer import Tokenizer


def the_tokenizer(given: object) -> Tokenizer:
    """A tokenizer as it was given, or out of its folder, a model's or a run's.

    Raises:
        InputError: if it is none of these, or the folder holds none.
    """
    if isinstance(given, Tokenizer):
        return given
    if isinstance(given, str | os.PathLike):
        return Tokenizer.from_folder(model_folder_of(Path(given)))
    raise InputError(
        "tokenizer must be a bertsmith.Tokenizer, or the folder of one or of a model",
        type(given).__name__,
        "One of transformers is written by tokenizer.save_pretrained(DIR): give that folder.",
    )
