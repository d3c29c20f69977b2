"""What a step sees."""

from collections.abc import Sequence

import numpy as np
import pytest
from loader_parts import content, loader_of

from bertsmith.batches.batch import Batch
from bertsmith.batches.micro_batches import token_multiple
from bertsmith.batches.targets import MaskedTargets
from bertsmith.corpus.corpus import Split
from bertsmith.examples.masking import MaskingConfig
from bertsmith.examples.targets import IGNORED
from bertsmith.foundation.random_streams import random_stream
from made_corpora import made_format, made_split

FORMAT = made_format()


def _split(documents: int = 30, seed: int = 0) -> Split:
    stream = random_stream(seed, "lengths")
    return made_split([stream.integers(1, 25, size=stream.integers(1, 9)).tolist() for _ in range(documents)])


def _true_texts(batches: Sequence[Batch]) -> list[tuple[int, ...]]:
    """The text of each sequence as it was before masking."""
    held = content(batches)
    tokens = held.token_ids.copy()
    tokens[held.target_positions] = held.target_ids
    bounds = np.cumsum(held.lengths)[:-1]
    return [tuple(sequence[1:-1].tolist()) for sequence in np.split(tokens, bounds)]


def test_a_step_is_a_function_of_seed_and_step() -> None:
    old, fresh, other = loader_of(_split()), loader_of(_split()), loader_of(_split(), seed=1)
    steps = list(range(2 * old.batches_per_epoch + 3))
    before = [content(old.micro_batches(step)) for step in steps]
    for step in reversed(steps):
        assert content(fresh.micro_batches(step)) == before[step]
    assert any(content(other.micro_batches(step)) != before[step] for step in steps)


def test_a_step_of_pairs_is_a_function_of_seed_and_step() -> None:
    old = loader_of(_split(), pairs=True)
    steps = list(range(2 * old.batches_per_epoch + 3))
    before = [content(old.micro_batches(step)) for step in steps]
    assert set(np.concatenate([held.labels for held in before]).tolist()) == {0, 1}
    for step in reversed(steps):
        assert content(loader_of(_split(), pairs=True).micro_batches(step)) == before[step]


def test_an_epoch_shows_every_sequence_once_in_another_order_each_time() -> None:
    split = _split()
    loader = loader_of(split)
    examples = loader.examples(0)
    expected = sorted(
        tuple(split.tokens(start, end).tolist())
        for start, end in zip(examples.first_starts.tolist(), examples.first_ends.tolist(), strict=True)
    )
    orders = []
    for epoch in range(3):
        first = epoch * loader.batches_per_epoch
        shown = [
            text
            for step in range(first, first + loader.batches_per_epoch)
            for text in _true_texts(loader.micro_batches(step))
        ]
        assert sorted(shown) == expected
        orders.append(shown)
    assert orders[0] != orders[1] != orders[2]


def test_masks_differ_from_epoch_to_epoch() -> None:
    split = made_split([[40]])
    loader = loader_of(split, room=40, batch_tokens=42)
    assert loader.batches_per_epoch == 1
    first, second = (content(loader.micro_batches(step)) for step in range(2))
    assert np.array_equal(first.lengths, second.lengths)
    assert not np.array_equal(first.target_positions, second.target_positions)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("batch_tokens", [66, 120, 500])
def test_no_batch_is_empty_and_all_are_within_a_sequence_of_their_share(pairs: bool, batch_tokens: int) -> None:
    loader = loader_of(_split(60), pairs=pairs, batch_tokens=batch_tokens)
    for epoch in range(2):
        total = FORMAT.lengths(loader.examples(epoch)).sum()
        share = total / loader.batches_per_epoch
        if epoch == 0:
            assert batch_tokens <= share < batch_tokens * (1 + 1 / loader.batches_per_epoch)
        sizes = [
            sum(batch.packed.num_tokens for batch in loader.micro_batches(step))
            for step in range(epoch * loader.batches_per_epoch, (epoch + 1) * loader.batches_per_epoch)
        ]
        assert sum(sizes) == total
        assert min(sizes) > 0
        assert max(abs(size - share) for size in sizes) < 33


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("micro_batch_tokens", [1, 32, 50, 117, 200])
def test_micro_batches_hold_the_same_as_the_whole_batch(pairs: bool, micro_batch_tokens: int) -> None:
    whole = loader_of(_split(60), pairs=pairs, batch_tokens=400)
    cut = loader_of(_split(60), pairs=pairs, batch_tokens=400, micro_batch_tokens=micro_batch_tokens)
    for step in range(4):
        (only,), parts = whole.micro_batches(step), cut.micro_batches(step)
        assert content(parts) == content([only])
        longest = int(content([only]).lengths.max())
        assert max(batch.packed.num_tokens for batch in parts) <= max(micro_batch_tokens, longest)
        assert len(parts) >= 400 // max(micro_batch_tokens, longest) - 1


