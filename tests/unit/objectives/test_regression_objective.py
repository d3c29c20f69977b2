"""Regression: the loss, the scale, the scores."""

from typing import Any

import numpy as np
import pytest
import torch

from bertsmith.batches.task_loader import TaskLoader
from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluate
from bertsmith.examples.task_examples import text_examples
from bertsmith.foundation.errors import InputError
from bertsmith.model import HeadsConfig, Model
from bertsmith.objectives.correlation import pearson, spearman
from bertsmith.objectives.regression import (
    TERM,
    Regression,
    regression_scores,
    rescale,
    sequence_values,
    standardised,
)
from bertsmith.objectives.report import Objective, add_counts
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.step import TrainState, new_optimizer, train_step
from made_corpora import made_model, made_texts, made_tokenizer, weights_of
from made_heads import made_head, one_batch

CPU = Device("cpu", "fp32")
VALUES = np.array([3.0, 5.5, -1.0, 2.0, 2.0, 8.0])
SCALE = (3.25, 2.9)
EXAMPLES = text_examples(made_texts(6, sentences=(1, 3)), standardised(VALUES, SCALE), made_tokenizer(), max_length=64)


def _model(scale: tuple[float, float] | None = SCALE) -> Model:
    return made_head("regress", value_scale=scale)


@torch.no_grad()
def _values(model: Model) -> np.ndarray:
    return sequence_values(model.eval(), one_batch(EXAMPLES).packed)[:, 0].numpy()


def test_it_is_an_objective_without_hits() -> None:
    objective, batch = Regression(), one_batch(EXAMPLES)
    assert isinstance(objective, Objective)
    assert objective.counts(batch) == {TERM: 6}
    assert objective.report(_model(), batch, with_hits=True).hits == {}
    assert f"{TERM}_accuracy" not in evaluate(_model(), objective, [batch], CPU)


def test_the_loss_is_the_squared_error_of_standardised_values() -> None:
    model = _model()
    found = Regression().report(model.eval(), one_batch(EXAMPLES), with_hits=False)
    expected = np.square((_values(model) - VALUES) / SCALE[1]).mean()
    assert found.loss(found.counts).item() == pytest.approx(expected, rel=1e-5)
    assert regression_scores(_values(model), VALUES, spread=SCALE[1])["loss"] == pytest.approx(expected, rel=1e-5)


def test_parts_of_a_batch_add_up_to_the_whole() -> None:
    model, objective = _model().eval(), Regression()
    parts = TaskLoader(EXAMPLES, batch_size=6, micro_batch_tokens=60, seed=0).micro_batches(0)
    assert len(parts) > 1
    counts = add_counts(objective.counts(part) for part in parts)
    together = sum(objective.report(model, part, with_hits=False).loss(counts).item() for part in parts)
    whole = objective.report(model, one_batch(EXAMPLES), with_hits=False).loss(counts).item()
    assert together == pytest.approx(whole, rel=1e-5)


def test_one_step_moves_every_weight() -> None:
    model = _model().train()
    before = weights_of(model)
    state = TrainState(model, new_optimizer(model, OptimizerConfig()))
    batches = [one_batch(EXAMPLES)]
    train_step(state, batches, Regression(), device=CPU, learning_rate=1e-3, clip_norm=1.0, seed=0)
    assert {name for name, weight in weights_of(model).items() if torch.equal(weight, before[name])} == set()


def test_a_model_or_batch_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a head for one number"):
        Regression().report(made_model(made_tokenizer().vocab_size), one_batch(EXAMPLES), with_hits=False)


def test_standardised_values_have_mean_0_and_spread_1() -> None:
    found = standardised(VALUES, (float(VALUES.mean()), float(VALUES.std())))
    assert found.dtype == np.float32
    assert (found.mean(), found.std()) == pytest.approx((0.0, 1.0), abs=1e-6)
    assert standardised(VALUES, None).tolist() == VALUES.astype(np.float32).tolist()


def test_the_scale_can_be_written_into_the_head_and_taken_out_again() -> None:
    model = _model()
    before, values = weights_of(model), _values(model)
    rescale(model, SCALE, None)
    model.config = _model(None).config
    assert _values(model) == pytest.approx(values, rel=1e-5, abs=1e-5)
    other = (-7.0, 0.125)
    rescale(model, None, other)
    model.config = _model(other).config
    assert _values(model) == pytest.approx(values, rel=1e-5, abs=1e-4)
    changed = {name for name, weight in weights_of(model).items() if not torch.equal(weight, before[name])}
    assert changed == {"classifier.output.weight", "classifier.output.bias"}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"task": "choose", "value_scale": (0.0, 1.0)}, "value_scale belongs to task regress"),
        ({"task": "choose", "value_spread": 1.0}, "value_spread belongs to task regress"),
        ({"task": "regress", "value_scale": (1.0, 0.0)}, "must have a spread above 0"),
        ({"task": "regress", "value_spread": 0.0}, "value_spread"),
    ],
)
def test_a_scale_that_cannot_be_is_refused(values: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        HeadsConfig.parse(values, where="a test")


def test_the_head_is_exact_where_the_encoder_runs_in_half_precision() -> None:
    model = _model((2000.0, 5.0))
    exact = _values(model)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        found = sequence_values(model, one_batch(EXAMPLES).packed)
        rescale(model, (2000.0, 5.0), None)
        model.config = _model(None).config
        folded = sequence_values(model, one_batch(EXAMPLES).packed)
    assert found.dtype == folded.dtype == torch.float32
    # A number of this size in half precision is a multiple of 8.
    assert found[:, 0].numpy() == pytest.approx(exact, abs=1.0)
    assert folded.numpy() == pytest.approx(found.numpy(), abs=2e-3)


def test_scores_by_hand() -> None:
    scores = regression_scores(np.array([1.0, 2.0, 3.0, 6.0]), np.array([1.0, 3.0, 3.0, 5.0]))
    assert scores["mse"] == scores["loss"] == pytest.approx(0.5)
    assert scores["mae"] == pytest.approx(0.5)
    assert scores["r2"] == pytest.approx(1 - 0.5 / 2.0)
    assert scores["pearson"] == pytest.approx(10 / np.sqrt(14 * 8))
    assert scores["spearman"] == pytest.approx(4.5 / np.sqrt(5 * 4.5))


def test_scores_are_defined_where_one_side_is_constant() -> None:
    constant, other = np.full(3, 0.1), np.array([1.0, 2.0, 4.0])
    for found, truth in ((constant, other), (other, constant), (constant, constant)):
        scores = regression_scores(found, truth)
        assert scores["pearson"] == scores["spearman"] == 0.0
        assert all(np.isfinite(value) for value in scores.values())
    assert regression_scores(np.ones(1), np.ones(1)) == {
        "loss": 0.0,
        "mse": 0.0,
        "mae": 0.0,
        "pearson": 0.0,
        "spearman": 0.0,
        "r2": 0.0,
    }


def test_correlations_do_not_depend_on_the_size_of_numbers() -> None:
    first, second = np.array([1.0, 2.0, 4.0, 3.0]), np.array([2.0, 1.0, 9.0, 5.0])
    expected = pearson(first, second)
    for factor in (1e-200, 1e-8, 1e200):
        assert pearson(factor * first, second) == pytest.approx(expected)
        assert spearman(factor * first, second) == pytest.approx(spearman(first, second))
    assert pearson(first, -3 * first) == pytest.approx(-1.0)
