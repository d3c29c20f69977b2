"""How long the sequences are that a model is used on: no longer than those that it was trained on."""

import json
from pathlib import Path
from typing import Any

import pytest

from bertsmith.recipes.evaluate import evaluate_run
from bertsmith.recipes.import_model import import_model_run
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.run import pretrain_run
from bertsmith.recipes.results import Run
from bertsmith.tokenization.tokenizer import Tokenizer
from made_corpora import made_corpus, made_texts
from made_tasks import made_encoder


def _run(work: Path, start: Path, max_length: int) -> Run:
    values: dict[str, Any] = {
        "sources": (str(made_corpus(work / "corpus", made_texts(30), held_out=0.2).folder),),
        "model": {"start": str(start)},
        "max_length": max_length,
        "length": {"steps": 2},
        "training": {"batch_tokens": 256},
        "runtime": {"device": "cpu", "precision": "fp32", "threads": 1},
    }
    return pretrain_run(PretrainConfig.parse(values, where="a test"), work / "run")


def _length(folder: Path) -> int | None:
    return Tokenizer.from_folder(folder).model_max_length


@pytest.fixture
def fresh(tmp_path: Path) -> Run:
    """A run of fresh weights that has 64 positions and learned 32 of them."""
    config = json.loads((made_encoder(tmp_path / "sizes") / "config.json").read_text(encoding="utf-8"))
    config["max_position_embeddings"] = 64
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return _run(tmp_path, tmp_path / "config.json", 32)


def test_a_model_and_its_checkpoints_say_how_long_their_sequences_were(fresh: Run) -> None:
    for folder in (fresh.model_folder, *(fresh.folder / "checkpoints").iterdir()):
        assert _length(folder) == 32


def test_evaluating_takes_that_length_where_none_is_asked_for(fresh: Run, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(" ".join(made_texts(8)), encoding="utf-8")

    def loss(max_length: int | None) -> float:
        found = evaluate_run(
            fresh.model_folder, tmp_path / "text.txt", max_length=max_length, device="cpu", precision="fp32"
        )
        return found.metrics["loss"]

    assert loss(None) == loss(32) != loss(64)


def test_it_goes_along_where_the_folder_is_imported(fresh: Run, tmp_path: Path) -> None:
    assert _length(import_model_run(fresh.model_folder, tmp_path / "imported").folder) == 32


@pytest.mark.parametrize(("known", "asked", "left"), [(None, 16, 64), (40, 16, 40), (20, 32, 32)])
def test_a_model_that_goes_on_keeps_what_it_had_learned(
    known: int | None, asked: int, left: int, tmp_path: Path
) -> None:
    start = made_encoder(tmp_path / "model")
    settings = json.loads((start / "tokenizer_config.json").read_text(encoding="utf-8"))
    settings["model_max_length"] = known if known is not None else int(1e30)  # So it stands where nothing is known.
    (start / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    assert _length(_run(tmp_path, start, asked).model_folder) == left
