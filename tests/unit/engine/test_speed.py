"""Measuring a step."""

import numpy as np
import torch

from bertsmith.batches.batch import Batch
from bertsmith.engine.device import Device
from bertsmith.engine.speed import seconds_per_step
from bertsmith.model import PackedTokens
from bertsmith.objectives.masked_language_model import MaskedLanguageModel
from bertsmith.training.row_gradients import RowGradients
from made_corpora import made_model, weights_of


def test_measuring_a_step_leaves_weights_and_gradients_alone() -> None:
    model = made_model(50, dropout=0.1)
    before, random_state = weights_of(model), torch.get_rng_state()
    rows = RowGradients(model.token_embedding)
    packed = PackedTokens.build(np.arange(12), np.zeros(12, np.int64), np.array([0, 5, 12]))
    batch = Batch(packed, torch.tensor([1, 7]), torch.tensor([3, 4]), 2)
    seconds = seconds_per_step(model, MaskedLanguageModel(), [batch, batch], Device("cpu", "fp32"))
    assert 0 < seconds < 10
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    rows.add_to_gradient()
    assert all(weight.grad is None for weight in model.parameters())
    assert torch.equal(torch.get_rng_state(), random_state)
