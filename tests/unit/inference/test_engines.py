"""What a model is for, and which engine refuses which job."""

from typing import Any

import numpy as np
import pytest

from bertsmith.engine.device import Device
from bertsmith.foundation.errors import InputError
from bertsmith.inference.engine import job_of, refuse_unfit
from bertsmith.inference.running import TokenWindow
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model import HeadsConfig, Model, ModelConfig
from made_corpora import made_model, made_tokenizer
from made_predictors import TASKS, made_task_model

CPU, BF16 = Device("cpu", "fp32"), Device("cpu", "bf16")


def _language_model() -> Model:
    return made_model(made_tokenizer().vocab_size, spread=0.3)


@pytest.mark.parametrize("task", TASKS)
def test_a_model_with_a_task_is_for_that(task: Any) -> None:
    model = made_task_model(task)
    assert job_of(model.config) == task
    TorchEngine(model, CPU).refuse_other(task)


def test_a_model_without_a_task_fills_masks_or_embeds() -> None:
    config = _language_model().config
    assert job_of(config) == "fill"
    assert job_of(ModelConfig(encoder=config.encoder, heads=HeadsConfig(masked_language_model=False))) == "embed"


def test_a_model_does_its_own_task_and_every_model_embeds() -> None:
    engine = TorchEngine(made_task_model("classify"), CPU)
    engine.refuse_other("embed")
    with pytest.raises(InputError, match=r"tag needs a model.*a model trained to classify.*bertsmith classify DIR"):
        engine.refuse_other("tag")
    with pytest.raises(InputError, match="head over the vocabulary"):
        engine.refuse_other("fill")
    with pytest.raises(ValueError, match="no head over the vocabulary"):
        engine.vocabulary([], [])


def test_a_task_that_nobody_trained_for_is_refused_with_the_command_that_trains() -> None:
    refuse_unfit("tag", "tag")
    with pytest.raises(InputError, match=r"without a trained head for it.*bertsmith finetune tag TRAIN"):
        refuse_unfit("tag", None)


def test_an_engine_says_how_it_multiplies_and_what_its_model_is() -> None:
    model = made_task_model("classify")
    assert TorchEngine(model, CPU).precision == "fp32"
    assert TorchEngine(model, BF16).precision == "bf16"
    assert TorchEngine(model, CPU).config is model.config


def test_scores_over_the_vocabulary_do_not_depend_on_neighbours_and_keep_their_order() -> None:
    engine = TorchEngine(_language_model(), CPU)
    windows = [TokenWindow(np.arange(length) + 5, np.zeros(length, np.int64)) for length in (9, 3, 6)]
    places = [[1, 7], [2], []]
    together = engine.vocabulary(windows, places)
    assert [len(scores) for scores in together] == [2, 1, 0]
    for window, asked, scores in zip(windows, places, together, strict=True):
        np.testing.assert_allclose(engine.vocabulary([window], [asked])[0], scores, atol=1e-5)
    assert engine.vocabulary([], []) == []
