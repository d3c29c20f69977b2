"""What a profile tells: the parts of a step, what the step is made of, and its floor."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from bertsmith.engine.device import Device, kernels_used
from bertsmith.engine.part_clock import PARTS, Part, Segment
from bertsmith.engine.rates import MachineRates
from bertsmith.planning.floor import StepWork
from bertsmith.training.step_times import MeasuredStep, StepTimes, middle_half

Job = Literal["pretrain", "finetune"]
_WITHOUT_DIRECTIONS = ("optimizer", "other")


@dataclass(frozen=True)
class Subject:
    """What was trained."""

    job: Job
    task: str
    """The objective of a pre-training, the task of a fine-tuning."""
    model: str
    """As it was named."""
    family: str
    parameters: int


@dataclass(frozen=True)
class Machine:
    """Where it ran."""

    device: str
    precision: str
    threads: int
    kernels: str
    """Which of our own are there: ``all``, ``without_products`` or ``none``."""

    @classmethod
    def of(cls, device: Device) -> "Machine":
        """As it is now."""
        return cls(device.name, device.precision, torch.get_num_threads(), kernels_used(device))


@dataclass(frozen=True)
class Steps:
    """The steps that were measured. Times are means over the middle half of them."""

    measured: int
    """Watched ones; as many others were not watched."""
    watched_ms: float
    """The step whose parts are told."""
    plain_ms: float
    """The step as training takes it, over the same batches."""
    fastest_ms: float
    slowest_ms: float
    """Of the plain ones."""
    without_update: int
    """Steps that moved no weight: nothing was predicted, or gradients were not finite."""


@dataclass(frozen=True)
class BatchFacts:
    """What a step trains on, in the mean."""

    tokens: float
    """Real ones, special ones included."""
    sequences: float
    forward_passes: float
    filling_share: float
    """Rows of the matrices that hold no token and only make their number round. There is no other padding."""
    making_ms: float
    """What the background takes to make it, beside a step; the step waits for it only where it is not ready."""


@dataclass(frozen=True)
class PartTime:
    """One part of the watched step."""

    part: str
    """``waiting`` for the batch, or a `Part`."""
    forward_ms: float | None
    """None, as `backward_ms`, for what has no two directions."""
    backward_ms: float | None
    ms: float
    share: float
    floor_ms: float
    """Its matrix products, or the optimizer's traffic, at the machine's own rates; 0 where there are none."""


@dataclass(frozen=True)
class Floor:
    """What a step cannot do without, at the machine's own rates."""

    ms: float
    fraction: float
    """Of the step as training takes it."""
    operations: float
    """Floating-point operations of the model's matrix products; a product and its sum are two."""
    operations_per_second: float
    """Measured on a large product, in the precision of the run."""
    optimizer_operations: float
    """Of Muon's products, which are in bf16; 0 without it."""
    bf16_operations_per_second: float
    optimizer_bytes: float
    """Read and written by the optimizer."""
    bytes_per_second: float
    """Measured in copying, read and written together."""


@dataclass(frozen=True)
class Profile:
    """Where the time of a training step goes."""

    subject: Subject
    machine: Machine
    steps: Steps
    batch: BatchFacts
    parts: tuple[PartTime, ...]
    """Together they are the watched step."""
    tokens_per_second: float
    """Of plain steps."""
    peak_memory_bytes: int | None
    """The most that the process ever held, preparing included; None where the system does not tell."""
    floor: Floor


def profile_of(
    subject: Subject,
    machine: Machine,
    times: StepTimes,
    work: Sequence[StepWork],
    *,
    rates: MachineRates,
    peak_memory_bytes: int | None,
) -> Profile:
    """Put together what was measured.

    Args:
        subject: what was trained.
        machine: where.
        times: the steps.
        work: of each of the plain steps' middle half.
        rates: of the machine.
        peak_memory_bytes: of the process.
    """
    plain = middle_half(times.plain)
    seconds = [step.seconds for step in plain]
    floor = _mean_seconds([one.seconds(rates) for one in work])
    return Profile(
        subject,
        machine,
        _steps(times),
        _batch(plain, times),
        _parts(times, floor),
        tokens_per_second=sum(step.num_tokens for step in plain) / sum(seconds),
        peak_memory_bytes=peak_memory_bytes,
        floor=Floor(
            ms=1e3 * sum(floor.values()),
            fraction=sum(floor.values()) / statistics.fmean(seconds),
            operations=statistics.fmean(sum(one.operations.values()) for one in work),
            operations_per_second=rates.operations_per_second,
            optimizer_operations=statistics.fmean(one.optimizer_operations for one in work),
            bf16_operations_per_second=rates.bf16_operations_per_second,
            optimizer_bytes=statistics.fmean(one.optimizer_bytes for one in work),
            bytes_per_second=rates.bytes_per_second,
        ),
    )


def _steps(times: StepTimes) -> Steps:
    watched, plain = (
        1e3 * statistics.fmean(step.seconds for step in middle_half(steps)) for steps in (times.watched, times.plain)
    )
    every = [1e3 * step.seconds for step in times.plain]
    without_update = sum(not step.updated for step in (*times.watched, *times.plain))
    return Steps(len(times.watched), watched, plain, min(every), max(every), without_update)


def _batch(plain: Sequence[MeasuredStep], times: StepTimes) -> BatchFacts:
    tokens = statistics.fmean(step.num_tokens for step in plain)
    return BatchFacts(
        tokens=tokens,
        sequences=statistics.fmean(step.num_sequences for step in plain),
        forward_passes=statistics.fmean(len(step.batches) for step in plain),
        filling_share=1 - tokens / statistics.fmean(step.num_rows for step in plain),
        making_ms=1e3 * statistics.median(times.making_seconds),
    )


def _parts(times: StepTimes, floor: dict[Part, float]) -> tuple[PartTime, ...]:
    typical = middle_half(times.watched)
    step = statistics.fmean(one.seconds for one in typical)
    waiting = statistics.fmean(one.waiting_seconds for one in typical)
    segments = times.parts
    parts = [PartTime("waiting", None, None, 1e3 * waiting, waiting / step, 0.0)]
    left = step - waiting
    for part in PARTS:
        directions = [segments.get(Segment(part, backward), 0.0) for backward in (False, True)]
        # What no part has is the rest, and so the parts are the step.
        taken = left if part == "other" else sum(directions)
        left -= taken
        if not taken:
            continue
        forward, backward = (None, None) if part in _WITHOUT_DIRECTIONS else (1e3 * seconds for seconds in directions)
        parts.append(PartTime(part, forward, backward, 1e3 * taken, taken / step, 1e3 * floor.get(part, 0.0)))
    return tuple(parts)


def _mean_seconds(steps: Sequence[dict[Part, float]]) -> dict[Part, float]:
    return {part: statistics.fmean(step.get(part, 0.0) for step in steps) for part in PARTS}
