"""Cutting long texts, and batches of labelled rows, over random sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.batches.task_loader import TaskLoader
from bertsmith.examples.classification import stratified_split
from bertsmith.examples.task_examples import TaskExamples, kept_tokens
from made_corpora import WORDS, made_tokenizer

TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join)
ITEM = st.one_of(TEXT, st.tuples(TEXT, TEXT))


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
@given(item=ITEM, max_length=st.integers(7, 80))
@settings(max_examples=60, deadline=None)
def test_the_kept_head_is_the_tokenizers_own_cut(algorithm: str, item: str | tuple[str, str], max_length: int) -> None:
    tokenizer = made_tokenizer(algorithm)
    whole, cut = tokenizer.encode_batch([item])[0], tokenizer.encode_batch([item], max_length)[0]
    kept = kept_tokens(whole, max_length)
    assert whole.token_ids[kept].tolist() == cut.token_ids.tolist()
    assert whole.segment_ids[kept].tolist() == cut.segment_ids.tolist()
    assert len(kept_tokens(whole, max_length, "tail")) == len(kept)


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
    examples = TaskExamples(tokens, np.zeros_like(tokens, np.int8), starts, 0)
    labels = np.arange(len(lengths))
    loader = TaskLoader(examples, labels, batch_size=batch_size, micro_batch_tokens=most, seed=seed)
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
