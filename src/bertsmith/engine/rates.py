"""How fast a machine multiplies matrices and moves memory, measured on large ones."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from bertsmith.engine.device import Device, Precision
from bertsmith.engine.part_clock import synchronize

_KINDS: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}
_ROUNDS, _WARMUP_ROUNDS = 5, 2
_SMALL_MATRIX, _CPU_MATRIX, _LARGE_MATRIX = 512, 2048, 8192
"""Elsewhere than on a CPU, a smaller product than the large one is over before it is up to speed."""
_SLOW_SECONDS = 0.05
"""A small product that takes longer must do: some processors take very long over bf16, which they do not have."""
_COPIED_ELEMENTS = 1 << 26
"""256 MiB in fp32, which no cache holds."""


@dataclass(frozen=True)
class MachineRates:
    """What a machine reaches at its best."""

    operations_per_second: float
    """Floating-point operations of a matrix product in the device's precision; a product and its sum are two."""
    bf16_operations_per_second: float
    """The same in bf16, in which Muon multiplies whatever the precision is."""
    bytes_per_second: float
    """Read and written together, in copying."""


def measured_rates(device: Device) -> MachineRates:
    """Measure a device, which takes a second or two and half a gigabyte."""
    rates = {kind: _matrix_rate(device, kind) for kind in {torch.bfloat16, _KINDS[device.precision]}}
    return MachineRates(rates[_KINDS[device.precision]], rates[torch.bfloat16], _copy_rate(device))


def _matrix_rate(device: Device, kind: torch.dtype) -> float:
    def seconds(size: int, *, warmup_rounds: int, rounds: int) -> float:
        matrix = torch.randn(size, size, device=device.name).to(kind)
        return _fastest_seconds(lambda: matrix @ matrix, device, warmup_rounds=warmup_rounds, rounds=rounds)

    slow = seconds(_SMALL_MATRIX, warmup_rounds=1, rounds=1)
    if slow > _SLOW_SECONDS:
        return 2 * _SMALL_MATRIX**3 / slow
    size = _CPU_MATRIX if device.kind == "cpu" else _LARGE_MATRIX
    return 2 * size**3 / seconds(size, warmup_rounds=_WARMUP_ROUNDS, rounds=_ROUNDS)


def _copy_rate(device: Device) -> float:
    source = torch.ones(_COPIED_ELEMENTS, device=device.name)
    target = torch.empty_like(source)
    seconds = _fastest_seconds(lambda: target.copy_(source), device, warmup_rounds=_WARMUP_ROUNDS, rounds=_ROUNDS)
    return 2 * source.numel() * source.element_size() / seconds


def _fastest_seconds(work: Callable[[], object], device: Device, *, warmup_rounds: int, rounds: int) -> float:
    """Of some rounds: what else the machine does meanwhile makes it no slower than it is."""
    seconds: list[float] = []
    for _ in range(warmup_rounds + rounds):
        synchronize(device)
        began_at = time.perf_counter()
        work()
        synchronize(device)
        seconds.append(time.perf_counter() - began_at)
    return min(seconds[warmup_rounds:])
