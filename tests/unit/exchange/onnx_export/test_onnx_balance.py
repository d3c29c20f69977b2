"""Balancing a layer's input against its weights changes no result, and makes columns more alike."""

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from bertsmith.exchange.onnx_export.balance import balance, column_sizes, linear_nodes, with_linear_inputs
from bertsmith.exchange.onnx_export.build import model_graph
from bertsmith.exchange.onnx_export.graph import save_graph
from bertsmith.exchange.onnx_export.quantize import quantized_layers
from bertsmith.inference.onnx_engine import OnnxEngine, Session, open_session, padded
from bertsmith.inference.running import TokenWindow
from bertsmith.model import EncoderConfig, HeadsConfig, Model, ModelConfig, new_model
from made_predictors import made_task_model


def _windows(model: Model, count: int = 6) -> list[TokenWindow]:
    stream = np.random.default_rng(0)
    ids = [stream.integers(0, model.config.encoder.vocab_size, 5 + number) for number in range(count)]
    return [TokenWindow(one, np.zeros_like(one)) for one in ids]


def _opened(graph: onnx.ModelProto, path: Path) -> Session:
    save_graph(graph, path)
    return open_session(path)


def _sizes(model: Model, graph: onnx.ModelProto, path: Path) -> dict[str, np.ndarray]:
    watched = with_linear_inputs(graph, quantized_layers(graph, second_product=True))
    inputs = [one.name for one in watched.graph.output[len(graph.graph.output) :]]
    batches = [padded([window], model.config) for window in _windows(model)]
    return column_sizes(_opened(watched, path), inputs, batches)


def _albert() -> Model:
    encoder = EncoderConfig(
        family="albert",
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        embedding_size=8,
        num_hidden_groups=1,
        max_position_embeddings=32,
        initializer_range=0.3,
    )
    heads = HeadsConfig(masked_language_model=False, pooler=True, labels=("a", "b"))
    return new_model(ModelConfig(encoder=encoder, heads=heads), seed=0)


def test_balance_moves_sizes_into_the_weights_and_changes_no_result(tmp_path: Path) -> None:
    for model in (made_task_model("classify"), _albert()):
        graph = model_graph(model)
        layers = quantized_layers(graph, second_product=True)
        before = OnnxEngine(_opened(graph, tmp_path / "before.onnx"), model.config, "fp32")
        sizes = _sizes(model, graph, tmp_path / "watched.onnx")
        balance(graph, layers, sizes)
        onnx.checker.check_model(graph)
        after = OnnxEngine(_opened(graph, tmp_path / "after.onnx"), model.config, "fp32")
        windows = _windows(model)
        for one, other in zip(before.outputs("classify", windows), after.outputs("classify", windows), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
        balanced = _sizes(model, graph, tmp_path / "watched.onnx")
        spreads = {name: np.log(size[size > 0]).std() for name, size in sizes.items()}
        after_spreads = {
            name.removesuffix("/balanced"): np.log(size[size > 0]).std() for name, size in balanced.items()
        }
        assert set(after_spreads) == set(spreads)
        assert np.mean([after_spreads[name] for name in spreads]) < np.mean(list(spreads.values()))


def test_layers_that_read_the_same_have_one_scale(tmp_path: Path) -> None:
    model = made_task_model("classify")
    graph = model_graph(model)
    layers = quantized_layers(graph, second_product=True)
    balance(graph, layers, _sizes(model, graph, tmp_path / "watched.onnx"))
    read = {node.name: node.input[0] for node in linear_nodes(graph, layers)}
    assert len({read[f"layer.0/attention/{what}"] for what in ("query", "key", "value")}) == 1
    scales = [one for one in graph.graph.initializer if one.name.endswith("/balanced.scale")]
    # Of each layer: what attention reads, its output's, and both products of the feed-forward.
    assert len(scales) == 4 * model.config.encoder.num_hidden_layers


def test_a_column_that_is_never_used_stays_as_it_is(tmp_path: Path) -> None:
    model = made_task_model("classify")
    graph = model_graph(model)
    layers = quantized_layers(graph, second_product=True)
    sizes = _sizes(model, graph, tmp_path / "watched.onnx")
    sizes["embeddings/norm"] = np.where(np.arange(16) == 3, 0.0, sizes["embeddings/norm"])
    balance(graph, layers, sizes)
    scales = {one.name: numpy_helper.to_array(one) for one in graph.graph.initializer}
    assert scales["embeddings/norm/balanced.scale"][3] == 1.0
    assert all(np.isfinite(scale).all() for scale in scales.values())
