"""Whatever the documents are, they are found again token by token, in order, split by split."""

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertsmith.corpus import blocks
from bertsmith.corpus.corpus import Split
from bertsmith.corpus.prepare import CorpusConfig, prepare_corpus
from bertsmith.corpus.verify import verify_corpus
from bertsmith.text.documents import Document
from bertsmith.text.sentences import split_sentences
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.tokenization.training import train_tokenizer

FEW_WORDS = st.lists(st.sampled_from(["Cats", "dogs.", "run!", "Home.", "\u200b", "\n", "é", "漢字。"]), max_size=8)
TEXTS = st.lists(FEW_WORDS.map(" ".join) | st.text(max_size=20), max_size=12)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(lambda: ["Cats run. Cats saw dogs! Dogs run home."], TokenizerConfig(vocab_size=35))


def _documents_of(split: Split) -> list[list[list[int]]]:
    starts = split.sentence_starts
    flat, lengths = split.tokens_of(starts[:-1], starts[1:])
    sentences = [part.tolist() for part in np.split(flat, np.cumsum(lengths)[:-1])] if len(lengths) else []
    bounds = split.document_starts.tolist()
    return [sentences[begin:end] for begin, end in itertools.pairwise(bounds)]


def _without_empty(sentences: list[list[int]]) -> list[list[int]]:
    return [sentence for sentence in sentences if sentence]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=TEXTS,
    fraction=st.sampled_from([0.0, 0.05, 0.5]),
    seed=st.integers(0, 3),
    shard_tokens=st.sampled_from([1, 3, 1000]),
    block_characters=st.sampled_from([1, 30, 10_000]),
)
def test_every_document_is_found_again_in_order_on_one_side(
    tokenizer: Tokenizer, texts: list[str], fraction: float, seed: int, shard_tokens: int, block_characters: int
) -> None:
    expected = [_without_empty(tokenizer.piece_ids(split_sentences(text))) for text in texts]
    kept = [(text, document) for text, document in zip(texts, expected, strict=True) if document]
    if not kept:
        return
    config = CorpusConfig(workers=1, validation_fraction=fraction, seed=seed, shard_tokens=shard_tokens)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_CHARACTERS", block_characters)
        documents = [Document(text=text, source="made.txt") for text in texts]
        corpus = prepare_corpus(documents, tokenizer, Path(folder) / "out", config)
        assert verify_corpus(corpus.folder) == []
        train, validation = (_documents_of(corpus.split(name)) for name in ("train", "validation"))
        assert corpus.manifest.dropped_documents == len(texts) - len(kept)
        if corpus.manifest.held_out == "last_sentences":
            assert len(kept) == 1
            assert train[0] + validation[0] == kept[0][1]
            return
        assert any(
            train == [document for text, document in kept if text not in held_out]
            and validation == [document for text, document in kept if text in held_out]
            for held_out in _possibly_held_out(kept, validation)
        )
        if fraction > 0 and len({text for text, _ in kept}) > 1:
            assert train
            assert validation


def _possibly_held_out(
    kept: list[tuple[str, list[list[int]]]], validation: list[list[list[int]]]
) -> list[frozenset[str]]:
    """Every set of texts that may be the held-out ones; different texts may share their tokens."""
    choices = [frozenset[str]()]
    for text, document in dict(kept).items():
        if document in validation:
            choices += [choice | {text} for choice in choices]
    return choices
