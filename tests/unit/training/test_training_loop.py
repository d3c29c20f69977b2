"""The loop: what it tells, when it stops, and that a resumed run is the same run."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import made_training as made
import pytest
import torch

from bertsmith.batches.batch import Batch
from bertsmith.checkpoints.checkpoint import CheckpointStore
from bertsmith.foundation.errors import BertsmithError, Stopped
from bertsmith.training import weight_average
from bertsmith.training.config import TrainingConfig
from bertsmith.training.events import CheckpointWritten, Event, Progress, RunStarted, StepsDecided, Validated
from bertsmith.training.loop import Bookkeeping, TrainingLoop, restored
from bertsmith.training.schedule import StepBudget
from bertsmith.training.step import TrainState, new_optimizer
from bertsmith.training.stopping import StopRequest
from bertsmith.training.weight_average import new_average
from made_corpora import made_tokenizer, weights_of

CONFIG = TrainingConfig(log_every_steps=1, validate_every_share=0.25, batch_tokens=100)
ONE_VALIDATION = CONFIG.model_copy(update={"validate_every_share": 1.0})
TOTAL = 20


def _loop(folder: Path, observers: Sequence[object], **changes: object) -> TrainingLoop:
    loader = made.loader()
    config = changes.pop("config", CONFIG)
    loop = TrainingLoop(
        state=made.state(dropout=0.1),
        books=Bookkeeping(StepBudget(TOTAL)),
        objective=made.objective(pairs=False),
        fetch=lambda step, last_step: loader.micro_batches(step),
        batches_per_epoch=loader.batches_per_epoch,
        config=config,
        device=made.CPU,
        tokenizer=made_tokenizer(),
        checkpoints=CheckpointStore(folder, keep=2),
        validate=lambda: {"loss": 3.0},
        sample=None,
        observers=observers,
        stop=StopRequest(),
    )
    return replace(loop, **changes)


class _Told:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type) -> list:
        return [event for event in self.events if isinstance(event, kind)]


def _stopped_and_resumed(folder: Path, stop_at: int, config: TrainingConfig) -> tuple[TrainState, _Told]:
    told = _Told()
    stop = StopRequest()
    state = _state(config)

    def stop_there(event: Event) -> None:
        if isinstance(event, Progress) and event.step == stop_at:
            stop.requested = True

    with pytest.raises(Stopped, match=rf"step {stop_at} of {TOTAL}"):
        _loop(folder, [told, stop_there], stop=stop, state=state, config=config).run()
    checkpoint = CheckpointStore(folder).newest()
    assert checkpoint is not None
    assert checkpoint.step == stop_at
    read, saved = checkpoint.read()
    model = read.model.train()
    state = TrainState(model, new_optimizer(model, CONFIG.optimizer), average=new_average(model, config))
    books = restored(state, saved)
    _loop(folder, [told], state=state, books=books, config=config).run()
    return state, told


@pytest.fixture(autouse=True)
def _short_runs_are_averaged_as_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_average, "_LONG", 1)


def _state(config: TrainingConfig) -> TrainState:
    state = made.state(dropout=0.1)
    return replace(state, average=new_average(state.model, config))


@pytest.mark.parametrize("stop_at", [1, 7, 10])
@pytest.mark.parametrize(("average_share", "points"), [(0.0, 100), (0.5, 100), (0.5, 3)])
def test_a_stopped_run_that_goes_on_is_the_same_run(
    tmp_path: Path, stop_at: int, average_share: float, points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weight_average, "_POINTS", points)
    config = CONFIG.model_copy(update={"average_share": average_share})
    whole = _Told()
    loop = _loop(tmp_path / "whole", [whole], state=_state(config), config=config)
    loop.run()
    state, told = _stopped_and_resumed(tmp_path / "cut", stop_at, config)
    expected = weights_of(loop.state.model)
    assert all(torch.equal(expected[name], value) for name, value in state.model.state_dict().items())

    def kept(events: _Told) -> list[tuple[int, float, float, int]]:
        return [(event.step, event.loss, event.learning_rate, event.tokens) for event in events.of(Progress)]

    # The same rate, loss and tokens at every step.
    assert kept(told) == kept(whole)
    assert (
        [event.step for event in told.of(Validated)] == [event.step for event in whole.of(Validated)] == [5, 10, 15, 20]
    )
    assert [event.resumed for event in told.of(RunStarted)] == [False, True]


def test_the_mean_of_the_weights_is_validated_sampled_and_left_while_training_goes_on_without_it(
    tmp_path: Path,
) -> None:
    config = CONFIG.model_copy(update={"average_share": 0.5})
    plain = _loop(tmp_path / "plain", [])
    state, seen = _state(config), list[dict[str, torch.Tensor]]()

    def look() -> dict[str, float]:
        seen.append({name: value.clone() for name, value in weights_of(state.model).items()})
        return {"loss": 3.0}

    def sample() -> list[str]:
        look()
        return []

    plain.run()
    _loop(tmp_path / "mean", [], state=state, config=config, validate=look, sample=sample).run()
    left = weights_of(state.model)
    assert all(
        torch.equal(value, seen[-1][name]) and torch.equal(value, seen[-2][name]) for name, value in left.items()
    )
    checkpoint = CheckpointStore(tmp_path / "mean").newest()
    assert checkpoint is not None
    trained = weights_of(checkpoint.read()[0].model)
    assert all(torch.equal(value, trained[name]) for name, value in weights_of(plain.state.model).items())
    assert not all(torch.equal(value, trained[name]) for name, value in left.items())


def test_a_stop_between_two_reports_keeps_what_was_summed(tmp_path: Path) -> None:
    config = CONFIG.model_copy(update={"log_every_steps": 6})
    whole = _Told()
    _loop(tmp_path / "whole", [whole], config=config).run()
    told, stop = _Told(), StopRequest()
    loop = _loop(tmp_path / "cut", [told], config=config, stop=stop)
    fetch = loop.fetch

    def stop_at_eight(step: int, last_step: int) -> Sequence[Batch]:
        stop.requested = step == 7
        return fetch(step, last_step)

    with pytest.raises(Stopped):
        replace(loop, fetch=stop_at_eight).run()
    checkpoint = CheckpointStore(tmp_path / "cut").newest()
    assert checkpoint is not None
    read, saved = checkpoint.read()
    model = read.model.train()
    state = TrainState(model, new_optimizer(model, CONFIG.optimizer))
    _loop(tmp_path / "cut", [told], config=config, state=state, books=restored(state, saved)).run()
    assert [(event.step, event.loss) for event in told.of(Progress)] == [
        (event.step, event.loss) for event in whole.of(Progress)
    ]
    assert [event.step for event in told.of(Progress)] == [6, 12, 18, 20]


def test_the_best_checkpoint_is_the_one_with_the_lowest_loss_and_is_kept(tmp_path: Path) -> None:
    losses = iter([3.0, 1.0, 2.0, 2.5])
    told = _Told()
    loop = _loop(tmp_path, [told], validate=lambda: {"loss": next(losses)})
    assert loop.run() == {"loss": 2.5}
    assert [event.step for event in told.of(CheckpointWritten)] == [5, 10, 15, 20]
    assert loop.books.best_step == 10
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000010", "step-00000015", "step-00000020"]


def test_gradients_that_stay_without_a_value_end_the_run_with_the_reason(tmp_path: Path) -> None:
    loop = _loop(tmp_path, [], books=Bookkeeping(StepBudget(100)), config=ONE_VALIDATION)
    with torch.no_grad():
        loop.state.model.encoder.embeddings.norm.bias[0] = torch.nan
    with pytest.raises(BertsmithError, match=r"must be finite.*21 steps in a row.*learning_rate"):
        loop.run()
    assert loop.state.step == 21


def test_a_few_steps_without_a_finite_gradient_are_passed_over(tmp_path: Path) -> None:
    loop = _loop(tmp_path, [])
    bias = loop.state.model.encoder.layers[0].feed_forward.up.bias
    fetch = loop.fetch
    good = float(bias[0].detach())

    def disturbed(step: int, last_step: int) -> Sequence[Batch]:
        with torch.no_grad():
            if step in (3, 4):
                bias[0] = torch.nan
            elif step == 5:
                bias[0] = good
        return fetch(step, last_step)

    replace(loop, fetch=disturbed).run()
    assert loop.state.step == TOTAL
    assert loop.books.skipped_updates == 0
    assert all(torch.isfinite(value).all() for value in loop.state.model.state_dict().values())


def test_a_run_by_the_clock_says_what_it_decides_and_ends_there(tmp_path: Path) -> None:
    told = _Told()
    budget = StepBudget(10_000, seconds=0.5, reserved_seconds=0.05)
    loop = _loop(tmp_path, [told], books=Bookkeeping(budget), config=ONE_VALIDATION)
    loop.run()
    decided = told.of(StepsDecided)
    assert decided
    assert decided[-1].total_steps == loop.state.step == budget.total_steps < 10_000
    assert [(event.step, event.total_steps) for event in decided] == budget.decisions


def test_a_run_that_was_already_at_its_end_only_validates(tmp_path: Path) -> None:
    state = made.state()
    state.step = TOTAL
    before = weights_of(state.model)
    assert _loop(tmp_path, [], state=state).run() == {"loss": 3.0}
    assert all(torch.equal(before[name], value) for name, value in state.model.state_dict().items())


def test_the_budget_is_told_what_validations_take_and_a_resume_knows_it(tmp_path: Path) -> None:
    def slow() -> dict[str, float]:
        time.sleep(0.02)
        return {"loss": 3.0}

    loop = _loop(tmp_path, [], validate=slow)
    loop.run()
    budget = loop.books.budget
    assert budget.validated_seconds >= 4 * 0.02
    assert 0.02 <= budget.validation_seconds < budget.validated_seconds
    checkpoint = CheckpointStore(tmp_path).newest()
    assert checkpoint is not None
    assert Bookkeeping.from_json(checkpoint.read()[1].values).budget == budget


def test_a_validation_without_a_finite_loss_is_the_worst(tmp_path: Path) -> None:
    losses = iter([math.nan, math.inf, 2.0, 2.5])
    loop = _loop(tmp_path, [], validate=lambda: {"loss": next(losses)})
    loop.run()
    assert loop.books.best_step == 15
