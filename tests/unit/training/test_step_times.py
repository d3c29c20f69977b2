"""Steps that are measured are those of a training, and their parts are the step."""

import time

import made_training as made
import pytest
import torch

from bertsmith.batches.batch import Batch
from bertsmith.engine.part_clock import Segment
from bertsmith.training import step_times
from bertsmith.training.config import LoopConfig
from bertsmith.training.schedule import rate_share
from bertsmith.training.step import StepPhase, StepReport, train_step
from bertsmith.training.step_times import WARMUP_BATCHES, MeasuredStep, StepTimes, middle_half, time_steps
from made_corpora import weights_of

LOOP = LoopConfig(seed=3)
STEPS = 3


class _Maker:
    """Batches of a tiny training; remembers which steps it was asked for."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.asked: list[tuple[int, int]] = []
        self._loader = made.loader(micro_batch_tokens=60)
        self._seconds = seconds

    def __call__(self, step: int, total_steps: int) -> tuple[Batch, ...]:
        time.sleep(self._seconds)
        self.asked.append((step, total_steps))
        return self._loader.micro_batches(step, total_steps)


def _timed(maker: _Maker, **changes: object) -> StepTimes:
    given = {"config": LOOP, "device": made.CPU, "steps": STEPS, "total_steps": 50} | changes
    return time_steps(made.state(), made.objective(pairs=False), maker, **given)  # pyright: ignore[reportArgumentType]


def _token_ids(step: MeasuredStep) -> list[int]:
    return torch.cat([batch.packed.token_ids for batch in step.batches]).tolist()


def test_both_kinds_of_step_are_over_the_same_batches_and_each_is_made_anew() -> None:
    maker = _Maker()
    found = _timed(maker)
    num_batches = STEPS + WARMUP_BATCHES
    assert maker.asked == [(number // 2, 50) for number in range(2 * num_batches)]
    assert (len(found.watched), len(found.plain), len(found.making_seconds)) == (STEPS, STEPS, 2 * STEPS)
    expected = [
        _token_ids(MeasuredStep(maker(step, 50), 0.0, 0.0, True)) for step in range(WARMUP_BATCHES, num_batches)
    ]
    assert [_token_ids(step) for step in found.watched] == expected
    assert [_token_ids(step) for step in found.plain] == expected


def test_steps_are_those_that_training_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []

    def noted(*given: object, learning_rate: float, **more: object) -> StepReport:
        rates.append(learning_rate)
        return train_step(*given, learning_rate=learning_rate, **more)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(step_times, "train_step", noted)
    state, maker = made.state(), _Maker()
    time_steps(state, made.objective(pairs=False), maker, config=LOOP, device=made.CPU, steps=1, total_steps=50)
    shares = [rate_share(LOOP.schedule, number // 2, 50) for number in range(6)]
    assert rates == [LOOP.optimizer.learning_rate * share for share in shares]
    trained = made.state()
    for number, rate in enumerate(rates):
        train_step(
            trained,
            maker(number // 2, 50),
            made.objective(pairs=False),
            device=made.CPU,
            learning_rate=rate,
            clip_norm=LOOP.optimizer.clip_norm,
            seed=LOOP.seed,
        )
    weights = weights_of(trained.model)
    assert all(torch.equal(weights[name], value) for name, value in state.model.state_dict().items())


def test_only_watched_steps_have_parts_and_these_fit_into_the_step() -> None:
    found = _timed(_Maker())
    assert all(not step.segments for step in found.plain)
    for step in found.watched:
        assert sum(step.segments.values()) <= step.seconds - step.waiting_seconds
        assert all(seconds >= 0 for seconds in step.segments.values())
        for part in ("embedding", "attention", "feed_forward", "norms", "head_and_loss"):
            for backward in (False, True):
                assert step.segments[Segment(part, backward)] > 0
        assert step.segments[Segment("optimizer")] > 0
    assert all(step.updated for step in (*found.watched, *found.plain))


def test_a_step_waits_for_a_batch_that_is_slow_to_make(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_times, "train_step", lambda *given, **more: StepReport((), 0.0, True))
    found = _timed(_Maker(seconds=0.05))
    assert min(found.making_seconds) >= 0.05
    # Two are begun ahead, but one is made at a time: where steps take no time, they wait.
    steps = (*found.watched, *found.plain)
    assert max(step.waiting_seconds for step in steps) > 0.02
    assert all(0 <= step.waiting_seconds < step.seconds for step in steps)


def test_sizes_are_those_of_all_micro_batches() -> None:
    step = _timed(_Maker()).plain[0]
    assert len(step.batches) > 1
    assert step.num_tokens == sum(int(batch.packed.sequence_starts[-1]) for batch in step.batches)
    assert step.num_rows == sum(len(batch.packed.token_ids) for batch in step.batches)
    assert step.num_sequences == sum(len(batch.packed.sequence_starts) - 1 for batch in step.batches)


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    _timed(_Maker(), on_step=lambda done, total: told.append((done, total)))
    total = 2 * (STEPS + WARMUP_BATCHES)
    assert told == [(done, total) for done in range(1, total + 1)]


def _step(seconds: float, **segments: float) -> MeasuredStep:
    return MeasuredStep((), seconds, 0.0, True, {Segment(part): value for part, value in segments.items()})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("seconds", "kept"),
    [([5.0], [5.0]), ([3.0, 1.0, 2.0], [1.0, 2.0, 3.0]), ([9.0, 1.0, 3.0, 2.0], [2.0, 3.0]), ([1.0] * 8, [1.0] * 4)],
)
def test_the_fastest_and_the_slowest_quarter_are_left_out(seconds: list[float], kept: list[float]) -> None:
    assert [step.seconds for step in middle_half([_step(value) for value in seconds])] == kept


def test_parts_are_means_over_the_middle_half() -> None:
    steps = [
        _step(1.0, norms=1.0),
        _step(2.0, norms=0.5, attention=1.5),
        _step(4.0, attention=4.0),
        _step(9.0, norms=9.0),
    ]
    assert StepTimes(steps, steps, ()).parts == {Segment("norms"): 0.25, Segment("attention"): 2.75}


def test_a_step_tells_its_phases_in_their_order() -> None:
    phases: list[StepPhase] = []
    batches = _Maker()(0, 50)
    assert len(batches) > 1
    train_step(
        made.state(),
        batches,
        made.objective(pairs=False),
        device=made.CPU,
        learning_rate=1e-3,
        clip_norm=1.0,
        seed=0,
        on_phase=phases.append,
    )
    assert phases == ["forward", "backward"] * len(batches) + ["optimizer"]
