"""What a machine reaches at its best."""

from collections.abc import Callable

import pytest
import torch

from bertsmith.engine import rates
from bertsmith.engine.device import Device
from bertsmith.engine.rates import measured_rates


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that take no time."""
    for name, size in (("_SMALL_MATRIX", 32), ("_CPU_MATRIX", 128), ("_COPIED_ELEMENTS", 1 << 12)):
        monkeypatch.setattr(rates, name, size)


def test_rates_are_work_over_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "_fastest_seconds", lambda work, device, *, warmup_rounds, rounds: 0.01)
    found = measured_rates(Device("cpu", "fp32"))
    assert found.operations_per_second == pytest.approx(2 * 128**3 / 0.01)
    assert found.bf16_operations_per_second == pytest.approx(2 * 128**3 / 0.01)
    assert found.bytes_per_second == pytest.approx(2 * 4 * (1 << 12) / 0.01)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_products_are_in_the_precision_that_they_are_told_of(
    precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: list[torch.dtype] = []

    def take(work: Callable[[], object], device: Device, *, warmup_rounds: int, rounds: int) -> float:
        made = work()
        assert isinstance(made, torch.Tensor)
        if made.ndim == 2:
            kinds.append(made.dtype)
        # As fast as its type is wide, so that the two are told apart.
        return made.element_size() / 1e3

    monkeypatch.setattr(rates, "_fastest_seconds", take)
    found = measured_rates(Device("cpu", precision))  # pyright: ignore[reportArgumentType]
    assert set(kinds) == ({torch.bfloat16} if precision == "bf16" else {torch.bfloat16, torch.float32})
    ratio = found.bf16_operations_per_second / found.operations_per_second
    assert ratio == pytest.approx(1.0 if precision == "bf16" else 2.0)


def test_a_processor_that_takes_very_long_is_not_asked_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def slow(work: Callable[[], object], device: Device, *, warmup_rounds: int, rounds: int) -> float:
        asked.append(rounds)
        return 2.0

    monkeypatch.setattr(rates, "_fastest_seconds", slow)
    found = measured_rates(Device("cpu", "bf16"))
    assert asked == [1, rates._ROUNDS]
    assert found.operations_per_second == pytest.approx(2 * 32**3 / 2.0)


def test_the_fastest_round_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now, took = [0.0], iter([0.1, 9.0, 3.0, 2.0, 4.0])

    def work() -> None:
        now[0] += next(took)

    monkeypatch.setattr("bertsmith.engine.rates.time.perf_counter", lambda: now[0])
    assert rates._fastest_seconds(work, Device("cpu", "fp32"), warmup_rounds=1, rounds=4) == pytest.approx(2.0)


def test_this_machine_has_rates() -> None:
    found = measured_rates(Device("cpu", "fp32"))
    assert 1e6 < found.operations_per_second < 1e16
    assert 1e6 < found.bytes_per_second < 1e14
