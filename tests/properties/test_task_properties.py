"""Cutting long texts, and batches of labelled rows, over random sizes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.batches.task_loader import TaskLoader
from bertsmith.examples.classification import stratified_split
from bertsmith.examples.task_examples import TaskExamples, kept_windows
from bertsmith.examples.windows import means_by_row, windows_of
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.random_streams import random_stream
from made_corpora import WORDS, made_tokenizer

TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join)
ITEM = st.one_of(TEXT, st.tuples(TEXT, TEXT))


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
@given(item=ITEM, max_length=st.integers(7, 80))
@settings(max_examples=60, deadline=None)
def test_the_kept_head_is_the_tokenizers_own_cut(algorithm: str, item: str | tuple[str, str], max_length: int) -> None:
    tokenizer = made_tokenizer(algorithm)
    whole, cut = tokenizer.encode_batch([item])[0], tokenizer.encode_batch([item], max_length)[0]
    (kept,) = kept_windows(whole, max_length)
    assert whole.token_ids[kept].tolist() == cut.token_ids.tolist()
    assert whole.segment_ids[kept].tolist() == cut.segment_ids.tolist()
    assert [len(part) for part in kept_windows(whole, max_length, "tail")] == [len(kept)]


@given(item=ITEM, max_length=st.integers(10, 80))
@settings(max_examples=60, deadline=None)
def test_windows_show_every_token_of_the_longer_text_and_fit(item: str | tuple[str, str], max_length: int) -> None:
    whole = made_tokenizer().encode_batch([item])[0]
    windows = kept_windows(whole, max_length, "windows")
    longer = int((whole.sequence_ids == 1).sum() >= (whole.sequence_ids == 0).sum())
    shown = set(np.concatenate(windows).tolist())
    longer = longer if isinstance(item, tuple) else 0
    assert shown >= set(np.flatnonzero(whole.sequence_ids == longer).tolist())
    for kept in windows:
        assert len(kept) <= max_length
        assert (np.diff(kept) > 0).all()
        assert set(np.flatnonzero(whole.sequence_ids < 0).tolist()) <= set(kept.tolist())
    assert len({len(kept) for kept in windows}) == 1


@given(st.integers(0, 500), st.integers(1, 60), st.integers(0, 59))
def test_windows_cover_a_text_and_overlap(length: int, room: int, overlap: int) -> None:
    if length > room and overlap >= room:
        with pytest.raises(InputError, match="overlap must be smaller"):
            windows_of(length, room, overlap)
        return
    windows = windows_of(length, room, overlap)
    assert windows[0][0] == 0
    assert windows[-1][1] == length
    for start, end in windows:
        assert end - start == min(length, room)
    for (_, end), (start, _) in pairwise(windows):
        assert end - start >= overlap
    assert len(set(windows)) == len(windows)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=20), st.integers(0, 3))
def test_the_windows_of_a_row_are_averaged(counts: list[int], seed: int) -> None:
    rows = np.repeat(np.arange(len(counts)), counts)
    outputs = random_stream(seed, "outputs").normal(size=(len(rows), 3)).astype(np.float32)
    expected = [outputs[rows == row].mean(axis=0) for row in range(len(counts))]
    np.testing.assert_allclose(means_by_row(outputs, rows), expected, rtol=1e-5, atol=1e-6)


@given(
    lengths=st.lists(st.integers(1, 20), min_size=1, max_size=40),
    batch_size=st.integers(1, 50),
    most=st.integers(1, 100),
    seed=st.integers(0, 5),
)
@settings(max_examples=60, deadline=None)
def test_every_epoch_shows_every_row_once(lengths: list[int], batch_size: int, most: int, seed: int) -> None:
    starts = np.concatenate([[0], np.cumsum(lengths)])
    tokens = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    labels = np.arange(len(lengths))
    examples = TaskExamples(tokens, np.zeros_like(tokens, np.int8), starts, labels, labels)
    loader = TaskLoader(examples, batch_size=batch_size, micro_batch_tokens=most, seed=seed)
    for epoch in range(2):
        seen: list[int] = []
        for step in range(epoch * loader.batches_per_epoch, (epoch + 1) * loader.batches_per_epoch):
            parts = loader.micro_batches(step)
            assert 1 <= sum(part.packed.num_sequences for part in parts) <= batch_size
            for part in parts:
                assert part.labels is not None
                assert part.packed.num_tokens <= max(most, max(lengths))
                owners = part.labels.repeat_interleave(part.packed.sequence_starts.diff())
                assert part.packed.token_ids[: part.packed.num_tokens].tolist() == owners.tolist()
                seen += part.labels.tolist()
        assert sorted(seen) == labels.tolist()


@given(
    counts=st.lists(st.integers(1, 60), min_size=2, max_size=6),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 3),
)
def test_a_split_leaves_every_label_in_training(counts: list[int], share: float, seed: int) -> None:
    ids = np.repeat(np.arange(len(counts)), counts)
    train, held = stratified_split(ids, share=share, seed=seed)
    assert sorted([*train.tolist(), *held.tolist()]) == list(range(len(ids)))
    assert set(ids[train].tolist()) == set(range(len(counts)))
    assert set(ids[held].tolist()) == {label for label, count in enumerate(counts) if count > 1}
