"""How long a step takes on this machine, measured on the real model and a real batch."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from bertsmith.batches.batch import Batch
from bertsmith.engine.device import Device
from bertsmith.model.heads import Model
from bertsmith.objectives.report import Objective, add_counts

_ROUNDS = 3
_OPTIMIZER_SHARE = 1.15
"""A whole step beside its forward and backward passes, for a first guess; the loop measures and corrects."""


def seconds_per_step(model: Model, objective: Objective, micro_batches: Sequence[Batch], device: Device) -> float:
    """Seconds of a training step, without taking one: weights, gradients and torch's random state stay as they are.

    The first round is not counted: it allocates memory and chooses kernels.
    """
    counts = add_counts(objective.counts(batch) for batch in micro_batches)
    seconds: list[float] = []
    with _nothing_left(model, device):
        for _ in range(1 + _ROUNDS):
            started_at = time.perf_counter()
            for batch in micro_batches:
                with device.matrix_precision():
                    report = objective.report(model, batch.to(device.name), with_hits=False)
                report.loss(counts).backward()
            if device.kind == "cuda":
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - started_at)
    return _OPTIMIZER_SHARE * min(seconds[1:])


@contextmanager
def _nothing_left(model: Model, device: Device) -> Iterator[None]:
    """Take away what backward passes leave: gradients, and rows of the token embedding's, which wait in a list."""
    embedding = model.token_embedding
    rows = embedding.rows
    embedding.rows = None if rows is None else []
    try:
        with device.random_state_kept():
            yield
    finally:
        embedding.rows = rows
        model.zero_grad(set_to_none=True)
