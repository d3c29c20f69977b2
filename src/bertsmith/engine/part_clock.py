"""A clock that knows which part of a training step runs, and tells afterwards how long each took."""

import time
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import torch

from bertsmith.engine.device import Device

Part = Literal["embedding", "attention", "feed_forward", "recurrence", "norms", "head_and_loss", "optimizer", "other"]
"""Of a step. ``norms``: of the layers, with the residual sums and the dropout before them. ``recurrence``: an ELMo's
LSTMs. ``head_and_loss``: everything behind the last layer. ``other``: what is between the parts."""
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True)
class Segment:
    """What runs."""

    part: Part
    backward: bool = False


@runtime_checkable
class _Stamps(Protocol):
    """A way of telling moments."""

    def now(self) -> Any:
        """This moment, on the device's own line of work."""
        ...

    def seconds(self, begin: Any, end: Any) -> float:
        """From one to the other, once both have passed."""
        ...


class _HostStamps:
    """On a CPU an operation has ended when its call returns."""

    def now(self) -> float:
        return time.perf_counter()

    def seconds(self, begin: float, end: float) -> float:
        return end - begin


class _DeviceStamps:
    """Elsewhere calls return at once, so events are put between the operations."""

    def __init__(self, device: Device) -> None:
        self._device = torch.device(device.name)

    def now(self) -> Any:
        event = torch.Event(self._device, enable_timing=True)
        event.record()
        return event

    def seconds(self, begin: Any, end: Any) -> float:
        return begin.elapsed_time(end) / 1e3


class PartClock:
    """Divides time, without gap or overlap, among the segments that are entered one after the other.

    Args:
        device: whose time counts.
    """

    def __init__(self, device: Device) -> None:
        self._stamps: _Stamps = _HostStamps() if device.kind == "cpu" else _DeviceStamps(device)
        self._entered: list[tuple[Any, Segment]] = []
        self._end: Any = None
        self.now = Segment("other")

    def start(self) -> None:
        """Begin anew, in part ``other``."""
        self._entered.clear()
        self.enter(Segment("other"))

    def enter(self, segment: Segment) -> None:
        """From now on, this is what runs."""
        self.now = segment
        self._entered.append((self._stamps.now(), segment))

    def stop(self) -> None:
        """Nothing runs any more."""
        self._end = self._stamps.now()

    def seconds(self) -> dict[Segment, float]:
        """Of each segment between `start` and `stop`, once the device has done all of it."""
        found: dict[Segment, float] = {}
        ends = [*(stamp for stamp, _ in self._entered[1:]), self._end]
        for (begin, segment), end in zip(self._entered, ends, strict=True):
            found[segment] = found.get(segment, 0.0) + self._stamps.seconds(begin, end)
        return found


def synchronize(device: Device) -> None:
    """Wait until a device has done all that it was told."""
    if device.kind != "cpu":
        torch.accelerator.synchronize(torch.device(device.name))
