"""Small corpora and models that tests share, made from a seed and never from a file."""

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch

from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.corpus.config import CorpusConfig
from bertsmith.corpus.corpus import Corpus, Split
from bertsmith.corpus.manifest import SplitStatistics
from bertsmith.corpus.prepare import prepare_corpus
from bertsmith.model import Dropout, EncoderConfig, HeadsConfig, Model, ModelConfig, new_model
from bertsmith.text.documents import Document
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.tokenization.training import train_tokenizer

_WORDS = (
    "the a old small river harbour garden winter morning teacher sailor carpenter walked waited carried opened read "
    "found quiet heavy wooden letter window bridge boat lamp under over beside before after rain snow wind bread song "
    "and but while because every nobody somebody always never again"
)
WORDS = tuple(_WORDS.split())
_VOCAB_SIZES = {"wordpiece": 260, "bpe": 380, "unigram": 150}


def made_texts(count: int, *, sentences: tuple[int, int] = (1, 14), seed: int = 0) -> list[str]:
    """Documents of so many sentences at least and at most, no two of them equal."""
    stream = random.Random(seed)
    texts: list[str] = []
    for number in range(count):
        lines = [
            " ".join(stream.choices(WORDS, k=stream.randint(3, 16))).capitalize() + "."
            for _ in range(stream.randint(*sentences) - 1)
        ]
        texts.append(" ".join([f"Number {number} was {stream.choice(WORDS)}.", *lines]))
    return texts


@cache
def made_tokenizer(algorithm: str = "wordpiece") -> Tokenizer:
    """A tokenizer for `made_texts`."""
    config = TokenizerConfig.parse(
        {"algorithm": algorithm, "vocab_size": _VOCAB_SIZES[algorithm]}, where="a test's tokenizer"
    )
    return train_tokenizer(lambda: made_texts(200), config)


def made_corpus(folder: Path, texts: Sequence[str], *, algorithm: str = "wordpiece", held_out: float = 0.0) -> Corpus:
    """Texts, one document each, as a corpus."""
    documents = [Document(text=text, source="made.txt") for text in texts]
    config = CorpusConfig(validation_fraction=held_out, workers=1)
    return prepare_corpus(documents, made_tokenizer(algorithm), folder, config, sources=[])


def made_split(document_sentence_lengths: Sequence[Sequence[int]], *, first_id: int = 10) -> Split:
    """A split whose sentences have the lengths given; its tokens are numbered, so that each can be told."""
    lengths = [length for document in document_sentence_lengths for length in document]
    statistics = SplitStatistics(documents=len(document_sentence_lengths), sentences=len(lengths), tokens=sum(lengths))
    split = Split(Path("made"), statistics=statistics, dtype="int64", shard_tokens=max(1, sum(lengths)))
    counts = [len(document) for document in document_sentence_lengths]
    # Set in place of the memory maps that would be opened on first use.
    split.__dict__["sentence_starts"] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    split.__dict__["document_starts"] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    split.__dict__["_shards"] = [np.arange(sum(lengths), dtype=np.int64) + first_id]
    return split


def made_model(
    vocab_size: int,
    *,
    pairs: bool = False,
    dropout: float = 0.0,
    seed: int = 0,
    positions: int = 64,
    spread: float = 0.1,
) -> Model:
    """Two layers of width 16. Weights are spread more widely than published ones, so that outputs differ visibly."""
    encoder = EncoderConfig(
        vocab_size=vocab_size,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=positions,
        initializer_range=spread,
        dropout=Dropout.everywhere(dropout),
    )
    return new_model(ModelConfig(encoder=encoder, heads=HeadsConfig(pooler=pairs, next_sentence=pairs)), seed=seed)


def made_format(algorithm: str = "wordpiece") -> SequenceFormat:
    """How `made_tokenizer` frames text."""
    return SequenceFormat.of(made_tokenizer(algorithm))


def weights_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """A copy of every weight."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
