"""A graph is compared with its model in three shapes of batch, and refused where it differs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bertsmith.engine.device import Device
from bertsmith.exchange.onnx_export.build import model_graph
from bertsmith.exchange.onnx_export.graph import save_graph
from bertsmith.exchange.onnx_export.parity import ShapeDifference, differences, refuse_difference
from bertsmith.foundation.errors import InputError
from bertsmith.inference.onnx_engine import OnnxEngine, open_session
from bertsmith.inference.running import TokenWindow
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model.config import TaskName
from made_corpora import made_model, made_tokenizer
from made_predictors import made_task_model

CPU = Device("cpu", "fp32")


class _Shifted(TorchEngine):
    """Gives a little more than the model does, where a batch has several rows."""

    def outputs(self, task: TaskName, windows: Sequence[TokenWindow]) -> list[np.ndarray]:
        return [found + np.float32(0.001 * (len(windows) > 1)) for found in super().outputs(task, windows)]


@pytest.mark.parametrize("job", ["classify", "tag", "answer", "embed", "fill"])
def test_one_row_three_rows_and_the_longest_are_compared(tmp_path: Path, job: str) -> None:
    model = made_model(made_tokenizer().vocab_size) if job == "fill" else made_task_model(job)
    save_graph(model_graph(model), tmp_path / "model.onnx")
    engine = OnnxEngine(open_session(tmp_path / "model.onnx"), model.config, "fp32")
    found = differences(TorchEngine(model, CPU), engine, longest=64)
    assert [one.lengths for one in found] == [(16,), (7, 24, 15), (64,)]
    assert all(0 <= one.largest_difference < 1e-5 < one.largest_value for one in found)
    refuse_difference(found)


def test_lengths_are_those_that_the_model_takes() -> None:
    engine = TorchEngine(made_task_model("classify"), CPU)
    assert [one.lengths for one in differences(engine, engine, longest=10)] == [(10,), (7, 10, 10), (10,)]


def test_a_difference_in_one_shape_alone_is_found_and_refused() -> None:
    model = made_task_model("classify")
    found = differences(TorchEngine(model, CPU), _Shifted(model, CPU), longest=64)
    assert found[0].largest_difference == found[2].largest_difference == 0
    with pytest.raises(InputError, match=r"within 0\.0001.*0\.001 with rows of 7 and 24 and 15 tokens"):
        refuse_difference(found)


def test_the_limit_grows_with_the_numbers_and_what_is_no_number_is_refused() -> None:
    refuse_difference([ShapeDifference(1, (5,), 0.05, 1000.0)])
    with pytest.raises(InputError, match="a difference of nan"):
        refuse_difference([ShapeDifference(1, (5,), 0.0, 1.0), ShapeDifference(1, (9,), float("nan"), 1.0)])
