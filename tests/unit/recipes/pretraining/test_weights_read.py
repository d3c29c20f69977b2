"""How often the weights of a model folder are read."""

from pathlib import Path

import pytest

from bertsmith.folders import model_folder
from bertsmith.folders.model_folder import ReadModel
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.plan import plan
from bertsmith.recipes.pretraining import start_model
from bertsmith.recipes.pretraining.checks import refuse_early
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.run import pretrain_run
from bertsmith.training.events import CheckpointWritten
from made_corpora import made_corpus, made_texts
from made_tasks import made_encoder

WEIGHTS = "model.safetensors"


class _Killed(Exception):
    pass


def _killed_at_the_first_checkpoint(event: object) -> None:
    if isinstance(event, CheckpointWritten):
        raise _Killed


@pytest.fixture
def config(tmp_path: Path) -> PretrainConfig:
    made_encoder(tmp_path / "model")
    corpus = made_corpus(tmp_path / "corpus", made_texts(30), held_out=0.2)
    values = {
        "sources": (str(corpus.folder),),
        "model": {"start": str(tmp_path / "model")},
        "max_length": 32,
        "length": {"steps": 3},
        "training": {"batch_tokens": 256, "checkpoint_every_minutes": 1e-9},
        "runtime": {"device": "cpu", "precision": "fp32", "threads": 1},
    }
    return PretrainConfig.parse(values, where="a test")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders whose weights were read by the start of a run."""
    folders: list[Path] = []

    def note(folder: Path, *, weights: bool = True) -> ReadModel:
        if weights:
            folders.append(folder)
        return model_folder.read_model(folder, weights=weights)

    monkeypatch.setattr(start_model, "read_model", note)
    return folders


def test_a_run_reads_the_weights_that_it_goes_on_from_once(
    config: PretrainConfig, read: list[Path], tmp_path: Path
) -> None:
    refuse_early(config)
    assert read == []
    pretrain_run(config, tmp_path / "out")
    assert read == [tmp_path / "model"]


def test_a_resume_needs_no_weights_but_its_checkpoint(config: PretrainConfig, read: list[Path], tmp_path: Path) -> None:
    with pytest.raises(_Killed):
        pretrain_run(config, tmp_path / "out", observers=[_killed_at_the_first_checkpoint])
    (tmp_path / "model" / WEIGHTS).unlink()
    read.clear()
    assert pretrain_run(config, tmp_path / "out").steps == 3
    assert read == []
    with pytest.raises(InputError, match=r"A model folder holds model\.safetensors"):
        pretrain_run(config, tmp_path / "another")


def test_a_plan_of_a_folder_reads_no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made_encoder(tmp_path / "model", pairs=True)
    parameters = sum(weight.numel() for weight in model_folder.read_model(folder).model.parameters())

    def refuse(*given: object, **more: object) -> None:
        raise AssertionError

    monkeypatch.setattr(model_folder, "empty_model", refuse)
    assert plan(folder).parameters == parameters
