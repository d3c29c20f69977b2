"""What every comparison with the reference needs."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from transformers.models.modernbert import modeling_modernbert
from transformers.utils import logging

from bertsmith.tokenization import Tokenizer, TokenizerConfig, train_tokenizer


@pytest.fixture(autouse=True)
def _quiet_and_exact() -> Iterator[None]:
    logging.disable_progress_bar()
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # Tiny matrices: more threads only wait for each other.
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _rotations_of_full_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference rounds queries and keys to fp32 before it turns them, whatever the model has."""
    turn = modeling_modernbert.rotate_half

    def rotated(query: Tensor, key: Tensor, cosine: Tensor, sine: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, ...]:
        cosine, sine = cosine.unsqueeze(unsqueeze_dim), sine.unsqueeze(unsqueeze_dim)
        return tuple(value * cosine + turn(value) * sine for value in (query, key))

    monkeypatch.setattr(modeling_modernbert, "apply_rotary_pos_emb", rotated)


@pytest.fixture(scope="session")
def tiny_tokenizer() -> Tokenizer:
    """A tokenizer with fewer entries than any random model has embeddings."""
    return train_tokenizer(lambda: ["abab ba ab aa bb"] * 3, TokenizerConfig(vocab_size=10))
