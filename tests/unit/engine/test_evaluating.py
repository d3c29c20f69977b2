"""A model is asked without dropout, and afterwards is as it was, whatever happened."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluate, evaluating
from bertsmith.inference.direction import influence
from bertsmith.inference.features import layer_means
from bertsmith.inference.fill import FillPredictor
from bertsmith.inference.generate import generate
from bertsmith.inference.running import TokenWindow
from bertsmith.inference.task_outputs import window_outputs
from bertsmith.inference.token_scores import token_log_probabilities
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model import Model
from bertsmith.objectives.classification import class_logits
from bertsmith.objectives.masked_language_model import MaskedLanguageModel
from made_corpora import made_tokenizer
from made_language_models import made_bert, made_gpt
from made_tasks import made_classifier

CPU = Device("cpu", "fp32")
IDS = np.arange(5, 12)
WINDOW = TokenWindow(IDS, np.zeros_like(IDS))


class _Failure(Exception):
    pass


def _fails(*given: object) -> None:
    raise _Failure


def _breaks(model: Model) -> Model:
    """A model in training whose embeddings fail."""
    model.encoder.embeddings.register_forward_hook(_fails)  # pyright: ignore[reportCallIssue, reportAttributeAccessIssue]
    return model.train()


USES: dict[str, tuple[Callable[[], Model], Callable[[Model], object]]] = {
    "direction": (made_bert, lambda model: influence(model, IDS, replacement=4)),
    "features": (made_bert, lambda model: layer_means(model, [WINDOW], CPU)),
    "scores": (
        made_bert,
        lambda model: token_log_probabilities(model, [WINDOW], [np.array([2])], mask_id=4, device=CPU),
    ),
    "writing": (made_gpt, lambda model: generate(model, made_tokenizer(), "the old river")),
    "filling": (made_bert, lambda model: FillPredictor(TorchEngine(model, CPU), made_tokenizer())(["the [MASK]"])),
    "classes": (
        lambda: made_classifier(("dry", "wet")),
        lambda model: window_outputs(model, [WINDOW], CPU, class_logits, per_token=False),
    ),
    "objective": (made_bert, lambda model: evaluate(model, MaskedLanguageModel(), map(_fails, "a"), CPU)),  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize("use", USES)
def test_a_model_in_training_trains_on_after_a_failure(use: str) -> None:
    make, ask = USES[use]
    model = _breaks(make())
    with pytest.raises(_Failure):
        ask(model)
    assert model.training


@pytest.mark.parametrize("trains", [True, False])
def test_nothing_is_dropped_out_inside_and_the_mode_comes_back(trains: bool) -> None:
    model = made_bert().train(trains)
    with evaluating(model):
        assert not any(module.training for module in model.modules())
    assert all(module.training == trains for module in model.modules())


def test_asking_leaves_no_gradient() -> None:
    model = made_bert().train()
    assert not layer_means(model, [WINDOW], CPU).requires_grad
    assert torch.is_grad_enabled()
    assert model.training
