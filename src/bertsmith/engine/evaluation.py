"""Running a model without training it: as it is when nothing is dropped out, or an objective over batches."""

import contextlib
import math
from collections.abc import Iterable, Iterator

import torch

from bertsmith.batches.batch import Batch
from bertsmith.engine.device import Device
from bertsmith.model.heads import Model
from bertsmith.objectives.report import Counts, LossReport, Objective, add_counts


@contextlib.contextmanager
def evaluating(model: Model) -> Iterator[None]:
    """Inside the block, nothing is dropped out; afterwards the model is as it was, also where the block fails."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def evaluate(model: Model, objective: Objective, batches: Iterable[Batch], device: Device) -> dict[str, float]:
    """Loss and metrics over batches, with sums alone held in memory.

    Returns:
        ``loss`` in nats, and for each term of the objective ``<term>_loss``, ``<term>_accuracy`` and the number of
        predictions, ``<term>_count``.
    """
    reports: list[LossReport] = []
    with evaluating(model), torch.inference_mode(), device.matrix_precision():
        for batch in batches:
            reports.append(objective.report(model, batch.to(device.name), with_hits=True))
    return metrics(reports)


def metrics(reports: list[LossReport]) -> dict[str, float]:
    """Mean losses and accuracies of several reports together."""
    counts: Counts = add_counts(report.counts for report in reports)
    values: dict[str, float] = {}
    for term, count in counts.items():
        total = math.fsum(float(report.totals[term]) for report in reports)
        values[f"{term}_loss"] = total / count if count else 0.0
        hits = [int(report.hits[term]) for report in reports if term in report.hits]
        if hits:
            values[f"{term}_accuracy"] = sum(hits) / count if count else 0.0
        values[f"{term}_count"] = count
    return {"loss": math.fsum(values[f"{term}_loss"] for term in counts), **values}
