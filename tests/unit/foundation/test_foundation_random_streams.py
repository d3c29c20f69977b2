import subprocess
import sys

import numpy as np

from bertsmith.foundation.random_streams import derived_seed, random_stream

GOLDEN_SEED = 9_344_903_805_645_532_854


def test_the_same_name_under_the_same_seed_gives_the_same_numbers() -> None:
    assert np.array_equal(random_stream(7, "masks", 3).random(100), random_stream(7, "masks", 3).random(100))


def test_another_seed_name_type_or_grouping_gives_other_numbers() -> None:
    names = [(7, "masks", 3), (8, "masks", 3), (7, "masks", 4), (7, "masks", "3"), (7, "masks3"), (7, "mask", "s", 3)]
    seeds = {derived_seed(*name) for name in [*names, (7, 3, "masks"), (-7, "masks", 3), (7,), (7, "")]}
    assert len(seeds) == 10
    assert not np.array_equal(random_stream(7, "masks", 3).random(100), random_stream(7, "masks", 4).random(100))


def test_a_stream_is_the_same_in_another_process_and_in_every_version() -> None:
    code = "from bertsmith.foundation.random_streams import derived_seed; print(derived_seed(7, 'masks', 3))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == derived_seed(7, "masks", 3) == GOLDEN_SEED


def test_a_seed_fits_64_bits() -> None:
    assert all(0 <= derived_seed(seed, "x") < 2**64 for seed in (-1, 0, 2**80))


def test_a_stream_neither_reads_nor_moves_the_global_state() -> None:
    np.random.seed(0)
    expected = np.random.random()
    np.random.seed(0)
    first = random_stream(1, "a").random()
    assert np.random.random() == expected
    assert random_stream(1, "a").random() == first


def test_neighbouring_streams_are_not_alike() -> None:
    numbers = np.stack([random_stream(0, "step", step).random(2_000) for step in range(40)])
    correlations = np.asarray(np.corrcoef(numbers))[~np.eye(40, dtype=bool)]
    assert np.abs(correlations).max() < 0.12
    assert abs(numbers.mean() - 0.5) < 0.005
