"""Our optimizers against torch's, and against the papers' formulas written out in numpy."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from bertsmith.foundation.random_streams import random_stream
from bertsmith.model import Model
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.muon import orthogonal
from bertsmith.training.optimizer import RATE_RATIO, new_optimizer
from made_corpora import made_model

RATES = (1e-2, 3e-2, 2e-2, 1e-2, 5e-3)
STARTS_LATE = "pooler.dense.weight"
"""Has no gradient in the first two steps, so that its means are younger than all others."""
ALL_ZERO = "encoder.embeddings.segment.weight"
BETA1, BETA2, EPS, DECAY = 0.9, 0.98, 1e-3, 0.1
"""eps is large, so that its place in a formula shows."""

Arrays = dict[str, np.ndarray]
Rule = Callable[[str, np.ndarray, np.ndarray, dict[str, np.ndarray | int], float], np.ndarray]
"""From a weight's name, itself, its gradient, its state (to be changed) and the rate to the weight after the step."""


def _model(dtype: torch.dtype = torch.float64) -> Model:
    model = made_model(40, pairs=True).to(dtype)
    with torch.no_grad():
        model.get_parameter(ALL_ZERO).zero_()
        for name, weight in model.named_parameters():
            if weight.ndim < 2:  # So that a decay of vectors would show.
                weight.copy_(torch.from_numpy(random_stream(1, name).standard_normal(weight.shape)))
    return model


def _gradients(model: Model) -> Iterator[Arrays]:
    """Gradients of each step. Their sizes differ by weight and jump once, which is what StableAdamW is for."""
    for step in range(len(RATES)):
        yield {
            name: (20.0 if step == 3 else 1.0)
            * 10.0 ** (number % 5 - 3)
            * random_stream(0, "gradient", step, name).standard_normal(tuple(weight.shape))
            for number, (name, weight) in enumerate(model.named_parameters())
            if step >= 2 or name != STARTS_LATE
        }


def _run(model: Model, config: OptimizerConfig) -> Arrays:
    """Weights after all steps, as `train_step` would take them."""
    optimizer = new_optimizer(model, config)
    for rate, gradients in zip(RATES, _gradients(model), strict=True):
        for name, weight in model.named_parameters():
            weight.grad = torch.from_numpy(gradients[name]).to(weight.dtype) if name in gradients else None
        for group in optimizer.param_groups:
            group["lr"] = rate * group[RATE_RATIO]
        optimizer.step()
    return {name: weight.detach().double().numpy() for name, weight in model.named_parameters()}


def _by_the_book(model: Model, rule: Rule) -> Arrays:
    weights: Arrays = {name: weight.detach().numpy().copy() for name, weight in model.named_parameters()}
    states: dict[str, dict[str, np.ndarray | int]] = {
        name: {"m": np.zeros_like(weight), "v": np.zeros_like(weight), "t": 0} for name, weight in weights.items()
    }
    for rate, gradients in zip(RATES, _gradients(model), strict=True):
        for name, gradient in gradients.items():
            weights[name] = rule(name, weights[name], gradient, states[name], rate)
    return weights


def _published_direction(weight: np.ndarray, gradient: np.ndarray, state: dict[str, np.ndarray | int]) -> np.ndarray:
    state["m"] = BETA1 * state["m"] + (1 - BETA1) * gradient
    state["v"] = BETA2 * state["v"] + (1 - BETA2) * gradient**2
    return state["m"] / (np.sqrt(state["v"]) + EPS) + (DECAY * weight if weight.ndim > 1 else 0.0)


def _adam_published(
    name: str, weight: np.ndarray, gradient: np.ndarray, state: dict[str, np.ndarray | int], rate: float
) -> np.ndarray:
    return weight - rate * _published_direction(weight, gradient, state)


def _lamb(
    name: str, weight: np.ndarray, gradient: np.ndarray, state: dict[str, np.ndarray | int], rate: float
) -> np.ndarray:
    direction = _published_direction(weight, gradient, state)
    if weight.ndim < 2:
        return weight - rate * direction
    parts = 3 if "query_key_value" in name else 1
    moved = []
    for matrix, step in zip(np.split(weight, parts), np.split(direction, parts), strict=True):
        size, length = np.linalg.norm(matrix), np.linalg.norm(step)
        moved.append(matrix - rate * (size / length if size > 0 and length > 0 else 1.0) * step)
    return np.concatenate(moved)


