"""The mean of the weights over a run."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from bertsmith.training import weight_average as module
from bertsmith.training.config import LoopConfig
from bertsmith.training.weight_average import WeightAverage, new_average

TOTAL = 20


@pytest.fixture(autouse=True)
def _short_runs_count_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONG", 1)


def _followed(share: float, steps: int = TOTAL, total_steps: int = TOTAL) -> tuple[nn.Module, WeightAverage]:
    """A model whose weight is the number of its step, and the mean of it."""
    model = nn.Linear(1, 1)
    average = WeightAverage(model, share)
    for step in range(1, steps + 1):
        _set(model, float(step))
        average.update(step, total_steps)
    return model, average


def _set(model: nn.Module, value: float) -> None:
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(value)


def _weight(model: nn.Module) -> float:
    return float(model.get_parameter("weight").detach())


def test_it_is_a_plain_mean_until_its_share_of_the_run_has_passed_and_then_an_exponential_one() -> None:
    model, average = _followed(0.25)
    expected = 3.0  # Of 1 to 5.
    for step in range(6, TOTAL + 1):
        expected += (step - expected) / 5
    average.settle()
    assert _weight(model) == pytest.approx(expected)


def test_it_looks_at_a_hundred_points_within_its_share_however_long_the_run_is() -> None:
    model, average = _followed(1.0, 10_000, 10_000)
    average.settle()
    assert _weight(model) == pytest.approx(5_050)  # Of 100, 200, …, 10,000.


@pytest.mark.parametrize(("share", "total_steps"), [(0.4, 2), (0.05, TOTAL)])
def test_over_less_than_two_steps_it_is_the_weights_themselves(share: float, total_steps: int) -> None:
    model, average = _followed(share, total_steps, total_steps)
    average.settle()
    assert _weight(model) == total_steps


def test_a_short_run_looks_back_over_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONG", 2 * TOTAL)
    shorter, average = _followed(0.5)
    monkeypatch.setattr(module, "_LONG", 1)
    plain, other = _followed(0.25)
    for each in (average, other):
        each.settle()
    assert _weight(shorter) == _weight(plain) < TOTAL


def test_the_model_has_it_for_a_while_and_its_own_weights_again() -> None:
    model, average = _followed(1.0)
    with average.in_place():
        assert _weight(model) == pytest.approx(10.5)
    assert _weight(model) == TOTAL
    with average.in_place():
        assert _weight(model) == pytest.approx(10.5)


def test_the_model_has_its_own_weights_again_after_an_error() -> None:
    model, average = _followed(1.0)
    with pytest.raises(RuntimeError), average.in_place():
        raise RuntimeError
    assert _weight(model) == TOTAL


def test_what_is_put_back_goes_on_as_if_nothing_had_happened() -> None:
    model, whole = _followed(0.5)
    _, cut = _followed(0.5, 7)
    resumed = WeightAverage(model, 0.5)
    resumed.restore(cut.tensors | {"weight/exp_avg": torch.ones(1)})
    assert resumed.tensors.keys() == whole.tensors.keys() == {"weight/average", "bias/average"}
    for step in range(8, TOTAL + 1):
        _set(model, float(step))
        resumed.update(step, TOTAL)
    assert all(torch.equal(whole.tensors[name], mean) for name, mean in resumed.tensors.items())


@pytest.mark.parametrize("ask", [lambda average: average.settle(), lambda average: average.in_place().__enter__()])
def test_before_the_first_step_the_weights_are_left_alone(ask: Callable[[WeightAverage], object]) -> None:
    model = nn.Linear(1, 1)
    before = _weight(model)
    ask(WeightAverage(model, 0.5))
    assert _weight(model) == before


def test_what_is_not_trained_has_no_mean() -> None:
    model = nn.Linear(1, 1)
    model.get_parameter("bias").requires_grad_(False)
    average = WeightAverage(model, 0.5)
    average.update(1, TOTAL)
    assert average.tensors.keys() == {"weight/average"}


def test_a_run_keeps_none_unless_it_is_asked_for() -> None:
    assert new_average(nn.Linear(1, 1), LoopConfig()) is None
    assert new_average(nn.Linear(1, 1), LoopConfig(average_share=0.1)) is not None
