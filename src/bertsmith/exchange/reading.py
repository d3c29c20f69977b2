"""Opening a folder from elsewhere, and saying what about it was not as it is written today."""

from dataclasses import dataclass
from pathlib import Path

from bertsmith.folders.model_folder import read_model, read_tokenizer
from bertsmith.model import Model
from bertsmith.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class Opened:
    """A model and its tokenizer, and what a person should know of how they were read."""

    model: Model
    tokenizer: Tokenizer
    notes: tuple[str, ...]


def open_folder(folder: Path) -> Opened:
    """Open a folder in the Hugging Face layout.

    Raises:
        InputError: if it is of no known family, weights of its encoder are missing or do not fit its config, tied ones
            disagree, a file is damaged or would run code, or there is no tokenizer that fits.
    """
    read = read_model(folder)
    vocab_size = read.model.config.encoder.vocab_size
    tokenizer = read_tokenizer(folder, vocab_size=vocab_size)
    notes = [*read.differences, *read.notes]
    if tokenizer.vocab_size < vocab_size:
        notes.append(
            f"padded vocabulary: {vocab_size:,} embeddings for {tokenizer.vocab_size:,} tokens; "
            f"the {vocab_size - tokenizer.vocab_size:,} more are kept"
        )
    if read.model.pooler is None and read.model.config.uses_pooler:
        notes.append(
            "ATTENTION, NO POOLER: the weights hold none, as after training on masks alone. A classifier on this "
            "model begins its pooler from random weights, which costs it steps and may cost it accuracy"
        )
    return Opened(read.model, tokenizer, tuple(notes))
