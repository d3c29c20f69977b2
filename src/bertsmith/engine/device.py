"""Where and in which precision matrix products run, chosen by what was asked for or by a quick probe."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from bertsmith.foundation.errors import InputError, unknown_name
from bertsmith.kernels.library import kernels, multiplies

Precision = Literal["fp32", "bf16"]
PRECISIONS = ("auto", "fp32", "bf16")
_PROBE_SIZE = 512
_PROBE_ROUNDS = 4


@dataclass(frozen=True)
class Device:
    """A device and the precision of its matrix products. Weights and sums are kept in fp32 in either."""

    name: str
    precision: Precision

    @property
    def kind(self) -> str:
        """``cpu``, ``cuda``, …"""
        return torch.device(self.name).type

    @contextlib.contextmanager
    def matrix_precision(self) -> Iterator[None]:
        """Inside the block, matrix products run in this device's precision."""
        with torch.autocast(self.kind, torch.bfloat16, enabled=self.precision == "bf16"):
            yield

    @contextlib.contextmanager
    def random_state_kept(self) -> Iterator[None]:
        """After the block, torch's random state is as it was before."""
        with torch.random.fork_rng(devices=[torch.device(self.name)] if self.kind == "cuda" else []):
            yield


def notes_on_kernels(device: Device) -> list[str]:
    """What a run on this device misses, where the kernels for a CPU could not be made."""
    # On a GPU they are not even looked for: that might compile them.
    if device.kind != "cpu" or not (why_not := kernels().why_not):
        return []
    return [f"note: without the kernels for this processor, steps take about twice as long: {why_not}"]


def kernels_used(device: Device) -> Literal["all", "without_products", "none"]:
    """Which kernels of our own a run uses where shapes allow it: all, all but those that multiply matrices, which are
    for bf16, or none."""
    if device.kind != "cpu" or kernels().library is None:
        return "none"
    return "all" if device.precision == "bf16" and multiplies() else "without_products"


def choose_device(name: str = "auto", precision: str = "auto") -> Device:
    """Choose what was not said.

    Args:
        name: ``auto``, or a torch device such as ``cpu``, ``cuda`` or ``cuda:1``.
        precision: ``auto``, ``fp32`` or ``bf16``. ``auto`` takes bf16 where a short probe finds its matrix products
            faster: on some processors they are several times faster, on others a hundred times slower.

    Raises:
        InputError: for a device that is not there, or an unknown precision.
    """
    if precision not in PRECISIONS:
        raise unknown_name("--precision", precision, PRECISIONS)
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            "--device must name a device of this machine", f"{name} ({reason})", "Use auto or cpu."
        ) from None
    if precision == "auto":
        return Device(name, "bf16" if _bf16_is_faster(name) else "fp32")
    return Device(name, "bf16" if precision == "bf16" else "fp32")


def _bf16_is_faster(name: str) -> bool:
    exact = torch.ones(_PROBE_SIZE, _PROBE_SIZE, device=name)
    seconds = {dtype: _fastest_product(exact.to(dtype)) for dtype in (torch.float32, torch.bfloat16)}
    return seconds[torch.bfloat16] < 0.9 * seconds[torch.float32]


def _fastest_product(matrix: torch.Tensor) -> float:
    """Seconds of the fastest of a few products; the slowest processors are given up on after one."""
    best = float("inf")
    for _ in range(_PROBE_ROUNDS):
        started_at = time.perf_counter()
        product = matrix @ matrix
        if product.is_cuda:
            torch.cuda.synchronize()
        elapsed_seconds = time.perf_counter() - started_at
        best = min(best, elapsed_seconds)
        if elapsed_seconds > 0.2:
            break
    return best
