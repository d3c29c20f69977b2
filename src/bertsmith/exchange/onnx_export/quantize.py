"""A graph whose linear layers multiply in int8, with scales that a text fixes beforehand.

Scales that are fixed do not depend on what else is in a batch, so a text gives the same whatever stands beside it.
"""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from bertsmith.exchange.onnx_export.balance import balance, column_sizes, with_linear_inputs
from bertsmith.exchange.onnx_export.graph import save_graph
from bertsmith.inference.onnx_engine import open_session, padded
from bertsmith.inference.running import TokenWindow
from bertsmith.model.config import ModelConfig

SECOND_PRODUCT = "/feed_forward/down"
"""Ends the names of a feed-forward's second product, which of all loses the most: its input has the widest range."""
_QUANTIZED = ("layer.", "vocabulary/")


def quantized_layers(model: onnx.ModelProto, *, second_product: bool) -> list[str]:
    """The linear layers that become int8: all of the encoder and of the head over the vocabulary. Heads of tasks are
    small, and stay in fp32.

    Args:
        model: the graph.
        second_product: whether that of each feed-forward is among them.
    """
    names = [node.name for node in model.graph.node if node.op_type == "Gemm" and node.name.startswith(_QUANTIZED)]
    return [name for name in names if second_product or not name.endswith(SECOND_PRODUCT)]


def write_quantized(
    model: onnx.ModelProto,
    path: Path,
    config: ModelConfig,
    windows: Sequence[TokenWindow],
    *,
    scratch: Path,
    second_product: bool,
) -> None:
    """Write a graph in int8.

    Activations have 8 bits with one scale each, weights 8 bits with a scale for each output. Sums, norms, softmax,
    activations and embeddings stay in fp32.

    Args:
        model: the graph in fp32; it is changed.
        path: where the new one is written.
        config: what the model is.
        windows: tokens by which the scales are fixed.
        scratch: an existing folder for what is written meanwhile.
        second_product: whether the second product of each feed-forward becomes int8 too.

    Raises:
        InputError: if the disk is full, or onnxruntime cannot open what was made.
    """
    # Without padding, which would have a part in the scales.
    batches = [padded([window], config) for window in windows]
    layers = quantized_layers(model, second_product=second_product)
    watched = with_linear_inputs(model, layers)
    save_graph(watched, scratch / "watched.onnx")
    inputs = [one.name for one in watched.graph.output[len(model.graph.output) :]]
    balance(model, layers, column_sizes(open_session(scratch / "watched.onnx"), inputs, batches))
    save_graph(model, scratch / "balanced.onnx")
    with _quiet():
        quantize_static(
            scratch / "balanced.onnx",
            path,
            _Batches(batches),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=["Gemm"],
            nodes_to_quantize=layers,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            extra_options={"OpTypesToExcludeOutputQuantization": ["Gemm"]},
        )


class _Batches(CalibrationDataReader):
    """Batches, one after the other, as the quantizer asks for them."""

    def __init__(self, batches: Sequence[dict[str, np.ndarray]]) -> None:
        self._batches = iter(batches)

    def get_next(self) -> dict[str, Any] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return next(self._batches, None)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Inside the block, the quantizer's advice about steps that this graph does not need is not shown."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
