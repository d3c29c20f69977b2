"""Batches by number: what a step sees is a pure function of the seed and the step, and where the mask rate changes over
the run's steps, of their number too.

So a resumed run needs no replay, and any process can make any batch. An epoch's examples are put in random order and
cut into batches of almost equal numbers of tokens; every epoch has the same number of batches.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Int

from bertsmith.batches.batch import Batch
from bertsmith.batches.micro_batches import micro_bounds, token_multiple
from bertsmith.batches.sequence_format import FramedTokens, SequenceFormat
from bertsmith.batches.targets import BatchOrigin, TargetMaker
from bertsmith.corpus.corpus import Split
from bertsmith.examples.masking import TargetedTokens
from bertsmith.examples.pretraining import PretrainingExamples
from bertsmith.examples.targets import IGNORED
from bertsmith.foundation.random_streams import random_stream
from bertsmith.model.packed import PackedTokens

ExamplesOfEpoch = Callable[[int], PretrainingExamples]
"""From an epoch's number to its examples: the same every time, or drawn anew each epoch."""


_TARGET_MULTIPLE = 64
"""Targets of a batch are filled up to a multiple of this, as its tokens are, so that shapes come from a short list."""


@dataclass(frozen=True)
class _Epoch:
    examples: PretrainingExamples
    order: Int[np.ndarray, " examples"]
    batch_bounds: Int[np.ndarray, " batches_plus_one"]


class PretrainingLoader:
    """Batches of sequences with what must be found in them.

    Args:
        split: where tokens are fetched from.
        examples_of_epoch: the examples of an epoch.
        sequence_format: how text is framed.
        targets: decides what must be found, and what of the text is seen.
        batch_tokens: real tokens in a batch, special ones included. Batches of an epoch differ by less than a sequence
            from its mean, which is `batch_tokens` or a little more: as many batches as fill it share all tokens.
        micro_batch_tokens: most tokens in one forward pass; a batch with more is cut into several.
        seed: decides order and masks.
    """

    def __init__(
        self,
        split: Split,
        examples_of_epoch: ExamplesOfEpoch,
        sequence_format: SequenceFormat,
        *,
        targets: TargetMaker,
        batch_tokens: int,
        micro_batch_tokens: int,
        seed: int,
    ) -> None:
        self._split = split
        self._examples_of_epoch = examples_of_epoch
        self._format = sequence_format
        self._targets = targets
        self._micro_batch_tokens = micro_batch_tokens
        self._seed = seed
        # Two epochs are held: the one that trains and, at its border, the next one that is made ahead.
        self._epoch = lru_cache(maxsize=2)(self._make_epoch)
        total_tokens = int(sequence_format.lengths(examples_of_epoch(0)).sum())
        # Rounded down, so that a batch has room for any sequence and none is empty.
        self.batches_per_epoch = max(1, total_tokens // batch_tokens)

    def _make_epoch(self, number: int) -> _Epoch:
        examples = self._examples_of_epoch(number)
        order = random_stream(self._seed, "order", number).permutation(len(examples))
        lengths = self._format.lengths(examples)[order]
        before = np.cumsum(lengths) - lengths
        # A sequence belongs to the batch in whose share of the epoch's tokens it begins.
        batch = before * self.batches_per_epoch // lengths.sum()
        bounds = np.searchsorted(batch, np.arange(self.batches_per_epoch + 1))
        return _Epoch(examples, order, bounds)

    def examples(self, epoch: int) -> PretrainingExamples:
        """The examples of an epoch."""
        return self._epoch(epoch).examples

    def micro_batches(self, step: int, total_steps: int | None = None) -> tuple[Batch, ...]:
        """The batch of a step, in parts that each fit one forward pass.

        Args:
            step: counted from 0 over all epochs.
            total_steps: steps of the run; needed where targets depend on how far it is, as with a mask rate that
                changes.
        """
        number, place = divmod(step, self.batches_per_epoch)
        epoch = self._epoch(number)
        rows = epoch.order[epoch.batch_bounds[place] : epoch.batch_bounds[place + 1]]
        framed = self._format.assemble(self._split, epoch.examples, rows)
        targeted = self._targets(framed, self._format, BatchOrigin(self._seed, step, total_steps, number, rows))
        labels = epoch.examples.pair_labels
        return tuple(
            _batch_part(framed, targeted, None if labels is None else labels[rows], first, end)
            for first, end in micro_bounds(framed.sequence_starts, self._micro_batch_tokens)
        )

    def epoch_batches(self, *, max_tokens: int | None) -> Iterator[Batch]:
        """The batches of epoch 0 one after the other, until `max_tokens` real tokens, special ones included, have been
        given; where that is None, all of them."""
        given = 0
        for step in range(self.batches_per_epoch):
            for batch in self.micro_batches(step):
                yield batch
                given += batch.packed.num_tokens
            if max_tokens is not None and given >= max_tokens:
                return


def _batch_part(
    framed: FramedTokens,
    targeted: TargetedTokens,
    labels: Int[np.ndarray, " sequences"] | None,
    first: int,
    end: int,
) -> Batch:
    begin, stop = int(framed.sequence_starts[first]), int(framed.sequence_starts[end])
    targets = slice(*np.searchsorted(targeted.target_positions, (begin, stop)))
    num_targets = int(targets.stop - targets.start)
    filling = (0, -num_targets % _TARGET_MULTIPLE)
    return Batch(
        PackedTokens.build(
            targeted.token_ids[begin:stop],
            framed.segment_ids[begin:stop],
            framed.sequence_starts[first : end + 1] - begin,
            multiple=token_multiple(stop - begin),
        ),
        torch.from_numpy(np.pad(targeted.target_positions[targets] - begin, filling)),
        torch.from_numpy(np.pad(targeted.target_ids[targets], filling, constant_values=IGNORED)),
        num_targets,
        None if labels is None else torch.from_numpy(np.asarray(labels[first:end], np.int64)),
    )


class Prefetcher:
    """Makes the next batches in a background thread while the present one trains.

    Batches are asked for by step in ascending order; one out of order is made at once. What was made for another number
    of steps is dropped, since a batch may depend on it.

    Args:
        make: from a step and the run's steps to a batch.
        ahead: how many batches are begun before they are asked for.
    """

    def __init__(self, make: Callable[[int, int], tuple[Batch, ...]], *, ahead: int = 2) -> None:
        self._make = make
        self._ahead = ahead
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches")
        self._total_steps = 0
        self._pending: dict[int, Future[tuple[Batch, ...]]] = {}

    def get(self, step: int, last_step: int) -> tuple[Batch, ...]:
        """The batch of `step` in a run that ends with `last_step`; those that follow are begun."""
        changed = last_step + 1 != self._total_steps
        self._total_steps = last_step + 1
        for stale in [number for number in self._pending if changed or number < step]:
            self._pending.pop(stale).cancel()
        for number in range(step, min(step + self._ahead, last_step) + 1):
            if number not in self._pending:
                self._pending[number] = self._pool.submit(self._make, number, self._total_steps)
        return self._pending.pop(step).result()

    def __enter__(self) -> "Prefetcher":
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop the thread; batches that were not fetched are lost."""
        self._pool.shutdown(wait=True, cancel_futures=True)
