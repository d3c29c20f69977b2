"""How many steps a run by the clock has, with a clock that stands until something takes time."""

from types import SimpleNamespace

import pytest

from bertsmith.engine.device import Device
from bertsmith.foundation.errors import InputError
from bertsmith.objectives.classification import Classification
from bertsmith.recipes import step_budget as module
from bertsmith.recipes.step_budget import refuse_too_short, step_budget
from bertsmith.training.config import LengthConfig
from bertsmith.training.schedule import StepBudget
from made_tasks import made_classifier

STEP_SECONDS = 0.01


class _Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """The clock that budgets are decided by."""
    clock = _Clock()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock.monotonic))
    monkeypatch.setattr(module, "seconds_per_step", lambda *_: STEP_SECONDS)
    return clock


def _budget(clock: _Clock, *, minutes: float, validation_seconds: float, closing: int = 1, **more: str) -> StepBudget:
    return step_budget(
        LengthConfig(minutes=minutes),
        default_epochs=3.0,
        batches_per_epoch=10,
        measure=(made_classifier(("a", "b")), Classification(), lambda step: [], Device("cpu", "fp32")),
        validation_share=3.0,
        validate_every_share=0.2,
        closing_validations=closing,
        validate=lambda: clock.pass_by(validation_seconds),
        started_at=clock.now,
        **more,
    )


@pytest.mark.parametrize("closing", [0, 2])
def test_all_validations_are_put_aside_as_they_were_measured(clock: _Clock, closing: int) -> None:
    budget = _budget(clock, minutes=1.0, validation_seconds=4.0, closing=closing)
    assert budget.seconds == pytest.approx(56.0)
    steps = (56 - 2 - (5 + closing) * 4) / STEP_SECONDS
    assert budget.total_steps == pytest.approx(steps, abs=401)  # A step more than a fifth makes one validation more.
    assert budget.total_steps * STEP_SECONDS + (5 + closing) * 4 + 2 <= 56


def test_a_time_that_the_last_validations_take_is_refused_before_training(clock: _Clock) -> None:
    _budget(clock, minutes=1.0, validation_seconds=15.0)
    with pytest.raises(InputError, match=r"1 minutes, of which 40 s are left .* take 42 s"):
        _budget(clock, minutes=1.0, validation_seconds=20.0)


def test_a_time_of_which_nothing_is_left_is_refused_before_anything_is_measured(clock: _Clock) -> None:
    started_at = clock.now
    refuse_too_short(LengthConfig(minutes=0.1), started_at=started_at)
    refuse_too_short(LengthConfig(steps=1), started_at=started_at)
    clock.pass_by(5.0)
    with pytest.raises(InputError, match="--minutes must leave time to train"):
        refuse_too_short(LengthConfig(minutes=0.1), started_at=started_at)


def test_what_to_do_where_a_time_is_too_short_fits_the_recipe(clock: _Clock) -> None:
    with pytest.raises(InputError, match="Give more minutes, or leave --minutes out") as caught:
        refuse_too_short(LengthConfig(minutes=0.001), started_at=clock.now)
    assert "prepare" not in caught.value.do
    with pytest.raises(InputError, match="Give more minutes, or leave --minutes out"):
        _budget(clock, minutes=0.01, validation_seconds=0.0)
    with pytest.raises(InputError, match=r"Prepare it\."):
        _budget(clock, minutes=0.01, validation_seconds=0.0, advice="Prepare it.")
