"""The three trainings of a comparison have one budget."""

from pathlib import Path
from typing import Any

import pytest

from bertsmith.corpus.corpus import Corpus
from bertsmith.examples.masking import MaskingConfig
from bertsmith.recipes.comparison import training
from bertsmith.recipes.comparison.options import CompareConfig
from bertsmith.recipes.pretraining.data import pretraining_data
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.results import Run
from bertsmith.recipes.run_folder import RunFolder
from bertsmith.training.config import LengthConfig, TrainingConfig
from made_corpora import made_corpus, made_format, made_texts

LENGTH, BATCH_TOKENS = 48, 200


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return made_corpus(tmp_path_factory.mktemp("made") / "corpus", made_texts(160, sentences=(1, 4)), held_out=0.1)


def _batches_per_epoch(corpus: Corpus, objective: str) -> int:
    data = pretraining_data(
        corpus,
        made_format(),
        objective=objective,
        max_length=LENGTH,
        masking=MaskingConfig(),
        training=TrainingConfig(batch_tokens=BATCH_TOKENS),
    )
    return data.train.batches_per_epoch


def _asked(corpus: Corpus, folder: Path, monkeypatch: pytest.MonkeyPatch, **values: Any) -> list[PretrainConfig]:
    """What the three trainings are asked to do."""
    asked: list[PretrainConfig] = []

    def note(config: PretrainConfig, out: Path, **rest: object) -> Run:
        asked.append(config)
        return Run(out, out / "model", config.length.steps or 7, 0, {}, None)

    monkeypatch.setattr(training, "pretrain_run", note)
    given = {"sources": [str(corpus.folder)], "max_length": LENGTH, "batch_tokens": BATCH_TOKENS, **values}
    config = CompareConfig.parse(given, where="a test")
    training.train_kinds(
        config, RunFolder(folder, config), corpus, started_at=0.0, observers=(), notify=lambda message: None
    )
    return asked


@pytest.mark.parametrize("bert_objective", ["mlm", "mlm+nsp"])
@pytest.mark.parametrize(("length", "epochs"), [({"epochs": 2.5}, 2.5), ({}, 3.0)])
def test_passes_are_counted_over_single_sequences_for_all_three(
    bert_objective: str,
    length: dict[str, float],
    epochs: float,
    corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = _asked(corpus, tmp_path / "compared", monkeypatch, bert_objective=bert_objective, length=length)
    assert [config.objective for config in asked] == [bert_objective, "causal", "bilm"]
    steps = round(epochs * _batches_per_epoch(corpus, "causal"))
    assert [config.length for config in asked] == [LengthConfig(steps=steps)] * 3
    assert {config.training.batch_tokens for config in asked} == {BATCH_TOKENS}
    # What the pairs alone would have asked of all three.
    assert steps != round(epochs * _batches_per_epoch(corpus, "mlm+nsp"))


def test_steps_are_taken_as_given(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _asked(corpus, tmp_path / "compared", monkeypatch, bert_objective="mlm+nsp", length={"steps": 5})
    assert [config.length for config in asked] == [LengthConfig(steps=5)] * 3
