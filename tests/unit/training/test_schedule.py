"""Learning rates and the number of steps."""

import json
import math
from itertools import pairwise

import pytest

from bertsmith.training.config import ScheduleConfig
from bertsmith.training.schedule import StepBudget, rate_share, validate_every


def _rates(total: int, **values: object) -> list[float]:
    config = ScheduleConfig.parse(values, where="a test")
    return [rate_share(config, step, total) for step in range(total)]


@pytest.mark.parametrize("shape", ["linear", "cosine", "stable_then_decay"])
def test_the_rate_rises_in_a_line_to_its_highest(shape: str) -> None:
    rates = _rates(100, shape=shape, warmup_share=0.1)
    assert rates[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert max(rates) == rates[9] == 1.0


def test_linear_falls_to_almost_zero_in_equal_steps() -> None:
    rates = _rates(100, shape="linear", warmup_share=0.1)
    assert rates[10] == 1.0
    assert rates[99] == pytest.approx(1 / 90)
    differences = [before - after for before, after in pairwise(rates[10:])]
    assert differences == pytest.approx([1 / 90] * 89)


def test_cosine_is_half_in_the_middle_and_flat_at_both_ends() -> None:
    rates = _rates(101, shape="cosine", warmup_share=0.01)
    assert rates[1] == 1.0
    assert rates[51] == pytest.approx(0.5, abs=0.01)
    assert rates[26] == pytest.approx(0.5 * (1 + math.cos(math.pi / 4)), abs=0.01)
    assert rates[100] < 0.001
    assert all(before >= after for before, after in pairwise(rates[1:]))


def test_stable_then_decay_is_level_and_then_falls() -> None:
    rates = _rates(100, shape="stable_then_decay", warmup_share=0.1, decay_share=0.2)
    assert rates[10:81] == [1.0] * 71
    assert rates[90] == pytest.approx(0.5)
    assert rates[99] == pytest.approx(1 / 20)


@pytest.mark.parametrize("shape", ["linear", "cosine", "stable_then_decay"])
@pytest.mark.parametrize("total", [1, 2, 3, 17, 1000])
@pytest.mark.parametrize("warmup_share", [0.0, 0.06, 0.7])
def test_every_step_has_a_rate_above_zero_and_at_most_the_highest(shape: str, total: int, warmup_share: float) -> None:
    rates = _rates(total, shape=shape, warmup_share=warmup_share)
    assert min(rates) > 0
    assert max(rates) <= 1
    assert rates[0] == 1.0 or warmup_share * total >= 1.5


def test_known_steps_are_never_reviewed() -> None:
    budget = StepBudget(50)
    assert not budget.review(10, 1e9)
    assert (budget.total_steps, budget.decisions) == (50, [])


def test_a_time_is_reviewed_at_a_few_shares_and_follows_the_measured_speed() -> None:
    budget = StepBudget(1000, seconds=100.0, reserved_seconds=10.0)
    assert not budget.review(0, 0.0)
    assert not budget.review(20, 2.9)
    # 40 steps took 4 of the 90 usable seconds: 900 in all.
    assert budget.review(40, 4.0)
    assert budget.total_steps == 900
    assert not budget.review(60, 6.0)
    # Slower from there: 60 steps in 12 s, so 5 a second.
    assert budget.review(60, 12.0)
    assert budget.total_steps == 60 + 78 * 5
    assert not budget.review(70, 13.0)
    assert budget.decisions == [(40, 900), (60, 450)]


def test_a_review_that_changes_nothing_says_so() -> None:
    budget = StepBudget(900, seconds=100.0, reserved_seconds=10.0)
    assert not budget.review(40, 4.0)
    assert budget.decisions == []


def test_a_time_that_is_over_ends_the_run_after_one_more_step() -> None:
    budget = StepBudget(1000, seconds=100.0, reserved_seconds=10.0)
    assert budget.review(300, 95.0)
    assert budget.total_steps == 301


def test_a_budget_that_was_stored_goes_on_as_if_it_had_not_been() -> None:
    budget = StepBudget(1000, seconds=100.0, reserved_seconds=10.0)
    budget.review(40, 4.0)
    restored = StepBudget.from_json(json.loads(json.dumps(budget.to_json())))
    assert restored == budget
    for step, elapsed_seconds in ((60, 6.0), (60, 12.0), (200, 26.0), (300, 52.0)):
        assert restored.review(step, elapsed_seconds) == budget.review(step, elapsed_seconds)
        assert restored == budget


def _played(budget: StepBudget, *, step_seconds: float, validation_seconds: float) -> float:
    """Seconds that a run by a budget takes, its closing validations included."""
    step, elapsed_seconds = 0, 0.0
    while step < budget.total_steps:
        step += 1
        elapsed_seconds += step_seconds
        budget.review(step, elapsed_seconds)
        if step % validate_every(budget.validate_every_share, budget.total_steps) == 0 or step == budget.total_steps:
            elapsed_seconds += validation_seconds
            budget.validated(validation_seconds)
    return elapsed_seconds + budget.closing_validations * validation_seconds


@pytest.mark.parametrize("share", [1.0, 0.5, 0.3, 0.2, 0.1, 0.05])
def test_no_run_validates_more_often_than_it_has_shares(share: float) -> None:
    for total in range(1, 400):
        every = validate_every(share, total)
        assert len({*range(every, total + 1, every), total}) <= math.ceil(1 / share)


@pytest.mark.parametrize(("share", "total", "every"), [(0.1, 30, 3), (0.2, 942, 189), (0.1, 4, 1), (1.0, 7, 7)])
def test_steps_between_validations(share: float, total: int, every: int) -> None:
    assert validate_every(share, total) == every


@pytest.mark.parametrize("guess", [0.0, 8.0, 12.0])
@pytest.mark.parametrize("closing", [0, 1, 2])
def test_slow_validations_fit_the_time_whatever_was_guessed(guess: float, closing: int) -> None:
    budget = StepBudget(
        1,
        seconds=100.0,
        reserved_seconds=2.0,
        validate_every_share=0.2,
        closing_validations=closing,
        validation_seconds=guess,
    )
    budget.begin(0.05)
    took = _played(budget, step_seconds=0.04, validation_seconds=8.0)
    assert 85 < took <= 98 + 1e-6


def test_time_of_validations_is_not_taken_for_time_of_steps() -> None:
    budget = StepBudget(1000, seconds=100.0, validate_every_share=0.5)
    budget.validated(20.0)
    # 100 steps in 10 s beside a validation of 20 s. Of 70 s that are left, the one of the last step takes 20.
    assert budget.review(100, 30.0)
    assert budget.total_steps == 100 + 500 - 200
