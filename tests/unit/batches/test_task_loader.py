"""Batches of labelled sequences are a pure function of the seed and the step."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from bertsmith.batches.batch import Batch
from bertsmith.batches.task_loader import TaskLoader
from bertsmith.examples.targets import IGNORED
from bertsmith.examples.task_examples import TaskExamples, text_examples
from made_corpora import made_texts, made_tokenizer

ROWS = 37
LABELS = np.arange(ROWS)
"""Each sequence's number, so that it can be told."""
EXAMPLES: TaskExamples = text_examples(made_texts(ROWS, sentences=(1, 4)), LABELS, made_tokenizer(), max_length=64)


def _loader(*, batch_size: int = 8, micro_batch_tokens: int = 10_000, seed: int = 0) -> TaskLoader:
    return TaskLoader(EXAMPLES, batch_size=batch_size, micro_batch_tokens=micro_batch_tokens, seed=seed)


def _labels(batches: tuple[Batch, ...]) -> list[int]:
    return [int(label) for batch in batches if batch.labels is not None for label in batch.labels]


def _check_tokens(batch: Batch) -> None:
    assert batch.labels is not None
    starts = batch.packed.sequence_starts.tolist()
    for number, label in enumerate(batch.labels.tolist()):
        ours = batch.packed.token_ids[starts[number] : starts[number + 1]]
        theirs = slice(*EXAMPLES.sequence_starts[label : label + 2])
        assert ours.tolist() == EXAMPLES.token_ids[theirs].tolist()


@pytest.mark.parametrize("batch_size", [1, 5, 8, 36, 37, 100])
def test_an_epoch_shows_every_row_once_in_batches_of_like_size(batch_size: int) -> None:
    loader = _loader(batch_size=batch_size)
    assert loader.batches_per_epoch == -(-ROWS // batch_size)
    for epoch in (0, 1):
        steps = range(epoch * loader.batches_per_epoch, (epoch + 1) * loader.batches_per_epoch)
        seen = [_labels(loader.micro_batches(step)) for step in steps]
        assert Counter(label for labels in seen for label in labels) == Counter(range(ROWS))
        sizes = {len(labels) for labels in seen}
        assert max(sizes) <= batch_size
        assert max(sizes) - min(sizes) <= 1


def test_sequences_stand_beside_their_labels() -> None:
    for batch in (*_loader().micro_batches(3), *_loader().in_order()):
        _check_tokens(batch)


def test_a_step_can_be_made_alone_and_in_any_order() -> None:
    forwards = [_labels(_loader().micro_batches(step)) for step in range(12)]
    one = _loader()
    assert [_labels(one.micro_batches(step)) for step in reversed(range(12))] == forwards[::-1]
    assert _labels(_loader(seed=1).micro_batches(0)) != forwards[0]
    assert forwards[0] != forwards[one.batches_per_epoch]


def test_micro_batches_hold_the_same_rows_in_parts() -> None:
    whole, parts = (_loader(batch_size=16, micro_batch_tokens=most).micro_batches(1) for most in (10_000, 150))
    assert len(whole) == 1
    assert len(parts) > 1
    assert _labels(parts) == _labels(whole)
    assert all(batch.packed.num_tokens <= 150 for batch in parts)


def test_in_order_gives_the_rows_as_they_stand() -> None:
    batches = tuple(_loader(micro_batch_tokens=200).in_order())
    assert len(batches) > 1
    assert _labels(batches) == list(range(ROWS))


def test_a_batch_moves_with_its_labels() -> None:
    (batch,) = _loader().micro_batches(0)
    moved = batch.to("meta")
    assert moved.labels is not None
    assert moved.labels.device == torch.device("meta")
    assert batch.num_targets == 0


def _grouped(sizes: list[int], **rest: Any) -> TaskExamples:
    """Groups of sequences of these sizes; every token of a group is its number."""
    sequences = [
        (np.full(2 + size, group, np.int64), np.zeros(2 + size, np.int64))
        for group, size in enumerate(sizes)
        for _ in range(size)
    ]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.repeat(np.arange(len(sizes)), sizes)
    return TaskExamples.of(sequences, rows, group_starts=bounds, targets_by="group", **rest)


def test_groups_are_never_parted_and_keep_their_targets() -> None:
    sizes = [2, 4, 3, 2, 5, 2, 2, 3]
    examples = _grouped(sizes, targets=np.arange(8))
    loader = TaskLoader(examples, batch_size=3, micro_batch_tokens=30, seed=0)
    assert loader.num_units == 8
    assert loader.batches_per_epoch == 3
    seen: list[int] = []
    for step in range(3):
        for batch in loader.micro_batches(step):
            assert batch.group_starts is not None
            assert batch.labels is not None
            starts = batch.packed.sequence_starts[batch.group_starts].tolist()
            for group, first, end in zip(batch.labels.tolist(), starts[:-1], starts[1:], strict=True):
                assert batch.packed.token_ids[first:end].tolist() == [group] * (sizes[group] * (2 + sizes[group]))
                seen.append(group)
    assert sorted(seen) == list(range(8))


def test_the_targets_of_tokens_go_with_them_and_filling_has_none() -> None:
    examples = replace(EXAMPLES, targets=EXAMPLES.token_ids.astype(np.int64), targets_by="token")
    loader = TaskLoader(examples, batch_size=8, micro_batch_tokens=10_000, seed=0)
    for batch in (*loader.micro_batches(2), *loader.in_order()):
        assert batch.labels is not None
        real = batch.packed.num_tokens
        assert batch.labels[:real].tolist() == batch.packed.token_ids[:real].tolist()
        assert len(batch.labels) == len(batch.packed.token_ids)
        assert (batch.labels[real:] == IGNORED).all()


def test_a_batch_moves_with_all_that_it_holds() -> None:
    examples = _grouped([2, 2], targets=np.arange(2))
    (batch,) = TaskLoader(examples, batch_size=2, micro_batch_tokens=100, seed=0).micro_batches(0)
    moved = batch.to("meta")
    assert moved.labels is not None
    assert moved.group_starts is not None
    assert moved.labels.device.type == moved.group_starts.device.type == moved.packed.token_ids.device.type == "meta"
