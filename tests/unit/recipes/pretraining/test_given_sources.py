"""A prepared corpus beside settings that it has decided, and runs that are begun anew over what they are made from."""

from pathlib import Path
from typing import Any

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.comparison.options import CompareConfig
from bertsmith.recipes.comparison.run import compare_run
from bertsmith.recipes.pretraining.checks import refuse_early
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.run import pretrain_run
from bertsmith.recipes.pretraining.start_defaults import with_start_defaults
from bertsmith.recipes.run_folder import RunFolder
from made_corpora import made_corpus, made_texts, made_tokenizer
from made_tasks import made_encoder, made_rows, write_rows

DECIDED: list[tuple[dict[str, Any], str]] = [
    ({"tokenizer_folder": "TOKENIZER"}, "--tokenizer"),
    ({"tokenizer": {"lowercase": True}}, "settings of tokenizer"),
    ({"tokenizer": {"vocab_size": 8000}}, "settings of tokenizer"),
    ({"text": {"layout": "line"}}, "settings of text"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    made_tokenizer().save(folder / "tokenizer")
    return made_corpus(folder / "corpus", made_texts(40), held_out=0.2).folder


def _given(values: dict[str, Any], corpus: Path) -> dict[str, Any]:
    tokenizer = {"tokenizer_folder": str(corpus.parent / "tokenizer")} if "tokenizer_folder" in values else {}
    return {"sources": (str(corpus),), "max_length": 32} | values | tokenizer


@pytest.mark.parametrize(
    ("values", "told"), [*DECIDED, ({"corpus": {"validation_fraction": 0.3}}, "settings of corpus")]
)
def test_settings_that_a_corpus_has_decided_are_refused(
    values: dict[str, Any], told: str, corpus: Path, tmp_path: Path
) -> None:
    config = PretrainConfig.parse(_given(values, corpus), where="a test")
    with pytest.raises(InputError, match=f"A prepared corpus brings.*{told}"):
        pretrain_run(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_settings_that_the_tokenizer_of_a_corpus_was_trained_with_are_taken(corpus: Path) -> None:
    trained = made_tokenizer().config
    assert trained is not None
    for settings in ({"vocab_size": trained.vocab_size}, trained.model_dump()):
        values = {"sources": (str(corpus),), "max_length": 32, "tokenizer": settings}
        refuse_early(PretrainConfig.parse(values, where="a test"))


@pytest.mark.parametrize(("values", "told"), DECIDED)
def test_a_comparison_refuses_them_too(values: dict[str, Any], told: str, corpus: Path, tmp_path: Path) -> None:
    config = CompareConfig.parse(_given(values, corpus), where="a test")
    with pytest.raises(InputError, match=f"A prepared corpus brings.*{told}"):
        compare_run(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("start", ["bert-toy", "roberta-base", "albert-base"])
def test_settings_that_a_run_over_a_corpus_wrote_down_are_taken(start: str, corpus: Path) -> None:
    values = {"sources": (str(corpus),), "max_length": 32, "model": {"start": start}, "corpus": {"workers": 1}}
    config = with_start_defaults(PretrainConfig.parse(values, where="a test"))
    again = with_start_defaults(PretrainConfig.parse(config.written, where="a run"))
    refuse_early(again)
    assert again.written == config.written


@pytest.mark.parametrize("given", ["model", "corpus", "tokenizer", "config"])
def test_no_restart_of_a_pretraining_costs_what_it_is_made_from(given: str, tmp_path: Path) -> None:
    out, text = tmp_path / "run", tmp_path / "text.txt"
    text.write_text("\n\n".join(made_texts(30)), encoding="utf-8")
    RunFolder(out, PretrainConfig(sources=(str(text),))).write({})
    made_encoder(out / "model")
    made_tokenizer().save(out / "tokenizer")
    made_corpus(out / "corpus", made_texts(30), held_out=0.2)
    values = {
        "model": {"model": {"start": str(out / "model")}},
        "config": {"model": {"start": str(out / "model" / "config.json")}},
        "corpus": {"sources": (str(out / "corpus"),)},
        "tokenizer": {"tokenizer_folder": str(out / "tokenizer")},
    }
    config = PretrainConfig.parse({"sources": (str(text),), "max_length": 32} | values[given], where="a test")
    before = sorted(out.rglob("*"))
    with pytest.raises(InputError, match="--restart must not remove what the run is made from"):
        pretrain_run(config, out, restart=True)
    assert sorted(out.rglob("*")) == before


@pytest.mark.parametrize("given", ["corpus", "tokenizer", "labels", "model"])
def test_no_restart_of_a_comparison_costs_what_it_is_made_from(given: str, tmp_path: Path) -> None:
    out, text = tmp_path / "run", tmp_path / "text.txt"
    text.write_text("\n\n".join(made_texts(30)), encoding="utf-8")
    RunFolder(out, CompareConfig(sources=(str(text),))).write({})
    made_encoder(out / "bert" / "model")
    made_tokenizer().save(out / "tokenizer")
    made_corpus(out / "corpus", made_texts(30), held_out=0.2)
    write_rows(out / "rows.csv", made_rows({"wet": 60, "dry": 60}))
    values = {
        "model": {"model": str(out / "bert" / "model" / "config.json")},
        "corpus": {"sources": (str(out / "corpus"),)},
        "tokenizer": {"tokenizer_folder": str(out / "tokenizer")},
        "labels": {"task": {"labels": str(out / "rows.csv")}},
    }
    config = CompareConfig.parse({"sources": (str(text),), "max_length": 32} | values[given], where="a test")
    before = sorted(out.rglob("*"))
    with pytest.raises(InputError, match="--restart must not remove what the run is made from"):
        compare_run(config, out, restart=True)
    assert sorted(out.rglob("*")) == before