def _stable_adamw(
    name: str, weight: np.ndarray, gradient: np.ndarray, state: dict[str, np.ndarray | int], rate: float
) -> np.ndarray:
    state["t"] += 1
    time = state["t"]
    beta1 = BETA1 * (1 - BETA1 ** (time - 1)) / (1 - BETA1**time)
    beta2 = BETA2 * (1 - BETA2 ** (time - 1)) / (1 - BETA2**time)
    state["m"] = beta1 * state["m"] + (1 - beta1) * gradient
    state["v"] = beta2 * state["v"] + (1 - beta2) * gradient**2
    rms = np.sqrt(np.mean(gradient**2 / np.maximum(state["v"], EPS**2)))
    rate = rate / max(1.0, rms)
    decay = DECAY if weight.ndim > 1 else 0.0
    return weight - rate * decay * weight - rate * state["m"] / (np.sqrt(state["v"]) + EPS)


@pytest.mark.parametrize(
    ("kind", "rule"), [("adam_published", _adam_published), ("lamb", _lamb), ("stable_adamw", _stable_adamw)]
)
def test_a_kind_follows_its_paper(kind: str, rule: Rule) -> None:
    config = OptimizerConfig(kind=kind, beta1=BETA1, beta2=BETA2, eps=EPS, weight_decay=DECAY)
    expected, found = _by_the_book(_model(), rule), _run(_model(), config)
    assert expected.keys() == found.keys()
    for name, weight in expected.items():
        np.testing.assert_allclose(found[name], weight, rtol=1e-9, atol=1e-12, err_msg=name)


def test_the_jump_of_the_gradients_is_one_that_stable_adamw_shortens() -> None:
    settings = {"beta1": BETA1, "beta2": BETA2, "eps": EPS, "weight_decay": DECAY}
    stable, plain = (_run(_model(), OptimizerConfig(kind=kind, **settings)) for kind in ("stable_adamw", "adamw"))
    assert all(np.abs(stable[name] - plain[name]).max() > 1e-4 for name in plain if name != STARTS_LATE)


def test_adamw_is_torchs() -> None:
    model = _model()
    reference = torch.optim.AdamW(
        [
            {"params": [weight for weight in model.parameters() if weight.ndim > 1], "weight_decay": DECAY},
            {"params": [weight for weight in model.parameters() if weight.ndim < 2], "weight_decay": 0.0},
        ],
        betas=(BETA1, BETA2),
        eps=EPS,
        foreach=False,
    )
    for rate, gradients in zip(RATES, _gradients(model), strict=True):
        for name, weight in model.named_parameters():
            weight.grad = torch.from_numpy(gradients[name]) if name in gradients else None
        for group in reference.param_groups:
            group["lr"] = rate
        reference.step()
    found = _run(_model(), OptimizerConfig(beta1=BETA1, beta2=BETA2, eps=EPS, weight_decay=DECAY))
    for name, weight in model.named_parameters():
        np.testing.assert_allclose(found[name], weight.detach().numpy(), rtol=1e-9, atol=1e-12, err_msg=name)


def test_muon_is_torchs_with_query_key_and_value_apart() -> None:
    config = OptimizerConfig(matrices="muon", weight_decay=DECAY)
    ratio = config.muon_learning_rate / config.learning_rate
    model = _model(torch.float32)
    names = [name for name, weight in model.named_parameters() if "encoder.layers" in name and weight.ndim == 2]
    parts = {name: 3 if "query_key_value" in name else 1 for name in names}
    split = {
        name: [torch.nn.Parameter(part.clone()) for part in model.get_parameter(name).detach().chunk(parts[name])]
        for name in names
    }
    reference = torch.optim.Muon(
        [weight for weights in split.values() for weight in weights], weight_decay=DECAY, adjust_lr_fn="original"
    )
    for rate, gradients in zip(RATES, _gradients(model), strict=True):
        for name, weights in split.items():
            for weight, part in zip(weights, torch.from_numpy(gradients[name]).float().chunk(parts[name]), strict=True):
                weight.grad = part
        reference.param_groups[0]["lr"] = rate * ratio
        reference.step()
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    found = _run(model, config)
    for name, weights in split.items():
        expected = torch.cat(weights).detach()
        moved = float((expected - before[name]).norm())
        assert moved > 0.1
        # Both iterate in bf16, in another order.
        assert float((torch.from_numpy(found[name]) - expected).norm()) < 0.02 * moved, name


@pytest.mark.parametrize("shape", [(16, 16), (8, 32), (48, 12)])
def test_orthogonal_keeps_singular_vectors_and_evens_their_values(shape: tuple[int, int]) -> None:
    matrices = torch.from_numpy(random_stream(0, "orthogonal").standard_normal((3, *shape))).float()
    for before, after in zip(matrices, orthogonal(100 * matrices), strict=True):
        left, _, right = torch.linalg.svd(before, full_matrices=False)
        values = left.mT @ after.float() @ right.mT
        assert values.diagonal().min() > 0.5
        assert values.diagonal().max() < 1.5
        assert (values - values.diagonal().diag()).abs().max() < 0.05
