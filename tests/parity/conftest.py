"""What every comparison with the reference needs."""

from collections.abc import Iterator

import pytest
import torch
from transformers.utils import logging

from bertsmith.tokenization import Tokenizer, TokenizerConfig, train_tokenizer


@pytest.fixture(autouse=True)
def _quiet_and_exact() -> Iterator[None]:
    logging.disable_progress_bar()
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # Tiny matrices: more threads only wait for each other.
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny_tokenizer() -> Tokenizer:
    """A tokenizer with fewer entries than any random model has embeddings."""
    return train_tokenizer(lambda: ["abab ba ab aa bb"] * 3, TokenizerConfig(vocab_size=10))
