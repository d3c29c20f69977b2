"""A tokenizer that exists beside settings of training one, and words that are added to it."""

from pathlib import Path
from typing import Any

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.comparison.options import CompareConfig
from bertsmith.recipes.comparison.run import compare_run
from bertsmith.recipes.pretraining.checks import refuse_early
from bertsmith.recipes.pretraining.corpus import corpus_of_run
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.run import pretrain_run
from bertsmith.recipes.pretraining.start_defaults import with_start_defaults
from bertsmith.recipes.run_folder import RunFolder
from bertsmith.tokenization.tokenizer import Tokenizer
from made_corpora import made_texts, made_tokenizer
from made_tasks import made_encoder


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, a tokenizer, one from elsewhere that says nothing of its training, and a model."""
    folder = tmp_path_factory.mktemp("given")
    (folder / "text.txt").write_text("\n\n".join(made_texts(40)), encoding="utf-8")
    made_tokenizer().save(folder / "tokenizer")
    made_tokenizer().save(folder / "bare")
    (folder / "bare" / "tokenizer_config.json").unlink()
    made_encoder(folder / "model")
    return folder


def _values(work: Path, by: str) -> dict[str, Any]:
    brought = {"model": {"start": str(work / "model")}} if by == "model" else {"tokenizer_folder": str(work / by)}
    return {"sources": (str(work / "text.txt"),), "max_length": 32} | brought


def _parsed(values: dict[str, Any]) -> PretrainConfig:
    return with_start_defaults(PretrainConfig.parse(values, where="a test"))


@pytest.mark.parametrize("by", ["tokenizer", "bare", "model"])
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"lowercase": True}, "tokenizer.lowercase=true"),
        ({"vocab_size": 8000}, "tokenizer.vocab_size=8000"),
        ({"algorithm": "bpe", "strip_accents": True}, "tokenizer.algorithm=bpe, tokenizer.strip_accents=true"),
    ],
)
def test_settings_of_training_a_tokenizer_beside_one_that_exists_are_refused(
    by: str, settings: dict[str, Any], told: str, work: Path, tmp_path: Path
) -> None:
    config = _parsed(_values(work, by) | {"tokenizer": settings})
    named = "--model .*model, a folder with its tokenizer" if by == "model" else f"--tokenizer .*{by}"
    with pytest.raises(InputError, match=f"must be given where one is trained.*: {told}, and {named}"):
        pretrain_run(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_comparison_refuses_them_too(work: Path, tmp_path: Path) -> None:
    values = _values(work, "tokenizer") | {"tokenizer": {"vocab_size": 500}}
    with pytest.raises(InputError, match=r"must be given where one is trained.*vocab_size=500"):
        compare_run(CompareConfig.parse(values, where="a test"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("by", ["tokenizer", "model"])
def test_settings_that_a_tokenizer_was_trained_with_are_taken_beside_it(by: str, work: Path) -> None:
    trained = made_tokenizer().config
    assert trained is not None
    for settings in ({"vocab_size": trained.vocab_size}, trained.model_dump(), {}):
        refuse_early(_parsed(_values(work, by) | {"tokenizer": settings}))


@pytest.mark.parametrize("start", ["bert-toy", "roberta-base", "albert-base"])
def test_a_family_asks_for_no_algorithm_where_a_tokenizer_is_named(start: str, work: Path) -> None:
    config = _parsed(_values(work, "tokenizer") | {"model": {"start": start}})
    refuse_early(config)
    # What a run writes down can be given again.
    again = _parsed(config.written)
    refuse_early(again)
    assert again.written == config.written


def _extended(work: Path, text: str, count: int, folder: Path) -> tuple[Tokenizer, list[str]]:
    folder.mkdir()
    (folder / "text.txt").write_text(text, encoding="utf-8")
    values = _values(work, "model") | {"sources": (str(folder / "text.txt"),), "extend_vocabulary": count}
    config, said = _parsed(values), []
    _, tokenizer = corpus_of_run(config, RunFolder(folder / "out", config), said.append)
    return tokenizer, [line for line in said if "words to add" in line]


def test_fewer_words_than_were_asked_for_are_told(work: Path, tmp_path: Path) -> None:
    known = "the old harbour was quiet.\n\n" * 8
    text = known + "Tachycardia stenosis.\n\n" * 6 + "Angiogram.\n\n" * 4
    tokenizer, told = _extended(work, text, 9, tmp_path / "few")
    assert len(tokenizer.added_words) == 2
    assert told == [
        "note: 2 words to add in place of 9: the text has no more that come 5 times and are several pieces now"
    ]
    tokenizer, told = _extended(work, text, 2, tmp_path / "enough")
    assert len(tokenizer.added_words) == 2
    assert told == []
    tokenizer, told = _extended(work, known, 3, tmp_path / "none")
    assert tokenizer.added_words == ()
    assert told[0].startswith("note: 0 words to add in place of 3")
