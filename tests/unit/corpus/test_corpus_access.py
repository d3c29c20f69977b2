"""Opening a corpus and reading tokens out of it, across token files and processes."""

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from bertsmith.corpus.corpus import Corpus
from bertsmith.corpus.prepare import CorpusConfig, prepare_corpus
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import read_manifest, write_json
from bertsmith.text.documents import Document
from bertsmith.tokenization.tokenizer import Tokenizer


@pytest.fixture
def corpus(tmp_path: Path, tokenizer: Tokenizer, documents: list[Document]) -> Corpus:
    return prepare_corpus(documents, tokenizer, tmp_path / "whole", CorpusConfig(workers=1))


@pytest.fixture
def sharded(tmp_path: Path, tokenizer: Tokenizer, documents: list[Document]) -> Corpus:
    """The same corpus in token files that are shorter than a sentence."""
    return prepare_corpus(documents, tokenizer, tmp_path / "sharded", CorpusConfig(workers=1, shard_tokens=7))


def test_shards_shorter_than_a_sentence_hold_the_same_tokens(corpus: Corpus, sharded: Corpus) -> None:
    whole, parts = corpus.split("train"), sharded.split("train")
    assert whole.statistics.longest_sentence > 7
    sizes = [path.stat().st_size for path in sorted(parts.folder.glob("tokens-*.bin"))]
    assert len(sizes) > 100
    assert set(sizes[:-1]) == {14}
    assert np.array_equal(whole.tokens(0, whole.num_tokens), parts.tokens(0, parts.num_tokens))
    assert np.array_equal(whole.sentence_starts, parts.sentence_starts)
    assert np.array_equal(whole.document_starts, parts.document_starts)


def test_many_ranges_read_at_once_equal_the_ranges_read_alone(corpus: Corpus, sharded: Corpus) -> None:
    stream = np.random.default_rng(0)
    for split in (corpus.split("train"), sharded.split("train"), sharded.split("validation")):
        bounds = np.sort(stream.integers(0, split.num_tokens + 1, size=(100, 2)), axis=1)
        bounds[0], bounds[1], bounds[2] = (0, split.num_tokens), (5, 5), (split.num_tokens, split.num_tokens)
        flat, lengths = split.tokens_of(bounds[:, 0], bounds[:, 1])
        alone = [split.tokens(int(start), int(end)) for start, end in bounds]
        assert lengths.tolist() == [len(part) for part in alone]
        assert np.array_equal(flat, np.concatenate(alone))


def test_no_ranges_and_empty_ranges_give_no_tokens(corpus: Corpus) -> None:
    split = corpus.split("train")
    for starts in (np.empty(0, dtype=np.int64), np.array([3, 9])):
        flat, lengths = split.tokens_of(starts, starts)
        assert flat.tolist() == []
        assert lengths.tolist() == [0] * len(starts)


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (3, 2), (0, 10**9)])
def test_ranges_outside_the_split_are_refused(corpus: Corpus, start: int, end: int) -> None:
    split = corpus.split("train")
    with pytest.raises(IndexError):
        split.tokens(start, end)
    with pytest.raises(IndexError):
        split.tokens_of(np.array([0, start]), np.array([1, end]))


def test_a_pickle_carries_the_place_and_not_the_tokens(corpus: Corpus) -> None:
    split = corpus.split("train")
    expected = split.tokens(0, split.num_tokens)
    assert split.sentence_starts[-1] == split.num_tokens
    pickled = pickle.dumps(split)
    assert len(pickled) < 1_000
    again = pickle.loads(pickled)
    assert np.array_equal(again.tokens(0, again.num_tokens), expected)
    assert np.array_equal(again.sentence_starts, split.sentence_starts)
    assert pickle.loads(pickle.dumps(corpus)).fingerprint == corpus.fingerprint


def test_nothing_writes_through_the_maps(corpus: Corpus) -> None:
    split = corpus.split("train")
    for mapped in (split.sentence_starts, split.document_starts, split.token_counts):
        with pytest.raises(ValueError, match="read-only"):
            mapped[0] = 1


def test_the_tokenizer_comes_with_the_corpus(corpus: Corpus, tokenizer: Tokenizer) -> None:
    again = Tokenizer.from_folder(corpus.tokenizer_folder)
    assert again.fingerprint == tokenizer.fingerprint == corpus.manifest.tokenizer_fingerprint


def test_a_moved_corpus_opens_with_the_same_fingerprint(corpus: Corpus, tmp_path: Path) -> None:
    shutil.move(corpus.folder, tmp_path / "moved")
    assert Corpus.open(tmp_path / "moved").fingerprint == corpus.fingerprint


def test_a_folder_that_is_no_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds manifest\.json"):
        Corpus.open(tmp_path)
    write_json(tmp_path / "manifest.json", {"files": {}})
    with pytest.raises(InputError, match="bertsmith prepare"):
        Corpus.open(tmp_path)


def test_a_corpus_of_another_version_is_refused(corpus: Corpus) -> None:
    write_json(corpus.folder / "manifest.json", {**read_manifest(corpus.folder), "format_version": 2})
    with pytest.raises(InputError, match=r"version 2 in .* Prepare it again"):
        Corpus.open(corpus.folder)


def test_a_manifest_with_a_missing_entry_is_refused(corpus: Corpus) -> None:
    entries = read_manifest(corpus.folder)
    del entries["vocab_size"]
    write_json(corpus.folder / "manifest.json", entries)
    with pytest.raises(InputError, match="vocab_size is wrong"):
        Corpus.open(corpus.folder)