def test_a_batch_of_exactly_the_largest_size_is_not_cut_larger() -> None:
    # Seven sequences of 32 tokens in runs of at most 64: even cuts by share alone would make a run of 96.
    split = made_split([[30]] * 7)
    loader = loader_of(split, batch_tokens=224, micro_batch_tokens=64)
    assert [batch.packed.num_tokens for batch in loader.micro_batches(0)] == [64, 64, 64, 32]


def test_what_fills_up_a_shape_is_in_no_count() -> None:
    (batch,) = loader_of(_split(60), batch_tokens=400).micro_batches(0)
    assert len(batch.packed.token_ids) % 32 == len(batch.target_ids) % 64 == 0
    assert batch.num_targets < len(batch.target_ids)
    assert (batch.target_ids[: batch.num_targets] >= 0).all()
    assert (batch.target_ids[batch.num_targets :] == IGNORED).all()
    assert int(batch.packed.sequence_starts[-1]) == batch.packed.num_tokens < len(batch.packed.token_ids)


@pytest.mark.parametrize(("tokens", "rows"), [(1, 32), (457, 480), (2048, 2048), (2049, 2176), (4100, 4224)])
def test_few_tokens_are_filled_up_less_than_many(tokens: int, rows: int) -> None:
    assert tokens + -tokens % token_multiple(tokens) == rows


def test_targets_are_text_and_never_special() -> None:
    loader = loader_of(_split(), pairs=True, targets=MaskedTargets(MaskingConfig(mask_rate=1.0)))
    for step in range(loader.batches_per_epoch):
        held = content(loader.micro_batches(step))
        assert held.target_ids.min() >= 10
        assert len(held.target_ids) == len(held.token_ids) - 3 * len(held.lengths)


def test_segments_and_positions_restart_with_each_sequence() -> None:
    loader = loader_of(_split(), pairs=True)
    held = content(loader.micro_batches(0))
    bounds = np.cumsum(held.lengths)[:-1]
    for segments, positions in zip(
        np.split(held.segment_ids, bounds), np.split(held.position_ids, bounds), strict=True
    ):
        assert np.array_equal(positions, np.arange(len(positions)))
        assert segments[0] == 0
        assert segments[-1] == 1
        assert (np.diff(segments) >= 0).all()


def test_a_short_tail_is_a_short_sequence_and_nothing_is_lost() -> None:
    split = made_split([[300]])
    loader = loader_of(split, room=126, batch_tokens=256)
    texts = sorted(_true_texts(loader.micro_batches(0)), key=len)
    assert [len(text) for text in texts] == [48, 126, 126]
    assert sorted(token for text in texts for token in text) == sorted(split.tokens(0, 300).tolist())


def test_a_corpus_smaller_than_a_batch_is_one_batch() -> None:
    loader = loader_of(made_split([[1]]), batch_tokens=8192)
    assert loader.batches_per_epoch == 1
    for step in range(3):
        (batch,) = loader.micro_batches(step)
        assert (batch.packed.num_tokens, batch.num_targets) == (3, 1)


def test_validation_batches_are_the_first_epoch_until_enough_tokens_are_given() -> None:
    loader = loader_of(_split(60), batch_tokens=100)
    given = list(loader.epoch_batches(max_tokens=350))
    sizes = [batch.packed.num_tokens for batch in given]
    assert sum(sizes[:-1]) < 350 <= sum(sizes)
    again = list(loader.epoch_batches(max_tokens=350))
    assert content(given) == content(again)
    for most in (10**9, None):
        everything = sum(batch.packed.num_tokens for batch in loader.epoch_batches(max_tokens=most))
        assert everything == FORMAT.lengths(loader.examples(0)).sum()
