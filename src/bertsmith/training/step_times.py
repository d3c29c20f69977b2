"""Where the time of training steps goes: real steps, every other one of them watched part by part.

Watching costs a little, and a machine is faster at one time than at another. So each batch serves two steps, one that
is watched and one that is not, and the two take turns in going first. What a batch costs to make is paid for each, so
that the background has as much to do beside a step as in a training.
"""

import contextlib
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bertsmith.batches.batch import Batch
from bertsmith.batches.loader import Prefetcher
from bertsmith.engine.device import Device
from bertsmith.engine.memory import keep_freed_memory
from bertsmith.engine.model_parts import parts_told
from bertsmith.engine.part_clock import PartClock, Segment, synchronize
from bertsmith.objectives.report import Objective
from bertsmith.training.config import LoopConfig
from bertsmith.training.schedule import rate_share
from bertsmith.training.step import StepPhase, TrainState, train_step

WARMUP_BATCHES = 2
"""Batches whose steps are not counted: memory is allocated in them, and kernels are chosen."""
_SEGMENTS: dict[StepPhase, Segment] = {
    "forward": Segment("other"),
    "backward": Segment("head_and_loss", backward=True),
    "optimizer": Segment("optimizer"),
}
"""What runs when a phase of a step begins."""


@dataclass(frozen=True)
class MeasuredStep:
    """A step."""

    batches: Sequence[Batch]
    seconds: float
    """All of it, from asking for the batch to the new weights."""
    waiting_seconds: float
    """For the batch."""
    updated: bool
    """Whether weights were moved."""
    segments: dict[Segment, float] = field(default_factory=dict)
    """Seconds of each segment; empty where it was not watched."""

    @property
    def num_tokens(self) -> int:
        """Real tokens, special ones included."""
        return sum(batch.packed.num_tokens for batch in self.batches)

    @property
    def num_rows(self) -> int:
        """Rows of its matrices: tokens, and what fills them up to a round number."""
        return sum(len(batch.packed.token_ids) for batch in self.batches)

    @property
    def num_sequences(self) -> int:
        """Sequences."""
        return sum(batch.packed.num_sequences for batch in self.batches)


@dataclass(frozen=True)
class StepTimes:
    """Steps over the same batches, watched and as training takes them, and what making a batch took beside them."""

    watched: Sequence[MeasuredStep]
    plain: Sequence[MeasuredStep]
    making_seconds: Sequence[float]

    @property
    def parts(self) -> dict[Segment, float]:
        """Seconds of each segment in a typical step; with the waiting they are the step."""
        typical = middle_half(self.watched)
        segments = dict.fromkeys(segment for step in typical for segment in step.segments)
        return {segment: statistics.fmean(step.segments.get(segment, 0.0) for step in typical) for segment in segments}


def middle_half(steps: Sequence[MeasuredStep]) -> Sequence[MeasuredStep]:
    """The steps without the fastest and the slowest quarter.

    Means over them are as little moved by a disturbance as a median; but medians of the parts of a step would not add
    up to the median step, and such means do.
    """
    quarter = len(steps) // 4
    return sorted(steps, key=lambda step: step.seconds)[quarter : len(steps) - quarter]


def time_steps(
    state: TrainState,
    objective: Objective,
    make: Callable[[int, int], tuple[Batch, ...]],
    *,
    config: LoopConfig,
    device: Device,
    steps: int,
    total_steps: int,
    on_step: Callable[[int, int], None] = lambda done, total: None,
) -> StepTimes:
    """Train for some steps and see what takes how long. The state is changed as training changes it.

    Args:
        state: what is trained.
        objective: what it is trained to do.
        make: from a step and the run's steps to that step's micro-batches; it is called in a background thread.
        config: learning rate, schedule, clipping and seed.
        device: where it runs.
        steps: how many are watched; as many more are not, and a few of both come before them.
        total_steps: steps of the run whose first ones these are.
        on_step: is told how many steps are done, of how many.
    """
    if device.kind == "cpu":
        keep_freed_memory()
    clock = PartClock(device)
    num_turns = 2 * (WARMUP_BATCHES + steps)
    found: dict[bool, list[MeasuredStep]] = {True: [], False: []}
    timed = _Timed(make, total_steps)
    with Prefetcher(lambda turn, turns: timed(turn // 2)) as prefetcher:
        for turn in range(num_turns):
            is_watched = turn % 4 in (1, 2)
            with parts_told(state.model, clock) if is_watched else contextlib.nullcontext():
                took = _one_step(
                    state,
                    objective,
                    lambda turn=turn: prefetcher.get(turn, num_turns - 1),
                    config=config,
                    device=device,
                    learning_rate=config.optimizer.learning_rate * rate_share(config.schedule, turn // 2, total_steps),
                    clock=clock if is_watched else None,
                )
            found[is_watched].append(took)
            on_step(turn + 1, num_turns)
    return StepTimes(found[True][WARMUP_BATCHES:], found[False][WARMUP_BATCHES:], timed.counted)


def _one_step(
    state: TrainState,
    objective: Objective,
    fetch: Callable[[], tuple[Batch, ...]],
    *,
    config: LoopConfig,
    device: Device,
    learning_rate: float,
    clock: PartClock | None,
) -> MeasuredStep:
    began_at = time.perf_counter()
    batches = fetch()
    fetched_at = time.perf_counter()
    if clock is not None:
        clock.start()
    report = train_step(
        state,
        batches,
        objective,
        device=device,
        learning_rate=learning_rate,
        clip_norm=config.optimizer.clip_norm,
        seed=config.seed,
        on_phase=(lambda phase: None) if clock is None else (lambda phase: clock.enter(_SEGMENTS[phase])),
    )
    if clock is not None:
        clock.stop()
    synchronize(device)
    seconds = time.perf_counter() - began_at
    segments = {} if clock is None else clock.seconds()
    return MeasuredStep(batches, seconds, fetched_at - began_at, report.updated, segments)


class _Timed:
    """Makes batches, and remembers how long each took."""

    def __init__(self, make: Callable[[int, int], tuple[Batch, ...]], total_steps: int) -> None:
        self._make = make
        self._total_steps = total_steps
        self._seconds: list[float] = []

    def __call__(self, step: int) -> tuple[Batch, ...]:
        began_at = time.perf_counter()
        batches = self._make(step, self._total_steps)
        self._seconds.append(time.perf_counter() - began_at)
        return batches

    @property
    def counted(self) -> tuple[float, ...]:
        """Of the batches that are not made to warm up."""
        return tuple(self._seconds[2 * WARMUP_BATCHES :])
