"""A graph under construction: nodes that are named by what they compute, and weights that are kept once."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from jaxtyping import Float
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor

OPSET = 20
"""The first one with GELU and LayerNormalization as operators of their own."""
IR_VERSION = 9
"""The version of the file's format that belongs to that opset: older programs read it too."""
_LARGEST_FILE = 1_900_000_000
"""Bytes of weights that a single file can hold: its format ends at 2 GiB."""
_FLOAT32_MIN = float(np.finfo(np.float32).min)


class Graph:
    """Nodes and weights, added in the order in which they run.

    Every node has one output, which has the node's name, so a name stands for what was computed.
    """

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, TensorProto] = {}

    def add(self, kind: str, *inputs: str, name: str, **attributes: Any) -> str:
        """Add a node; gives its name."""
        self._nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def split(self, values: str, *, name: str, parts: int, axis: int) -> list[str]:
        """Part what was computed into equal parts along an axis."""
        names = [f"{name}.{number}" for number in range(parts)]
        self._nodes.append(helper.make_node("Split", [values], names, name=name, axis=axis, num_outputs=parts))
        return names

    def linear(
        self,
        rows: str,
        weight: Float[Tensor, "out in"],
        bias: Float[Tensor, " out"] | None,
        *,
        name: str,
        weight_name: str = "",
    ) -> str:
        """A linear layer over rows ``[rows, in]``.

        Args:
            rows: what it reads.
            weight: as torch keeps it.
            bias: None for none.
            name: the node's; its bias is named after it.
            weight_name: of a weight that several nodes share.
        """
        inputs = [rows, self.weight(weight_name or f"{name}.weight", weight)]
        if bias is not None:
            inputs.append(self.weight(f"{name}.bias", bias))
        return self.add("Gemm", *inputs, name=name, transB=1)

    def weight(self, name: str, values: Tensor | np.ndarray) -> str:
        """A weight in fp32. One that is there already is not kept twice."""
        if name not in self._weights:
            array = values.detach().cpu().float().numpy() if isinstance(values, Tensor) else values.astype(np.float32)
            self._weights[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def integers(self, *values: int) -> str:
        """A vector of numbers, as shapes and axes are given."""
        return self._constant(f"integers/{'_'.join(map(str, values))}", np.array(values, np.int64))

    def integer(self, value: int) -> str:
        """A single number."""
        return self._constant(f"integer/{value}", np.array(value, np.int64))

    def number(self, value: float) -> str:
        """A single number in fp32."""
        return self._constant(f"number/{value!r}", np.array(value, np.float32))

    def where_seen(self, seen: str, values: str | None, *, name: str) -> str:
        """``values``, or 0 where None, where `seen` is true; elsewhere the least number that fp32 has."""
        return self.add("Where", seen, values or self.number(0.0), self.number(_FLOAT32_MIN), name=name)

    def model(
        self, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto], *, name: str, version: str
    ) -> onnx.ModelProto:
        """The graph as a model, with what its outputs need and nothing else.

        Args:
            inputs: what it takes.
            outputs: what it gives: names of nodes.
            name: of the graph.
            version: of the program that made it.
        """
        needed = {one.name for one in outputs}
        nodes: list[onnx.NodeProto] = []
        for node in reversed(self._nodes):
            if needed.intersection(node.output):
                nodes.insert(0, node)
                needed.update(node.input)
        weights = [weight for own, weight in self._weights.items() if own in needed]
        graph = helper.make_graph(nodes, name, list(inputs), list(outputs), weights)
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="bertsmith",
            producer_version=version,
        )

    def _constant(self, name: str, values: np.ndarray) -> str:
        if name not in self._weights:
            self._weights[name] = numpy_helper.from_array(values, name)
        return name


def with_outputs(model: onnx.ModelProto, names: Iterable[str]) -> onnx.ModelProto:
    """A copy of a model that gives some more of what it computes, each a matrix in fp32, behind its own outputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None]) for name in names)
    return copy


def save_graph(model: onnx.ModelProto, path: Path, *, largest_file: int = _LARGEST_FILE) -> None:
    """Write a model; weights that are too large for one file lie beside it, in ``NAME.data``."""
    size = sum(len(weight.raw_data) for weight in model.graph.initializer)
    if size <= largest_file:
        onnx.save(model, str(path))
        return
    onnx.save(model, str(path), save_as_external_data=True, location=f"{path.name}.data", size_threshold=1024)
