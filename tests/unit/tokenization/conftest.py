"""Small tokenizers, trained once."""

import pytest
from small_tokenizers import trained

from bertsmith.tokenization import Tokenizer


@pytest.fixture(scope="session", params=["wordpiece", "bpe", "unigram"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return trained(request.param)


@pytest.fixture(scope="session")
def wordpiece() -> Tokenizer:
    return trained("wordpiece")
