"""A step's time goes to the part that takes it, whatever the model and whoever computes."""

from collections.abc import Callable

import pytest
import torch
from slow_parts import (
    BACKWARD,
    FORWARD,
    HEAD_FORWARD,
    KINDS,
    LAYERS,
    OPTIMIZER,
    StandingClock,
    batch,
    model_of,
    objective_of,
    slow_down,
    state_of,
)

from bertsmith.engine.device import Device
from bertsmith.engine.model_parts import parts_told
from bertsmith.engine.part_clock import PartClock, Segment, synchronize
from bertsmith.kernels import library
from bertsmith.kernels.library import Kernels
from bertsmith.model import Encoder
from bertsmith.training.step import StepPhase, TrainState, train_step

FP32 = Device("cpu", "fp32")


@pytest.fixture(params=["kernels", "torch"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the kernels, where there are any, and by torch alone."""
    if request.param == "torch":
        monkeypatch.setattr(library, "kernels", lambda: Kernels(None, "this test goes by torch alone"))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    return StandingClock(monkeypatch)


def _phases(clock: PartClock) -> Callable[[StepPhase], None]:
    begun: dict[StepPhase, Segment] = {
        "forward": Segment("other"),
        "backward": Segment("head_and_loss", backward=True),
        "optimizer": Segment("optimizer"),
    }
    return lambda phase: clock.enter(begun[phase])


def _watched(state: TrainState, kind: str, device: Device = FP32, *, batches: int = 1) -> dict[Segment, float]:
    """Seconds of each segment of a step, those alone that took any."""
    parts = PartClock(device)
    with parts_told(state.model, parts):
        parts.start()
        train_step(
            state,
            [batch()] * batches,
            objective_of(kind),
            device=device,
            learning_rate=1e-3,
            clip_norm=1.0,
            seed=0,
            on_phase=_phases(parts),
        )
        parts.stop()
    return {segment: seconds for segment, seconds in parts.seconds().items() if seconds}


def _expected(kind: str) -> dict[Segment, float]:
    calls = {"embedding": 1.0, "attention": LAYERS, "feed_forward": LAYERS, "norms": 2.0 * LAYERS}
    if kind == "modern":  # A norm without a sum, the one before the attention, is not slowed down.
        calls["norms"] = LAYERS
    if kind == "elmo":
        calls = {"embedding": 1.0, "recurrence": LAYERS}
    forward = {part: count * FORWARD[part] for part, count in calls.items()} | {"head_and_loss": HEAD_FORWARD}
    return {
        **{Segment(part): seconds for part, seconds in forward.items()},  # pyright: ignore[reportArgumentType]
        **{Segment(part, backward=True): BACKWARD * seconds for part, seconds in forward.items()},  # pyright: ignore[reportArgumentType]
        Segment("optimizer"): OPTIMIZER,
    }


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_part_has_its_own_time_forward_and_backward(
    kind: str, precision: str, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of(model_of(kind))
    slow_down(state, clock, monkeypatch)
    found = _watched(state, kind, Device("cpu", precision))  # pyright: ignore[reportArgumentType]
    assert found == _expected(kind)


def test_each_micro_batch_is_counted(clock: StandingClock, monkeypatch: pytest.MonkeyPatch) -> None:
    state = state_of(model_of("bert"))
    slow_down(state, clock, monkeypatch)
    found = _watched(state, "bert", batches=3)
    once = Segment("optimizer")
    assert found == {segment: (1 if segment == once else 3) * seconds for segment, seconds in _expected("bert").items()}


@pytest.mark.parametrize("kind", ["bert", "albert"])
def test_layers_that_are_run_again_count_backward(
    kind: str, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of(model_of(kind))
    assert isinstance(state.model.encoder, Encoder)
    state.model.encoder.recompute_activations(True)
    slow_down(state, clock, monkeypatch)
    expected = _expected(kind)
    for part in ("attention", "feed_forward", "norms"):
        expected[Segment(part, backward=True)] += expected[Segment(part)]
    assert _watched(state, kind) == expected


def test_a_frozen_encoder_has_no_backward_time(clock: StandingClock, monkeypatch: pytest.MonkeyPatch) -> None:
    state = state_of(model_of("bert"))
    state.model.encoder.requires_grad_(False)
    slow_down(state, clock, monkeypatch)
    found = _watched(state, "bert")
    backward = {segment.part for segment in found if segment.backward}
    # What is slowed down of the head lies before its first weight.
    assert backward <= {"head_and_loss"}
    assert {segment.part for segment in found if not segment.backward} >= {"embedding", "attention", "norms"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("recomputes", [False, True])
def test_watching_changes_nothing(kind: str, recomputes: bool) -> None:
    weights: list[dict[str, torch.Tensor]] = []
    for watched in (False, True):
        state = state_of(model_of(kind))
        if recomputes and isinstance(state.model.encoder, Encoder):
            state.model.encoder.recompute_activations(True)
        if watched:
            _watched(state, kind)
        else:
            train_step(state, [batch()], objective_of(kind), device=FP32, learning_rate=1e-3, clip_norm=1.0, seed=0)
        weights.append(state.model.state_dict())
    assert all(torch.equal(weights[0][name], value) for name, value in weights[1].items())


def test_nothing_is_left_on_the_model() -> None:
    state = state_of(model_of("bert"))
    _watched(state, "bert")
    modules = list(state.model.modules())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in modules)


def test_elsewhere_than_on_a_cpu_events_tell_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    line = iter([5.0, 7.0, 10.0, 14.0])
    waited: list[torch.device] = []

    class Event:
        """In milliseconds, as events of a device count."""

        def __init__(self, device: torch.device, *, enable_timing: bool) -> None:
            assert (device.type, enable_timing) == ("cuda", True)
            self.at = 0.0

        def record(self) -> None:
            self.at = next(line)

        def elapsed_time(self, end: "Event") -> float:
            return end.at - self.at

    monkeypatch.setattr(torch, "Event", Event)
    monkeypatch.setattr(torch.accelerator, "synchronize", waited.append)
    device = Device("cuda", "bf16")
    parts = PartClock(device)
    parts.start()
    parts.enter(Segment("attention"))
    parts.enter(Segment("attention", backward=True))
    parts.stop()
    synchronize(device)
    synchronize(FP32)
    assert waited == [torch.device("cuda")]
    expected = {Segment("other"): 0.002, Segment("attention"): 0.003, Segment("attention", backward=True): 0.004}
    assert parts.seconds() == pytest.approx(expected)


def test_the_parts_are_the_step_without_gap() -> None:
    parts = PartClock(FP32)
    parts.start()
    began_at = parts._entered[0][0]
    for part in ("attention", "norms", "attention"):
        parts.enter(Segment(part))
    parts.stop()
    assert sum(parts.seconds().values()) == pytest.approx(parts._end - began_at)
