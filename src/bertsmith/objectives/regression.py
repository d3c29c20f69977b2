"""Regression over texts and pairs: loss, scale and metrics (the similarity task of Devlin et al. 2019, section 4.1)."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bertsmith.batches.batch import Batch
from bertsmith.model.heads import Model
from bertsmith.model.packed import PackedTokens
from bertsmith.objectives.correlation import pearson, spearman
from bertsmith.objectives.report import Counts, LossReport

TERM = "regress"
Scale = tuple[float, float]
"""Mean and spread of values."""
_AS_IT_IS: Scale = (0.0, 1.0)


@dataclass(frozen=True)
class Regression:
    """Mean squared error of the head's output, with targets as `standardised` gives them."""

    @property
    def terms(self) -> tuple[str, ...]:
        """One term."""
        return (TERM,)

    def counts(self, batch: Batch) -> Counts:
        """Number of sequences."""
        return {TERM: batch.packed.num_sequences}

    def report(self, model: Model, batch: Batch, *, with_hits: bool) -> LossReport:
        """Loss of a batch; there are no hits."""
        if model.classifier is None or batch.labels is None:
            raise ValueError(
                "Regression needs a head for one number, and values. Received: a model or batch without them. "
                'Build the model with heads.task="regress" and the batch from sequences with values.'
            )
        total = (_outputs(model, batch.packed) - batch.labels).square().sum()
        return LossReport({TERM: total}, {TERM: len(batch.labels)}, {})


def standardised(values: Float[np.ndarray, " rows"], scale: Scale | None) -> Float[np.ndarray, " rows"]:
    """Values as distances from the mean in spreads, which a head is trained to give; as they are without a scale."""
    mean, spread = scale or _AS_IT_IS
    return ((values - mean) / spread).astype(np.float32)


def sequence_values(model: Model, packed: PackedTokens) -> Float[Tensor, "sequences one"]:
    """The value of each sequence, in fp32 at least."""
    mean, spread = model.config.heads.value_scale or _AS_IT_IS
    return _outputs(model, packed)[:, None] * spread + mean


@torch.no_grad()
def rescale(model: Model, before: Scale | None, after: Scale | None) -> None:
    """Write the head's last layer anew so that the model gives the same values with another scale. The config stays.

    Args:
        model: a model with a head for one number.
        before: the scale with which it gives the right values now; None: it gives them as they are.
        after: the scale that it shall have.
    """
    if model.classifier is None:
        raise ValueError("rescale needs a head for one number. Received: a model without one. Give another model.")
    (mean, spread), (new_mean, new_spread) = before or _AS_IT_IS, after or _AS_IT_IS
    weight, bias = model.classifier.output.weight, model.classifier.output.bias
    # In double precision, which not every device has.
    weight.copy_(weight.to("cpu", torch.float64) * (spread / new_spread))
    bias.copy_((bias.to("cpu", torch.float64) * spread + mean - new_mean) / new_spread)


def _outputs(model: Model, packed: PackedTokens) -> Float[Tensor, " sequences"]:
    hidden = model.encoder.packed(packed)
    # Half precision has three digits, which is too few for a value, and the head costs next to nothing.
    exact = torch.promote_types(hidden.dtype, torch.float32)
    with torch.autocast(hidden.device.type, enabled=False):
        return model.classify(hidden.to(exact), packed)[:, 0]


def regression_scores(
    found: Float[np.ndarray, " rows"], truth: Float[np.ndarray, " rows"], *, spread: float = 1.0
) -> dict[str, float]:
    """How well values were told.

    Args:
        found: what the model says.
        truth: what is right.
        spread: of the training values, so that the loss compares with that of the training's steps.

    Returns:
        ``loss``, the mean squared error in spreads; ``mse``, in the values' own units; ``mae``, the mean distance;
        ``pearson`` and ``spearman``, correlations of values and of ranks, 0 where one side is constant; ``r2``, the
        share of the truth's variance that is explained, 0 where it has none.
    """
    errors = found.astype(np.float64) - truth
    mse, variance = float(np.square(errors).mean()), float(truth.var())
    varies = variance > 0 and truth.min() < truth.max()
    return {
        "loss": mse / spread**2,
        "mse": mse,
        "mae": float(np.abs(errors).mean()),
        "pearson": pearson(found, truth),
        "spearman": spearman(found, truth),
        "r2": 1 - mse / variance if varies else 0.0,
    }
