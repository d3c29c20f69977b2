"""Which model a pre-training begins with, by its objective."""

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from bertsmith.folders.model_folder import write_model
from bertsmith.foundation.errors import InputError
from bertsmith.model import HeadsConfig, Model, ModelConfig, new_model, preset
from bertsmith.model.build import num_parameters
from bertsmith.model.like_size import elmo_of_like_size
from bertsmith.recipes.finetuning.start_model import open_source
from bertsmith.recipes.finetuning.start_model import start_model as start_task_model
from bertsmith.recipes.pretraining.options import ModelChoice
from bertsmith.recipes.pretraining.start_model import refuse_unfit_start, start_model
from made_corpora import made_tokenizer
from made_language_models import MADE

TOKENIZER = made_tokenizer()
TASK: dict[str, Any] = {"task": "classify", "labels": ("no", "yes")}
OBJECTIVE_OF = {"bert": "mlm", "gpt": "causal", "elmo": "bilm"}


def _start(start: str, objective: str) -> Model:
    counts = np.ones(TOKENIZER.vocab_size, np.int64)
    choice = ModelChoice(start=start)
    return start_model(choice, TOKENIZER, token_counts=counts, objective=objective, seed=0).model


def _written(kind: str, folder: Path) -> str:
    folder.mkdir()
    model = _start("modern-toy", "mlm") if kind == "modern" else MADE[kind]()
    write_model(folder, model, TOKENIZER)
    return str(folder)


def test_a_preset_becomes_what_the_objective_needs() -> None:
    models = [_start("bert-toy", objective) for objective in ("mlm", "causal", "bilm")]
    bert, gpt, elmo = (model.config for model in models)
    assert not bert.encoder.causal
    assert gpt.encoder == bert.encoder.model_copy(update={"causal": True})
    assert gpt.encoder.family == preset("bert-toy", vocab_size=1).family == "bert"
    assert elmo == elmo_of_like_size(bert)
    assert num_parameters(models[1]) == num_parameters(models[0])


@pytest.mark.parametrize("kind", MADE)
def test_a_folder_goes_on_with_its_own_objective(kind: str, tmp_path: Path) -> None:
    folder = _written(kind, tmp_path / kind)
    refuse_unfit_start(ModelChoice(start=folder), OBJECTIVE_OF[kind])
    model = _start(folder, OBJECTIVE_OF[kind])
    expected = MADE[kind]().state_dict()
    found = model.state_dict()
    assert found.keys() == expected.keys()
    assert all((found[name] == value).all() for name, value in expected.items())


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("other", ["mlm+sop", "causal", "bilm"])
def test_a_folder_that_reads_otherwise_is_refused_early_and_late(kind: str, other: str, tmp_path: Path) -> None:
    if other.split("+")[0] == OBJECTIVE_OF[kind]:
        other = "bilm" if kind == "gpt" else "causal"
    folder = _written(kind, tmp_path / kind)
    with pytest.raises(InputError, match=f"objective {other.replace('+', '.')} needs"):
        refuse_unfit_start(ModelChoice(start=folder), other)
    with pytest.raises(InputError, match=f"objective {other.replace('+', '.')} needs"):
        _start(folder, other)


@pytest.mark.parametrize("start", ["roberta-base", "albert-base", "modern-small"])
def test_a_family_that_has_no_causal_form_is_refused_early(start: str) -> None:
    with pytest.raises(InputError, match="causal"):
        refuse_unfit_start(ModelChoice(start=start), "causal")


@pytest.mark.parametrize(("kind", "read"), [("bert", "first"), ("modern", "mean"), ("gpt", "mean"), ("elmo", "mean")])
def test_a_classifier_reads_what_has_read_the_text(kind: str, read: str, tmp_path: Path) -> None:
    source = open_source(_written(kind, tmp_path / kind))
    model, _ = start_task_model(source, TASK, dropout=0.0, fresh_weights=False, seed=0)
    assert model.config.heads.classifier_input == read


@pytest.mark.parametrize("read", ["first", "mean"])
def test_a_classifier_that_was_trained_goes_on_reading_what_it_read(
    read: Literal["first", "mean"], tmp_path: Path
) -> None:
    heads = HeadsConfig(masked_language_model=False, classifier_input=read, labels=TASK["labels"])
    encoder = preset("modern-toy", vocab_size=TOKENIZER.vocab_size)
    write_model(tmp_path, new_model(ModelConfig(encoder=encoder, heads=heads), seed=0), TOKENIZER)
    model, _ = start_task_model(open_source(str(tmp_path)), TASK, dropout=0.0, fresh_weights=False, seed=0)
    assert model.config.heads.classifier_input == read


def test_a_config_of_an_elmo_gives_an_elmo(tmp_path: Path) -> None:
    _written("elmo", tmp_path / "elmo")
    values = json.loads((tmp_path / "elmo" / "config.json").read_text(encoding="utf-8"))
    assert values["model_type"] == "elmo"
    path = tmp_path / "config.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    assert _start(str(path), "bilm").config == MADE["elmo"]().config
