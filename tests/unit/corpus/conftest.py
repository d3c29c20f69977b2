"""One small tokenizer and some documents for the tests of the corpus."""

import random

import pytest

from bertsmith.text.documents import Document
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.tokenization.training import train_tokenizer

WORDS = (
    "the",
    "cat",
    "saw",
    "a",
    "dog",
    "by",
    "the",
    "old",
    "river",
    "and",
    "went",
    "home",
    "before",
    "dark",
    "while",
    "rain",
    "fell",
    "on",
    "every",
    "roof",
)


def made_documents(count: int, seed: int = 0) -> list[Document]:
    """Documents of one to twelve sentences, no two of them equal."""
    stream = random.Random(seed)
    documents = []
    for number in range(count):
        sentences = [" ".join(stream.choices(WORDS, k=stream.randint(3, 12))) for _ in range(stream.randint(1, 12))]
        text = " ".join(f"{sentence.capitalize()}." for sentence in [f"the {number} cat", *sentences])
        documents.append(Document(text=text, source="made.txt"))
    return documents


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    texts = [document.text for document in made_documents(60)]
    return train_tokenizer(lambda: texts, TokenizerConfig(vocab_size=120))


@pytest.fixture
def documents() -> list[Document]:
    return made_documents(60)
