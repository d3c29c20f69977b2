"""Batches of labelled sequences by number: what a step sees is a pure function of the seed and the step."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Int

from bertsmith.batches.batch import Batch
from bertsmith.batches.micro_batches import TOKEN_MULTIPLE, micro_bounds
from bertsmith.examples.ranges import places_of
from bertsmith.examples.task_examples import TaskExamples
from bertsmith.foundation.random_streams import random_stream
from bertsmith.model.packed import PackedTokens


class TaskLoader:
    """Batches of a number of sequences, in another random order each epoch.

    Args:
        examples: the sequences.
        labels: class of each.
        batch_size: most sequences in a batch. The batches of an epoch differ by one at most, so that no step is made
            from a few left over.
        micro_batch_tokens: most tokens in one forward pass; a batch with more is cut into several.
        seed: decides the order.
    """

    def __init__(
        self,
        examples: TaskExamples,
        labels: Int[np.ndarray, " examples"],
        *,
        batch_size: int,
        micro_batch_tokens: int,
        seed: int,
    ) -> None:
        self._examples = examples
        self._labels = labels
        self._micro_batch_tokens = micro_batch_tokens
        self._seed = seed
        self._order = lru_cache(maxsize=2)(self._make_order)
        self.batches_per_epoch = max(1, -(-len(examples) // batch_size))

    @property
    def num_tokens(self) -> int:
        """Tokens of all sequences, special ones included."""
        return len(self._examples.token_ids)

    def micro_batches(self, step: int) -> tuple[Batch, ...]:
        """The batch of a step, counted from 0 over all epochs, in parts that each fit one forward pass."""
        epoch, place = divmod(step, self.batches_per_epoch)
        first, end = (bound * len(self._examples) // self.batches_per_epoch for bound in (place, place + 1))
        return tuple(self._parts(self._order(epoch)[first:end]))

    def in_order(self) -> Iterator[Batch]:
        """Every sequence once, in the order of the examples: for validation."""
        yield from self._parts(np.arange(len(self._examples)))

    def _make_order(self, epoch: int) -> Int[np.ndarray, " examples"]:
        return random_stream(self._seed, "order", epoch).permutation(len(self._examples))

    def _parts(self, rows: Int[np.ndarray, " rows"]) -> Iterator[Batch]:
        starts = np.concatenate([[0], np.cumsum(self._examples.lengths[rows])])
        for first, end in micro_bounds(starts, self._micro_batch_tokens):
            yield self._batch(rows[first:end])

    def _batch(self, rows: Int[np.ndarray, " rows"]) -> Batch:
        bounds = self._examples.sequence_starts
        tokens = places_of(bounds[rows], self._examples.lengths[rows])
        packed = PackedTokens.build(
            self._examples.token_ids[tokens].astype(np.int64),
            self._examples.segment_ids[tokens].astype(np.int64),
            np.concatenate([[0], np.cumsum(self._examples.lengths[rows])]),
            multiple=TOKEN_MULTIPLE,
        )
        nothing = torch.empty(0, dtype=torch.int64)
        return Batch(packed, nothing, nothing, 0, labels=torch.from_numpy(self._labels[rows]))
