"""The probe of two engines: what is timed, what counts, and how long it takes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bertsmith.inference.engine import Engine, Job
from bertsmith.inference.engine_probe import Speeds, probe_batches, probe_speeds
from bertsmith.inference.running import TokenWindow
from bertsmith.model.config import ModelConfig, TaskName
from made_predictors import made_task_model

CONFIG = made_task_model("classify").config
LARGE = CONFIG.model_copy(update={"encoder": CONFIG.encoder.model_copy(update={"max_position_embeddings": 512})})


class _Clock:
    """Stands still but for what an engine adds."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class _Paced(Engine):
    """Takes a given time for each token, and in one call more."""

    def __init__(self, clock: _Clock, token_seconds: float, *, held_up: dict[int, float] | None = None) -> None:
        self.calls: list[list[int]] = []
        self.positions: list[list[int]] = []
        self._clock = clock
        self._token_seconds = token_seconds
        self._held_up = held_up or {}

    @property
    def config(self) -> ModelConfig:
        return LARGE

    @property
    def precision(self) -> str:
        return "fp32"

    def refuse_other(self, job: Job) -> None:
        raise AssertionError("A probe asks for what was chosen before.")

    def outputs(self, task: TaskName, windows: Sequence[TokenWindow]) -> list[Any]:
        lengths = [len(window.token_ids) for window in windows]
        self._clock.now += self._token_seconds * sum(lengths) + self._held_up.get(len(self.calls), 0.0)
        self.calls.append(lengths)
        return []

    def vocabulary(self, windows: Sequence[TokenWindow], positions: Sequence[Sequence[int]]) -> list[Any]:
        self.positions += [list(places) for places in positions]
        return self.outputs("embed", windows)


def _probed(usual: float, other: float, *held_up: dict[int, float]) -> Speeds:
    clock = _Clock()
    of_usual, of_other = held_up or ({}, {})
    engines = _Paced(clock, usual, held_up=of_usual), _Paced(clock, other, held_up=of_other)
    return probe_speeds(*engines, "classify", clock=clock)


@pytest.mark.parametrize(("other", "clearly"), [(0.5, True), (0.89, True), (0.91, False), (1.0, False), (2.0, False)])
def test_another_engine_is_clearly_faster_where_it_needs_a_tenth_less(other: float, clearly: bool) -> None:
    found = _probed(1e-5, other * 1e-5)
    assert found.other_is_clearly_faster == clearly
    assert found.usual_seconds == pytest.approx(1e-5 * found.tokens)
    assert found.other_seconds == pytest.approx(other * 1e-5 * found.tokens)


def test_neither_the_first_use_nor_a_round_that_was_held_up_counts() -> None:
    found = _probed(1e-5, 0.8e-5, {0: 5.0}, {0: 9.0, 10: 0.05, 12: 0.05})
    assert found.tokens == 1_440
    assert found.usual_seconds == pytest.approx(1e-5 * 1_440)
    assert found.other_is_clearly_faster


@pytest.mark.parametrize("token_seconds", [1e-8, 1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3])
def test_a_probe_takes_about_a_second_at_most(token_seconds: float) -> None:
    clock = _Clock()
    probe_speeds(_Paced(clock, token_seconds), _Paced(clock, token_seconds), "tag", clock=clock)
    assert clock.now - 100.0 < 1.3


def test_a_model_that_takes_long_is_timed_by_fewer_tokens_and_twice_at_least() -> None:
    clock = _Clock()
    slow = _Paced(clock, 5e-3)
    found = probe_speeds(slow, _Paced(clock, 5e-3), "classify", clock=clock)
    assert found.tokens == 186
    assert [sum(lengths) for lengths in slow.calls] == [24, 90, 96, 90, 96]


def test_engines_take_turns_with_the_same_windows_of_like_length() -> None:
    clock = _Clock()
    usual, other = _Paced(clock, 1e-6), _Paced(clock, 1e-6)
    found = probe_speeds(usual, other, "classify", clock=clock)
    assert usual.calls == other.calls
    assert found.tokens == sum(map(sum, usual.calls[-2:])) == 1_440
    for lengths in usual.calls:
        assert max(lengths) <= 1.15 * min(lengths)


def test_masks_are_probed_by_one_mask_a_text() -> None:
    clock = _Clock()
    usual = _Paced(clock, 1e-6)
    probe_speeds(usual, _Paced(clock, 1e-6), "fill", clock=clock)
    lengths = [length for call in usual.calls for length in call]
    assert usual.positions == [[length // 2] for length in lengths]


@pytest.mark.parametrize("positions", [1, 16, 64, 512])
def test_windows_are_such_as_the_model_takes(positions: int) -> None:
    encoder = CONFIG.encoder.model_copy(update={"max_position_embeddings": positions})
    batches = probe_batches(CONFIG.model_copy(update={"encoder": encoder}))
    windows = [window for batch in batches for window in batch]
    assert len(windows) == 40
    for window in windows:
        assert 1 <= len(window.token_ids) <= positions
        assert window.token_ids.min() >= 0
        assert window.token_ids.max() < encoder.vocab_size
        assert len(window.segment_ids) == len(window.token_ids)
    assert np.unique(np.concatenate([window.token_ids for window in windows])).size > min(positions, 20)
