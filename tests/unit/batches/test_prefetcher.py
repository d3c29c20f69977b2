"""Batches made ahead in the background."""

import threading

import pytest
from loader_parts import content, loader_of

from bertsmith.batches.batch import Batch
from bertsmith.batches.loader import Prefetcher
from bertsmith.batches.targets import MaskedTargets
from bertsmith.examples.masking import MaskingConfig
from made_corpora import made_split


def _background_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("batches")]


def test_prefetched_batches_are_those_made_at_once() -> None:
    loader = loader_of(made_split([[9, 12, 5, 20, 3]] * 30))
    last = 2 * loader.batches_per_epoch
    with Prefetcher(loader.micro_batches) as prefetcher:
        for step in range(last + 1):
            assert content(prefetcher.get(step, last)) == content(loader.micro_batches(step))


def test_a_resumed_run_may_begin_anywhere_and_jump() -> None:
    loader = loader_of(made_split([[9, 12, 5, 20, 3]] * 30))
    with Prefetcher(loader.micro_batches) as prefetcher:
        for step in (7, 8, 12, 3, 4):
            assert content(prefetcher.get(step, 100)) == content(loader.micro_batches(step))


def test_nothing_beyond_the_last_step_is_made_and_each_step_once() -> None:
    made: list[int] = []

    def make(step: int, total_steps: int) -> tuple[Batch, ...]:
        made.append(step)
        return ()

    with Prefetcher(make, ahead=3) as prefetcher:
        for step in range(5, 10):
            prefetcher.get(step, 9)
    assert made == [5, 6, 7, 8, 9]


def test_batches_made_for_another_number_of_steps_are_made_anew() -> None:
    made: list[tuple[int, int]] = []

    def make(step: int, total_steps: int) -> tuple[Batch, ...]:
        made.append((step, total_steps))
        return ()

    with Prefetcher(make, ahead=2) as prefetcher:
        prefetcher.get(0, 9)
        prefetcher.get(1, 9)
        before = len(made)
        prefetcher.get(2, 19)
        prefetcher.get(3, 19)
    assert set(made[before:]) >= {(2, 20), (3, 20)}
    assert [call for call in made if call[0] < 2] == [(0, 10), (1, 10)]


def test_with_a_changing_mask_rate_a_step_is_the_same_made_ahead_or_anew() -> None:
    split = made_split([[9, 12, 5, 20, 3]] * 30)
    targets = MaskedTargets(MaskingConfig(mask_rate=0.9, final_mask_rate=0.1))
    loader = loader_of(split, targets=targets)
    last_steps = {0: 9, 1: 9, 2: 9, 3: 29, 4: 29, 5: 29, 6: 7, 7: 7}
    with Prefetcher(loader.micro_batches) as prefetcher:
        for step, last in last_steps.items():
            assert content(prefetcher.get(step, last)) == content(
                loader_of(split, targets=targets).micro_batches(step, last + 1)
            )


def test_batches_are_made_in_the_background_and_its_thread_ends() -> None:
    names: set[str] = set()

    def make(step: int, total_steps: int) -> tuple[Batch, ...]:
        names.add(threading.current_thread().name)
        return ()

    with Prefetcher(make) as prefetcher:
        prefetcher.get(0, 5)
        assert _background_threads()
    assert not _background_threads()
    assert all(name.startswith("batches") for name in names)


def test_an_error_while_making_a_batch_reaches_the_step_that_needs_it() -> None:
    def make(step: int, total_steps: int) -> tuple[Batch, ...]:
        if step == 2:
            raise OSError("the disk has gone")
        return ()

    with Prefetcher(make) as prefetcher:
        prefetcher.get(0, 5)
        prefetcher.get(1, 5)
        with pytest.raises(OSError, match="the disk has gone"):
            prefetcher.get(2, 5)
    assert not _background_threads()
