"""Balance between what a linear layer reads and its weights, so that both lose little when they become 8 bits.

A few columns of a layer's input are often much larger than all others, and a single scale for the whole of it then
leaves the others few steps. Columns are divided by a number that their weights are multiplied with, so that the product
stays (SmoothQuant, Xiao et al. 2023, section 4).
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx
from jaxtyping import Float
from onnx import helper, numpy_helper

from bertsmith.exchange.onnx_export.graph import with_outputs
from bertsmith.inference.onnx_engine import Session

STRENGTH = 0.8
"""Which share of the difference between columns is moved into the weights."""
_SMALLEST = 1e-5


def linear_nodes(model: onnx.ModelProto, names: Iterable[str]) -> list[onnx.NodeProto]:
    """The linear layers of these names, in the order in which they run."""
    wanted = set(names)
    return [node for node in model.graph.node if node.op_type == "Gemm" and node.name in wanted]


def with_linear_inputs(model: onnx.ModelProto, names: Iterable[str]) -> onnx.ModelProto:
    """A copy of a model that gives what its linear layers read, beside its outputs."""
    return with_outputs(model, dict.fromkeys(node.input[0] for node in linear_nodes(model, names)))


def column_sizes(
    session: Session, inputs: Sequence[str], batches: Iterable[Mapping[str, np.ndarray]]
) -> dict[str, Float[np.ndarray, " _"]]:
    """The largest number in each column of what layers read, signs aside.

    Args:
        session: of `with_linear_inputs`.
        inputs: what the layers read.
        batches: what the model is run on.
    """
    found: dict[str, np.ndarray] = {}
    for batch in batches:
        for name, rows in zip(inputs, session.run(list(inputs), dict(batch)), strict=True):
            sizes = np.abs(rows).max(axis=0)
            found[name] = np.maximum(found[name], sizes) if name in found else sizes
    return found


def balance(model: onnx.ModelProto, names: Iterable[str], sizes: Mapping[str, Float[np.ndarray, " _"]]) -> None:
    """Move differences between columns into the weights, in place. The model computes the same as before.

    Layers that read the same, or share a weight, have one scale.

    Args:
        model: the model.
        names: of the linear layers.
        sizes: of `column_sizes` for what they read.
    """
    weights = {weight.name: weight for weight in model.graph.initializer}
    for nodes in _connected(linear_nodes(model, names)):
        read = dict.fromkeys(node.input[0] for node in nodes)
        shared = dict.fromkeys(node.input[1] for node in nodes)
        matrices = {name: numpy_helper.to_array(weights[name]) for name in shared}
        of_input = np.max([sizes[name] for name in read], axis=0)
        of_weight = np.max([np.abs(matrix).max(axis=0) for matrix in matrices.values()], axis=0)
        scale = _scale(of_input, of_weight)
        for name, matrix in matrices.items():
            weights[name].CopyFrom(numpy_helper.from_array(matrix * scale, name))
        for name in read:
            _divide(model, name, nodes, scale)


def _scale(of_input: np.ndarray, of_weight: np.ndarray) -> Float[np.ndarray, " _"]:
    """What each column is divided by; 1 on the whole, and 1 for a column that is never used."""
    unused = (of_input < _SMALLEST) | (of_weight < _SMALLEST)
    scale = np.maximum(of_input, _SMALLEST) ** STRENGTH / np.maximum(of_weight, _SMALLEST) ** (1.0 - STRENGTH)
    return np.where(unused, 1.0, scale).astype(np.float32)


def _divide(model: onnx.ModelProto, name: str, nodes: Sequence[onnx.NodeProto], scale: np.ndarray) -> None:
    """Put a division between what is computed as `name` and the nodes that read it."""
    divided = f"{name}/balanced"
    model.graph.initializer.append(numpy_helper.from_array(np.float32(1.0) / scale, f"{divided}.scale"))
    made = helper.make_node("Mul", [name, f"{divided}.scale"], [divided], name=divided)
    for node in nodes:
        if node.input[0] == name:
            node.input[0] = divided
    place = next(number for number, node in enumerate(model.graph.node) if divided in node.input)
    model.graph.node.insert(place, made)


def _connected(nodes: Sequence[onnx.NodeProto]) -> list[list[onnx.NodeProto]]:
    """Nodes in groups of those that read the same or share a weight, directly or by others."""
    groups: list[tuple[set[str], list[onnx.NodeProto]]] = []
    for node in nodes:
        names, members = {node.input[0], node.input[1]}, [node]
        apart: list[tuple[set[str], list[onnx.NodeProto]]] = []
        for others, theirs in groups:
            if names & others:
                names, members = names | others, theirs + members
            else:
                apart.append((others, theirs))
        groups = [*apart, (names, members)]
    return [members for _, members in groups]
