"""Losses of a tiny training in float64, step by step, as they are kept in `loss_trace.json`.

A refactor leaves them as they are, within 1e-9. A change of the recipe (tokenizer, examples, masks, model, optimizer,
schedule) changes them, on purpose, and then the trace is made anew and committed with the change:

    python tests/golden/make_loss_trace.py
"""

import json

import pytest
from make_loss_trace import TRACE, TRACED_OBJECTIVES, loss_trace


@pytest.mark.parametrize("objective", TRACED_OBJECTIVES)
def test_losses_are_those_of_the_trace(objective: str) -> None:
    expected = json.loads(TRACE.read_text(encoding="utf-8"))[objective]
    found = loss_trace(objective)
    assert found.keys() == expected.keys()
    for name, losses in expected.items():
        assert found[name] == pytest.approx(losses, abs=1e-9, rel=0), name
    # It learns: the trace is of a training and not of noise.
    assert sum(found["loss"][-5:]) / 5 < sum(found["loss"][:5]) / 5 - 0.2
