"""What a run knows of its encoder before it begins: padding, vocabulary, dropout, rates."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.model import Dropout, EncoderConfig
from bertsmith.recipes.comparison.options import CompareConfig
from bertsmith.recipes.comparison.run import compare_run
from bertsmith.recipes.comparison.training import comparison_corpus
from bertsmith.recipes.pretraining.checks import refuse_early
from bertsmith.recipes.pretraining.corpus import corpus_of_run
from bertsmith.recipes.pretraining.options import ModelChoice, PretrainConfig
from bertsmith.recipes.pretraining.run import pretrain_run
from bertsmith.recipes.pretraining.start_defaults import with_start_defaults
from bertsmith.recipes.pretraining.start_encoder import known_encoder, refuse_unknown_start
from bertsmith.recipes.pretraining.start_model import start_model
from bertsmith.recipes.run_folder import RunFolder
from made_corpora import made_corpus, made_texts, made_tokenizer
from made_tasks import made_encoder

SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
ROBERTA = SIZES | {"model_type": "roberta", "type_vocab_size": 1, "max_position_embeddings": 66}
BERT = SIZES | {"model_type": "bert", "max_position_embeddings": 64}


def _file(folder: Path, **values: object) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    return str(path)


def _started(start: str, algorithm: str, **choice: Any) -> tuple[EncoderConfig, list[str]]:
    tokenizer = made_tokenizer(algorithm)
    counts = np.ones(tokenizer.vocab_size, np.int64)
    found = start_model(ModelChoice(start=start, **choice), tokenizer, token_counts=counts, objective="mlm", seed=0)
    return found.model.config.encoder, list(found.notes)


def _text(folder: Path, count: int = 60) -> str:
    path = folder / "text.txt"
    path.write_text("\n\n".join(made_texts(count)), encoding="utf-8")
    return str(path)


def _config(**values: Any) -> PretrainConfig:
    return PretrainConfig.parse({"max_length": 32} | values, where="a test")


@pytest.mark.parametrize(("algorithm", "pad_id"), [("wordpiece", 0), ("bpe", 1)])
def test_the_tokenizer_decides_the_padding_id_and_the_positions_stay(
    algorithm: str, pad_id: int, tmp_path: Path
) -> None:
    encoder, notes = _started(_file(tmp_path, **ROBERTA, pad_token_id=1), algorithm)
    assert encoder.pad_token_id == pad_id
    assert encoder.num_positions == 64
    if pad_id == 1:
        assert notes == []
    else:
        (note,) = notes
        assert "config.json pads with id 1, and the tokenizer with 0" in note
        assert "65 rows of positions in place of 66 give the same 64" in note


def test_a_padding_id_that_moves_no_position_is_told_in_a_word(tmp_path: Path) -> None:
    encoder, notes = _started(_file(tmp_path, **BERT, pad_token_id=3), "wordpiece")
    assert (encoder.pad_token_id, encoder.max_position_embeddings) == (0, 64)
    assert notes == ["config.json pads with id 3, and the tokenizer with 0, which counts"]


def test_a_padding_id_that_no_file_names_is_told_where_positions_move(tmp_path: Path) -> None:
    encoder, notes = _started(_file(tmp_path, **BERT), "bpe")
    assert encoder.pad_token_id == 1
    assert notes == []
    encoder, notes = _started(_file(tmp_path, **ROBERTA), "wordpiece")
    assert (encoder.pad_token_id, encoder.num_positions) == (0, 64)
    assert len(notes) == 1


def test_rows_that_were_asked_for_stay_as_asked(tmp_path: Path) -> None:
    start = _file(tmp_path, **ROBERTA, pad_token_id=0)
    encoder, notes = _started(start, "bpe", max_position_embeddings=40)
    assert (encoder.max_position_embeddings, encoder.num_positions) == (40, 38)
    assert notes == ["config.json pads with id 0, and the tokenizer with 1, which counts"]
    # So the longest sequence is known with the tokenizer alone.
    made_tokenizer("bpe").save(tmp_path / "tokenizer")
    values = {"sources": (_text(tmp_path),), "tokenizer_folder": str(tmp_path / "tokenizer")}
    model = {"start": start, "max_position_embeddings": 40}
    refuse_early(_config(**values, model=model, max_length=38))
    with pytest.raises(InputError, match=r"--max-length must not exceed the positions of the model.*has 38"):
        refuse_early(_config(**values, model=model, max_length=39))


@pytest.mark.parametrize("given", ["tokenizer", "corpus", "vocab_size"])
def test_a_tokenizer_larger_than_the_vocabulary_of_a_file_is_refused_before_work(given: str, tmp_path: Path) -> None:
    made_tokenizer().save(tmp_path / "tokenizer")
    made_corpus(tmp_path / "corpus", made_texts(30), held_out=0.2)
    entries = made_tokenizer().vocab_size
    values: dict[str, Any] = {"sources": (_text(tmp_path),), "max_length": 32} | {
        "tokenizer": {"tokenizer_folder": str(tmp_path / "tokenizer")},
        "corpus": {"sources": (str(tmp_path / "corpus"),)},
        "vocab_size": {"tokenizer": {"vocab_size": entries}},
    }[given]
    too_large = f"must not have more entries.*{entries} entries, and {entries - 1} embeddings in "
    start = _file(tmp_path, **BERT, vocab_size=entries - 1)
    with pytest.raises(InputError, match=too_large):
        refuse_early(_config(**values, model={"start": start}))
    with pytest.raises(InputError, match=too_large):
        compare_run(CompareConfig.parse(values | {"model": start}, where="a test"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    refuse_early(_config(**values, model={"start": _file(tmp_path, **BERT, vocab_size=entries)}))


def test_a_tokenizer_of_no_size_in_particular_is_no_larger_than_the_vocabulary_of_a_file(tmp_path: Path) -> None:
    start = _file(tmp_path, **BERT, vocab_size=200)
    config = _config(sources=(_text(tmp_path, 200),), model={"start": start})
    _, tokenizer = corpus_of_run(config, RunFolder(tmp_path / "out", config), lambda message: None)
    assert tokenizer.vocab_size == 200
    compared = CompareConfig(sources=config.sources, model=start)
    _, tokenizer = comparison_corpus(compared, RunFolder(tmp_path / "compared", compared), lambda message: None)
    assert tokenizer.vocab_size == 200
    free = _config(sources=config.sources, model={"start": _file(tmp_path, **BERT)})
    _, tokenizer = corpus_of_run(free, RunFolder(tmp_path / "free", free), lambda message: None)
    assert tokenizer.vocab_size > 200


def test_a_file_without_dropout_rates_means_the_published_ones_and_the_setting_says_so(tmp_path: Path) -> None:
    start = _file(tmp_path, **BERT)
    assert known_encoder(ModelChoice(start=start)).dropout == Dropout.everywhere(0.1)
    assert known_encoder(ModelChoice(start="bert-toy")).dropout == Dropout()
    assert known_encoder(ModelChoice(start=start, dropout=Dropout())).dropout == Dropout()
    said = ModelChoice.model_fields["dropout"].description or ""
    assert "preset" in said
    assert "0.1" in said


def test_both_rates_are_a_tenth_where_a_trained_model_goes_on(tmp_path: Path) -> None:
    folder = str(made_encoder(tmp_path / "model"))

    def rates(start: str, **optimizer: object) -> tuple[float, float]:
        values = {"sources": ("text",), "model": {"start": start}, "training": {"optimizer": optimizer}}
        found = with_start_defaults(_config(**values))
        # As a run writes them down, they are taken again.
        assert with_start_defaults(_config(**found.written)).written == found.written
        return found.training.optimizer.learning_rate, found.training.optimizer.muon_learning_rate

    assert rates("bert-toy", kind="adamw", matrices="muon") == (1e-3, 0.02)
    assert rates(folder, matrices="muon") == (1e-4, 2e-3)
    assert rates(folder, matrices="muon", muon_learning_rate=0.03) == (1e-4, 0.03)
    assert rates(folder, matrices="muon", learning_rate=5e-4) == (5e-4, 2e-3)
    # Without Muon its rate is no setting.
    assert rates(folder) == (1e-4, 0.02)


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_a_file_whose_vocabulary_holds_no_alphabet_is_named(algorithm: str, tmp_path: Path) -> None:
    start = _file(tmp_path, **BERT, vocab_size=20)
    config = _config(sources=(_text(tmp_path),), model={"start": start}, tokenizer={"algorithm": algorithm})
    told = r"vocab_size=20.*, as the model has 20 embeddings\. Use vocab_size=\d+ or more in the model's config\.json\."
    with pytest.raises(InputError, match=told):
        pretrain_run(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_name_on_the_hub_leads_to_its_import() -> None:
    with pytest.raises(
        InputError, match=r"on the Hub, bertsmith import google-bert/bert-base-cased --out bert-base-cased fetches"
    ):
        refuse_unknown_start(ModelChoice(start="google-bert/bert-base-cased"))
    with pytest.raises(InputError) as error:
        refuse_unknown_start(ModelChoice(start="./no-such-folder"))
    assert "bertsmith import" not in str(error.value)
