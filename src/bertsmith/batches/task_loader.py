"""Batches of a downstream task by number: what a step sees is a pure function of the seed and the step."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Int

from bertsmith.batches.batch import Batch
from bertsmith.batches.micro_batches import micro_bounds, token_multiple
from bertsmith.examples.ranges import places_of
from bertsmith.examples.targets import IGNORED
from bertsmith.examples.task_examples import TaskExamples
from bertsmith.foundation.random_streams import random_stream
from bertsmith.model.packed import PackedTokens


class TaskLoader:
    """Batches of a number of units, in another random order each epoch. A unit is a group of sequences that belong
    together, or a sequence where none do.

    Args:
        examples: the sequences and what must be found.
        batch_size: most units in a batch. The batches of an epoch differ by one at most, so that no step is made from a
            few left over.
        micro_batch_tokens: most tokens in one forward pass; a batch with more is cut into several.
        seed: decides the order.
    """

    def __init__(self, examples: TaskExamples, *, batch_size: int, micro_batch_tokens: int, seed: int) -> None:
        self._examples = examples
        bounds = examples.group_starts
        self._unit_starts = np.arange(len(examples) + 1) if bounds is None else np.asarray(bounds, np.int64)
        self.batch_size = batch_size
        self._micro_batch_tokens = micro_batch_tokens
        self._seed = seed
        self._order = lru_cache(maxsize=2)(self._make_order)
        self.batches_per_epoch = max(1, -(-self.num_units // batch_size))

    @property
    def num_units(self) -> int:
        """Groups, or sequences where they stand alone."""
        return len(self._unit_starts) - 1

    @property
    def num_tokens(self) -> int:
        """Tokens of all sequences, special ones included."""
        return len(self._examples.token_ids)

    def micro_batches(self, step: int) -> tuple[Batch, ...]:
        """The batch of a step, counted from 0 over all epochs, in parts that each fit one forward pass."""
        epoch, place = divmod(step, self.batches_per_epoch)
        first, end = (bound * self.num_units // self.batches_per_epoch for bound in (place, place + 1))
        return tuple(self._parts(self._order(epoch)[first:end]))

    def in_order(self) -> Iterator[Batch]:
        """Every unit once, in the order of the examples: for validation."""
        yield from self._parts(np.arange(self.num_units))

    def _make_order(self, epoch: int) -> Int[np.ndarray, " units"]:
        return random_stream(self._seed, "order", epoch).permutation(self.num_units)

    def _parts(self, units: Int[np.ndarray, " units"]) -> Iterator[Batch]:
        first_tokens = self._examples.sequence_starts[self._unit_starts]
        starts = np.concatenate([[0], np.cumsum(np.diff(first_tokens)[units])])
        for first, end in micro_bounds(starts, self._micro_batch_tokens):
            yield self._batch(units[first:end])

    def _batch(self, units: Int[np.ndarray, " units"]) -> Batch:
        examples = self._examples
        counts = np.diff(self._unit_starts)[units]
        sequences = places_of(self._unit_starts[units], counts)
        lengths = examples.lengths[sequences]
        tokens = places_of(examples.sequence_starts[sequences], lengths)
        packed = PackedTokens.build(
            examples.token_ids[tokens].astype(np.int64),
            examples.segment_ids[tokens].astype(np.int64),
            np.concatenate([[0], np.cumsum(lengths)]),
            multiple=token_multiple(int(lengths.sum())),
        )
        nothing = torch.empty(0, dtype=torch.int64)
        grouped = examples.group_starts is not None
        return Batch(
            packed,
            nothing,
            nothing,
            0,
            labels=torch.from_numpy(self._targets(units, sequences, tokens, len(packed.token_ids))),
            group_starts=torch.from_numpy(np.concatenate([[0], np.cumsum(counts)])) if grouped else None,
        )

    def _targets(
        self,
        units: Int[np.ndarray, " units"],
        sequences: Int[np.ndarray, " sequences"],
        tokens: Int[np.ndarray, " tokens"],
        filled: int,
    ) -> np.ndarray:
        targets = self._examples.targets
        if not len(targets):
            return np.empty(0, np.int64)
        match self._examples.targets_by:
            case "group":
                return targets[units]
            case "sequence":
                return targets[sequences]
            case "token":
                # Whole numbers are held in fewer bytes than losses take.
                dtype = np.int64 if np.issubdtype(targets.dtype, np.integer) else targets.dtype
                found = np.full((filled, *targets.shape[1:]), IGNORED, dtype)
                found[: len(tokens)] = targets[tokens]
                return found
