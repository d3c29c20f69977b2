"""Running an objective over batches without training, with sums alone held in memory."""

import math
from collections.abc import Iterable

import torch

from bertsmith.batches.batch import Batch
from bertsmith.engine.device import Device
from bertsmith.model.heads import Model
from bertsmith.objectives.report import Counts, LossReport, Objective, add_counts


def evaluate(model: Model, objective: Objective, batches: Iterable[Batch], device: Device) -> dict[str, float]:
    """Loss and metrics over batches.

    Returns:
        ``loss`` in nats, and for each term of the objective ``<term>_loss``, ``<term>_accuracy`` and the number of
        predictions, ``<term>_count``.
    """
    was_training = model.training
    model.eval()
    reports: list[LossReport] = []
    with torch.inference_mode(), device.matrix_precision():
        for batch in batches:
            reports.append(objective.report(model, batch.to(device.name), with_hits=True))
    model.train(was_training)
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
