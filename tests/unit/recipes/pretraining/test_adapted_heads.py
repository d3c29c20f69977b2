"""Heads of the model that a pre-training begins with: what is kept, what is left out, what cannot be."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bertsmith.folders.model_folder import read_model, write_model
from bertsmith.foundation.errors import InputError
from bertsmith.model import EncoderConfig, HeadsConfig, Model, ModelConfig, new_model
from bertsmith.recipes.pretraining.options import ModelChoice, PretrainConfig
from bertsmith.recipes.pretraining.run import pretrain_run
from bertsmith.recipes.pretraining.start_model import StartModel, refuse_unfit_start, start_model
from made_corpora import made_corpus, made_model, made_texts, made_tokenizer
from made_heads import made_head
from made_language_models import made_elmo
from made_tasks import made_encoder

TOKENIZER = made_tokenizer()
WIDE: dict[str, Any] = {"mlm_head": "linear", "mlm_head_input": "all_layers"}


def _start(folder: Path, objective: str, **choice: Any) -> StartModel:
    counts = np.ones(TOKENIZER.vocab_size, np.int64)
    start = ModelChoice(start=str(folder), **choice)
    return start_model(start, TOKENIZER, token_counts=counts, objective=objective, seed=0)


def _written(folder: Path, model: Model) -> Path:
    folder.mkdir()
    write_model(folder, model, TOKENIZER)
    return folder


def _bare(encoder: EncoderConfig) -> Model:
    return new_model(ModelConfig(encoder=encoder, heads=HeadsConfig(masked_language_model=False)), seed=0)


def _pooler(model: Model) -> torch.Tensor:
    assert model.pooler is not None
    return model.pooler.dense.weight


def test_the_pooler_stays_and_what_is_left_out_is_named(tmp_path: Path) -> None:
    folder = made_encoder(tmp_path / "model", pairs=True)
    before = read_model(folder).model
    found = _start(folder, "mlm")
    assert torch.equal(_pooler(found.model), _pooler(before))
    assert found.model.next_sentence is None
    said = "\n".join(found.notes)
    assert "not part of --objective mlm, so left out: next sentence" in said
    assert "the pooler stays as it is" in said
    assert "begun anew" not in said


def test_another_task_over_pairs_has_the_pooler_and_its_own_head(tmp_path: Path) -> None:
    folder = made_encoder(tmp_path / "model", pairs=True)
    found = _start(folder, "mlm+sop")
    assert torch.equal(_pooler(found.model), _pooler(read_model(folder).model))
    said = "\n".join(found.notes)
    assert "left out: next sentence" in said
    assert "begun anew: sentence_order" in said
    assert "the pooler stays" not in said
    assert not any("left out" in note or "pooler" in note for note in _start(folder, "mlm+nsp").notes)


@pytest.mark.parametrize(
    ("task", "labels"), [("classify", ("dry", "wet")), ("tag", ("O", "PER")), ("answer", ()), ("regress", ())]
)
def test_the_head_of_a_task_is_left_out_by_name(task: str, labels: tuple[str, ...], tmp_path: Path) -> None:
    source = made_head(task, labels=labels)
    found = _start(_written(tmp_path / "model", source), "mlm")
    assert torch.equal(_pooler(found.model), _pooler(source))
    assert any(f"left out: the head of the task {task}" in note for note in found.notes)
    assert any("begun anew: masked_language_model" in note for note in found.notes)


def test_a_training_that_does_not_use_the_pooler_keeps_its_weights(tmp_path: Path) -> None:
    folder = made_encoder(tmp_path / "model", pairs=True)
    corpus = made_corpus(tmp_path / "corpus", made_texts(30), held_out=0.2)
    values = {
        "sources": (str(corpus.folder),),
        "model": {"start": str(folder)},
        "max_length": 32,
        "length": {"steps": 2},
        "training": {"batch_tokens": 256, "optimizer": {"learning_rate": 1e-2, "weight_decay": 0.5}},
        "runtime": {"device": "cpu", "precision": "fp32", "threads": 1},
    }
    run = pretrain_run(PretrainConfig.parse(values, where="a test"), tmp_path / "out")
    before, after = read_model(folder).model, read_model(run.model_folder).model
    assert torch.equal(_pooler(after), _pooler(before))
    tokens = "encoder.embeddings.token.weight"
    assert not torch.equal(after.state_dict()[tokens], before.state_dict()[tokens])


@pytest.mark.parametrize(
    ("start", "objective", "heads"),
    [
        ("bert-toy", "mlm", WIDE),
        ("bert-toy", "causal", WIDE),
        ("roberta-base", "mlm+nsp", WIDE),
        ("albert-base", "mlm", {"mlm_head": "linear"}),
    ],
)
def test_heads_that_do_not_fit_the_encoder_are_refused_before_work(
    start: str, objective: str, heads: dict[str, Any], tmp_path: Path
) -> None:
    refused = "the model's settings: tie_embeddings must be false"
    with pytest.raises(InputError, match=refused):
        refuse_unfit_start(ModelChoice(start=start, **heads), objective)
    refuse_unfit_start(ModelChoice(start=start, **heads, tie_embeddings=False), objective)
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(made_texts(30)), encoding="utf-8")
    values = {"sources": (str(text),), "objective": objective, "model": {"start": start, **heads}}
    with pytest.raises(InputError, match=refused):
        pretrain_run(PretrainConfig.parse(values, where="a test"), tmp_path / "out")
    assert list(tmp_path.iterdir()) == [text]


def test_a_folder_without_a_head_gets_the_one_that_is_asked_for(tmp_path: Path) -> None:
    encoder = made_model(TOKENIZER.vocab_size).config.encoder
    folder = _written(tmp_path / "model", _bare(encoder))
    with pytest.raises(InputError, match="tie_embeddings must be false"):
        refuse_unfit_start(ModelChoice(start=str(folder), **WIDE), "mlm")
    with pytest.raises(InputError, match="tie_embeddings must be false"):
        _start(folder, "mlm", **WIDE)
    heads = _start(folder, "mlm", **WIDE, tie_embeddings=False).model.config.heads
    assert (heads.mlm_head, heads.mlm_head_input, heads.tie_embeddings) == ("linear", "all_layers", False)


def test_an_elmo_without_a_head_gets_its_own(tmp_path: Path) -> None:
    folder = _written(tmp_path / "elmo", _bare(made_elmo().config.encoder))
    refuse_unfit_start(ModelChoice(start=str(folder)), "bilm")
    assert _start(folder, "bilm").model.config.heads.mlm_head == "linear"


@pytest.mark.parametrize(
    "setting", [{"mlm_head": "linear"}, {"mlm_head_input": "all_layers"}, {"tie_embeddings": False}]
)
def test_settings_of_a_head_that_is_there_are_refused(setting: dict[str, Any], tmp_path: Path) -> None:
    folder = made_encoder(tmp_path / "model")
    ((name, value),) = setting.items()
    with pytest.raises(InputError, match=f"model.{name}={value}, and the head of .* goes on"):
        refuse_unfit_start(ModelChoice(start=str(folder), **setting), "mlm")
    with pytest.raises(InputError, match=f"model.{name}={value}"):
        _start(folder, "mlm", **setting)


def test_settings_that_the_folders_head_has_anyway_are_taken(tmp_path: Path) -> None:
    encoder = made_model(TOKENIZER.vocab_size).config.encoder
    heads = HeadsConfig(mlm_head="linear", tie_embeddings=False)
    folder = _written(tmp_path / "model", new_model(ModelConfig(encoder=encoder, heads=heads), seed=0))
    for choice in ({}, {"mlm_head": "linear", "tie_embeddings": False}):
        refuse_unfit_start(ModelChoice(start=str(folder), **choice), "mlm")
        assert _start(folder, "mlm", **choice).model.config.heads == heads


@pytest.mark.parametrize("setting", [{"mlm_head_input": "all_layers"}, {"tie_embeddings": False}])
def test_settings_of_a_head_are_refused_for_an_elmo(setting: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="--objective bilm has a head of its own"):
        refuse_unfit_start(ModelChoice(start="bert-toy", **setting), "bilm")
    refuse_unfit_start(ModelChoice(start="bert-toy", mlm_head="linear"), "bilm")
