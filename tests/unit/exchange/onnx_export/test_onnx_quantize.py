"""A graph in int8: which layers are, and that a text's result is its own."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from bertsmith.engine.device import Device
from bertsmith.exchange.onnx_export.build import exported_config, model_graph
from bertsmith.exchange.onnx_export.quantize import quantized_layers, write_quantized
from bertsmith.inference.onnx_engine import OnnxEngine, open_session
from bertsmith.inference.running import TokenWindow
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model import Model
from made_corpora import made_model, made_tokenizer
from made_predictors import made_task_model


def _windows(model: Model, count: int) -> list[TokenWindow]:
    stream = np.random.default_rng(count)
    ids = [stream.integers(0, model.config.encoder.vocab_size, stream.integers(3, 20)) for _ in range(count)]
    return [TokenWindow(one, np.zeros_like(one)) for one in ids]


def _quantized(model: Model, folder: Path, *, second_product: bool = True) -> OnnxEngine:
    config = exported_config(model.config)
    (folder / "scratch").mkdir()
    write_quantized(
        model_graph(model, projection_apart=True),
        folder / "model.onnx",
        config,
        _windows(model, 24),
        scratch=folder / "scratch",
        second_product=second_product,
    )
    return OnnxEngine(open_session(folder / "model.onnx"), config, "int8")


def test_layers_of_the_encoder_are_quantized_and_heads_are_not() -> None:
    graph = model_graph(made_task_model("classify"))
    every = quantized_layers(graph, second_product=True)
    assert len(every) == 6 * 2
    assert not any("classifier" in name for name in every)
    fewer = quantized_layers(graph, second_product=False)
    assert set(every) - set(fewer) == {"layer.0/feed_forward/down", "layer.1/feed_forward/down"}


@pytest.mark.parametrize("second_product", [True, False])
def test_weights_of_those_layers_have_eight_bits_and_a_scale_for_each_output(
    tmp_path: Path, second_product: bool
) -> None:
    model = made_task_model("classify")
    engine = _quantized(model, tmp_path, second_product=second_product)
    weights = {one.name: one for one in onnx.load(str(tmp_path / "model.onnx")).graph.initializer}
    assert weights["layer.0/feed_forward/up.weight_quantized"].data_type == onnx.TensorProto.INT8
    assert list(weights["layer.0/feed_forward/up.weight_scale"].dims) == [32]
    assert ("layer.0/feed_forward/down.weight" in weights) is not second_product
    windows = _windows(model, 30)
    exact = np.stack(TorchEngine(model, Device("cpu", "fp32")).outputs("classify", windows))
    found = np.stack(engine.outputs("classify", windows))
    assert 0 < np.abs(found - exact).max() < 0.1 * np.abs(exact).max()


def test_a_text_gives_the_same_whatever_stands_beside_it(tmp_path: Path) -> None:
    model = made_task_model("embed")
    engine = _quantized(model, tmp_path)
    windows = _windows(model, 12)
    together = engine.outputs("embed", windows)
    for place, window in enumerate(windows):
        np.testing.assert_allclose(engine.outputs("embed", [window])[0], together[place], atol=1e-4)


def test_the_table_of_embeddings_stays_exact_where_the_vocabulary_is_scored_in_int8(tmp_path: Path) -> None:
    model = made_model(made_tokenizer().vocab_size, spread=0.3)
    engine = _quantized(model, tmp_path)
    weights = {one.name for one in onnx.load(str(tmp_path / "model.onnx")).graph.initializer}
    assert {"embeddings/token.weight", "vocabulary/projection.weight_quantized"} <= weights
    windows = _windows(model, 8)
    exact = TorchEngine(model, Device("cpu", "fp32")).vocabulary(windows, [[1]] * 8)
    found = engine.vocabulary(windows, [[1]] * 8)
    assert np.corrcoef(np.concatenate(exact).ravel(), np.concatenate(found).ravel())[0, 1] > 0.99
