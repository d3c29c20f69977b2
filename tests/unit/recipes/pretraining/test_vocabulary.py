"""A trained model goes on with the ids that it knows."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertsmith.corpus.config import CorpusConfig
from bertsmith.corpus.prepare import prepare_corpus
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.pretraining.options import ModelChoice, PretrainConfig
from bertsmith.recipes.pretraining.run import pretrain_run
from bertsmith.recipes.pretraining.start_model import start_model
from bertsmith.recipes.pretraining.vocabulary import words_beyond
from bertsmith.text.documents import Document
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.tokenization.training import train_tokenizer
from made_corpora import made_texts, made_tokenizer
from made_tasks import made_encoder

ALGORITHMS = ("wordpiece", "bpe", "unigram")
WORDS = ("tachycardia", "stenosis")
each_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


@pytest.fixture(scope="module")
def another() -> Tokenizer:
    """As many pieces as `made_tokenizer` has, but others."""
    texts = [text.replace("the", "ihr").replace("a", "o") for text in made_texts(200)]
    config = TokenizerConfig(vocab_size=made_tokenizer().vocab_size)
    return train_tokenizer(lambda: texts, config)


def _beyond(own: Tokenizer, tokenizer: Tokenizer) -> tuple[str, ...]:
    return words_beyond(own, tokenizer, num_embeddings=own.vocab_size)


def _rewritten(tokenizer: Tokenizer, folder: Path, change: Callable[[dict[str, Any]], None]) -> Tokenizer:
    """The tokenizer with another `tokenizer.json`."""
    tokenizer.save(folder)
    path = folder / "tokenizer.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    change(values)
    path.write_text(json.dumps(values), encoding="utf-8")
    return Tokenizer.from_folder(folder)


def _swap(values: dict[str, Any]) -> None:
    pieces = values["model"]["vocab"]
    pieces["river"], pieces["garden"] = pieces["garden"], pieces["river"]


def _lowercase(values: dict[str, Any]) -> None:
    values["normalizer"] = {"type": "Lowercase"}


def _shorter_words(values: dict[str, Any]) -> None:
    values["model"]["max_input_chars_per_word"] = 100


def _other_frame(values: dict[str, Any]) -> None:
    pieces = values["model"]["vocab"]
    cls, sep = (["[SEP]", pieces["[SEP]"]], ["[CLS]", pieces["[CLS]"]])
    values["post_processor"] = {"type": "BertProcessing", "cls": cls, "sep": sep}


def _wrap(values: dict[str, Any]) -> None:
    values["normalizer"] = {"type": "Sequence", "normalizers": [values["normalizer"]]}


@each_algorithm
def test_a_tokenizer_is_its_own(algorithm: str, tmp_path: Path) -> None:
    own = made_tokenizer(algorithm)
    own.save(tmp_path)
    assert _beyond(own, own) == _beyond(own, Tokenizer.from_folder(tmp_path)) == ()


@each_algorithm
def test_words_that_were_added_are_told_once_and_again(algorithm: str, tmp_path: Path) -> None:
    own = made_tokenizer(algorithm)
    own.with_words(WORDS).save(tmp_path)
    larger = Tokenizer.from_folder(tmp_path)
    assert _beyond(own, larger) == WORDS
    assert _beyond(larger, larger.with_words(["angiogram"])) == ("angiogram",)


@each_algorithm
def test_the_same_tokenizer_written_otherwise_is_taken(algorithm: str, tmp_path: Path) -> None:
    own = made_tokenizer(algorithm)
    again = _rewritten(own, tmp_path / "same", _wrap)
    larger = _rewritten(own.with_words(WORDS), tmp_path / "larger", _wrap)
    assert again.fingerprint != own.fingerprint
    assert (_beyond(own, again), _beyond(own, larger)) == ((), WORDS)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_swap, "id .* is “garden” in it, and “river”|id .* is “river” in it, and “garden”"),
        (_lowercase, "“The quick"),
        (_shorter_words, "“longlong"),
        (_other_frame, "a pair of texts has other ids"),
    ],
)
def test_one_that_differs_is_refused_by_what_differs(
    change: Callable[[dict[str, Any]], None], told: str, tmp_path: Path
) -> None:
    own = made_tokenizer()
    with pytest.raises(InputError, match=told):
        _beyond(own, _rewritten(own, tmp_path / "plain", change))
    with pytest.raises(InputError, match=told):
        _beyond(own, _rewritten(own.with_words(WORDS), tmp_path / "larger", change))


def test_fewer_words_or_others_of_the_same_number_are_refused() -> None:
    own = made_tokenizer()
    larger = own.with_words(WORDS)
    with pytest.raises(InputError, match="is nothing in it"):
        _beyond(larger, own)
    with pytest.raises(InputError, match="angiogram"):
        _beyond(larger, own.with_words([WORDS[0], "angiogram"]))


def _settings(source: Path, model: Path, **more: object) -> PretrainConfig:
    values = {"sources": (str(source),), "model": {"start": str(model)}, "max_length": 32, "length": {"steps": 1}}
    return PretrainConfig.parse(values | more, where="a test")


def test_another_tokenizer_is_refused_before_anything_is_written(another: Tokenizer, tmp_path: Path) -> None:
    assert another.vocab_size == made_tokenizer().vocab_size
    model = made_encoder(tmp_path / "model")
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(made_texts(30)), encoding="utf-8")
    another.save(tmp_path / "tokenizer")
    documents = [Document(text=text, source="made.txt") for text in made_texts(30)]
    prepare_corpus(documents, another, tmp_path / "corpus", CorpusConfig(workers=1), sources=[])
    configs = [
        _settings(text, model, tokenizer_folder=str(tmp_path / "tokenizer")),
        _settings(tmp_path / "corpus", model),
    ]
    before = sorted(tmp_path.rglob("*"))
    for config in configs:
        with pytest.raises(InputError, match="A trained model goes on only with its own tokenizer"):
            pretrain_run(config, tmp_path / "out")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_model_is_not_begun_from_ids_that_it_does_not_know(another: Tokenizer, tmp_path: Path) -> None:
    choice = ModelChoice(start=str(made_encoder(tmp_path / "model")))
    counts = np.ones(another.vocab_size, np.int64)
    with pytest.raises(InputError, match="A trained model goes on only with its own tokenizer"):
        start_model(choice, another, token_counts=counts, objective="mlm", seed=0)
