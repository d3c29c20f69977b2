"""A tokenizer and ready folders for the tests of the model folder."""

from pathlib import Path

import pytest
from made_folders import small_config, varied_model

from bertsmith.folders.model_folder import write_model
from bertsmith.model import HeadsConfig
from bertsmith.tokenization import Tokenizer, TokenizerConfig, train_tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return train_tokenizer(
        lambda: ["the cat saw a dog by the river and the dog ran"] * 3, TokenizerConfig(vocab_size=36)
    )


@pytest.fixture
def folder(tmp_path: Path, tokenizer: Tokenizer) -> Path:
    """A folder with all published heads."""
    heads = HeadsConfig(pooler=True, next_sentence=True)
    write_model(tmp_path, varied_model(small_config(heads)), tokenizer)
    return tmp_path
