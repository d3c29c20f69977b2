"""What heads say of windows: a row for each, or rows for each token, however many tokens a window has."""

import numpy as np
import pytest

from bertsmith.engine.device import Device
from bertsmith.inference.running import TokenWindow
from bertsmith.inference.task_outputs import window_outputs
from bertsmith.objectives.answering import span_logits
from bertsmith.objectives.classification import class_logits
from made_questions import made_answerer
from made_tasks import made_classifier

CPU = Device("cpu", "fp32")


def _windows(*lengths: int) -> list[TokenWindow]:
    return [TokenWindow(np.arange(length) + 5, np.zeros(length, np.int64)) for length in lengths]


@pytest.mark.parametrize("lengths", [(1,), (1, 1, 1), (3, 1, 2)])
def test_a_head_over_tokens_gives_rows_of_tokens_however_short_a_window_is(lengths: tuple[int, ...]) -> None:
    model = made_answerer()
    found = window_outputs(model, _windows(*lengths), CPU, span_logits, per_token=True)
    assert [part.shape for part in found] == [(length, 2) for length in lengths]
    alone = [window_outputs(model, _windows(length), CPU, span_logits, per_token=True)[0] for length in lengths]
    for part, other in zip(found, alone, strict=True):
        assert part == pytest.approx(other, abs=1e-5)


@pytest.mark.parametrize("lengths", [(1,), (1, 1, 1), (3, 1, 2)])
def test_a_head_over_sequences_gives_a_row_for_each(lengths: tuple[int, ...]) -> None:
    model = made_classifier(("dry", "wet", "cold"))
    found = window_outputs(model, _windows(*lengths), CPU, class_logits, per_token=False)
    assert [part.shape for part in found] == [(3,) for _ in lengths]


def test_a_head_that_reads_something_else_is_told() -> None:
    with pytest.raises(ValueError, match=r"a row for each sequence, 2\. Received: 4 rows"):
        window_outputs(made_answerer(), _windows(3, 1), CPU, span_logits, per_token=False)
    with pytest.raises(ValueError, match=r"a row for each token, 4\. Received: 2 rows"):
        window_outputs(made_classifier(("dry", "wet")), _windows(3, 1), CPU, class_logits, per_token=True)
