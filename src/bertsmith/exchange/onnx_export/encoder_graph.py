"""An encoder as nodes: embeddings, attention and feed-forwards of every family with attention."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from onnx import TensorProto
from torch import Tensor, nn

from bertsmith.exchange.onnx_export.graph import Graph
from bertsmith.inference.onnx_engine import MASK, SEGMENTS, TOKENS
from bertsmith.model.attention import SelfAttention
from bertsmith.model.attention_reach import Reach
from bertsmith.model.encoder import Encoder
from bertsmith.model.layer import FeedForward, GatedFeedForward, PostNormLayer, PreNormLayer


@dataclass(frozen=True)
class BatchShape:
    """What nodes share that look at sequences, and not at tokens one by one. Each is a name in the graph."""

    shape: str
    """``[batch, sequence]``, as numbers."""
    hidden: str
    """``[batch, sequence, hidden]``, as numbers."""
    heads: str
    """``[batch, sequence, heads, head_size]``, as numbers."""
    places: str
    """Number of each column ``[sequence]``, from 0."""
    real: str
    """Whether a token is real, ``[batch, sequence]``."""


def batch_shape(graph: Graph, encoder: Encoder) -> BatchShape:
    """Nodes for the shape of a batch."""
    config = encoder.config
    shape = graph.add("Shape", TOKENS, name="shape")
    length = graph.add("Gather", shape, graph.integer(1), name="shape/sequence")
    heads = graph.integers(config.num_attention_heads, config.head_size)
    return BatchShape(
        shape,
        graph.add("Concat", shape, graph.integers(config.hidden_size), name="shape/hidden", axis=0),
        graph.add("Concat", shape, heads, name="shape/heads", axis=0),
        graph.add("Range", graph.integer(0), length, graph.integer(1), name="shape/places"),
        graph.add("Cast", MASK, name="shape/real", to=TensorProto.BOOL),
    )


def layer_outputs(graph: Graph, encoder: Encoder, batch: BatchShape) -> Iterator[str]:
    """Add an encoder. Gives the output ``[tokens, hidden]`` of each layer in turn; the last one is normalised where the
    family does that."""
    parts = _Parts(graph, encoder, batch)
    rows = _embedded(graph, encoder, batch)
    # A layer that serves several times keeps its weights once.
    own = {id(layer): number for number, layer in enumerate(encoder.layers)}
    calls = encoder.calls
    for number, layer in enumerate(calls):
        rows = parts.layer(layer, rows, f"layer.{number}", f"layer.{own[id(layer)]}")
        is_last = number == len(calls) - 1
        yield norm(graph, rows, encoder.final_norm, name="final_norm") if is_last else rows


def norm(graph: Graph, rows: str, part: nn.Module, *, name: str) -> str:
    """A norm; where a family has none in its place, what came in."""
    if not isinstance(part, nn.LayerNorm):
        return rows
    inputs = [rows, graph.weight(f"{name}.weight", part.weight)]
    if part.bias is not None:
        inputs.append(graph.weight(f"{name}.bias", part.bias))
    return graph.add("LayerNormalization", *inputs, name=name, axis=-1, epsilon=part.eps)


def activated(graph: Graph, rows: str, kind: str, *, name: str) -> str:
    """Each number activated."""
    match kind:
        case "relu":
            return graph.add("Relu", rows, name=name)
        case "gelu":
            return graph.add("Gelu", rows, name=name)
        case "gelu_tanh":
            return graph.add("Gelu", rows, name=name, approximate="tanh")
        case _:
            raise ValueError(f"An activation must be gelu, gelu_tanh or relu. Received: {kind}.")


def _embedded(graph: Graph, encoder: Encoder, batch: BatchShape) -> str:
    part, config = encoder.embeddings, encoder.config
    total = graph.add(
        "Gather", graph.weight("embeddings/token.weight", part.token.weight), TOKENS, name="embeddings/token"
    )
    if part.segment is not None:
        if config.type_vocab_size > 1:
            table = graph.weight("embeddings/segment.weight", part.segment.weight)
            segment = graph.add("Gather", table, SEGMENTS, name="embeddings/segment")
        else:
            segment = graph.weight("embeddings/segment.weight", part.segment.weight[0])
        total = graph.add("Add", total, segment, name="embeddings/with_segment")
    if part.position is not None:
        table = graph.weight("embeddings/position.weight", part.position.weight)
        place = graph.add("Gather", table, _rows_of_places(graph, encoder, batch), name="embeddings/position")
        total = graph.add("Add", total, place, name="embeddings/with_position")
    rows = graph.add("Reshape", total, graph.integers(-1, config.embedding_width), name="embeddings/rows")
    rows = norm(graph, rows, part.norm, name="embeddings/norm")
    if isinstance(part.projection, nn.Linear):
        return graph.linear(rows, part.projection.weight, part.projection.bias, name="embeddings/projection")
    return rows


def _rows_of_places(graph: Graph, encoder: Encoder, batch: BatchShape) -> str:
    """Where in the table of positions each token's stands: by its column, or by the real tokens up to it."""
    config = encoder.config
    if not config.positions_skip_padding:
        return batch.places
    counted = graph.add("CumSum", MASK, graph.integer(1), name="embeddings/counted")
    # The count includes the token itself, so it is one more than its place.
    return graph.add("Add", counted, graph.integer(config.position_offset - 1), name="embeddings/place")


class _Parts:
    """Adds layers, which share what hides tokens from each other and the rotations."""

    def __init__(self, graph: Graph, encoder: Encoder, batch: BatchShape) -> None:
        self._graph = graph
        self._config = encoder.config
        self._batch = batch
        self._hidden_keys: dict[Reach, str] = {}
        self._rotations: dict[float, tuple[str, str]] = {}

    def layer(self, layer: nn.Module, rows: str, name: str, own: str) -> str:
        """Add a layer; `own` names its weights."""
        graph = self._graph
        match layer:
            case PostNormLayer():
                attended = self._attention(layer.attention, rows, None, f"{name}/attention", f"{own}/attention")
                rows = graph.add("Add", rows, attended, name=f"{name}/attention/sum")
                rows = norm(graph, rows, layer.attention_norm, name=f"{name}/attention/norm")
                seen = self._feed_forward(layer.feed_forward, rows, f"{name}/feed_forward", f"{own}/feed_forward")
                rows = graph.add("Add", rows, seen, name=f"{name}/feed_forward/sum")
                return norm(graph, rows, layer.feed_forward_norm, name=f"{name}/feed_forward/norm")
            case PreNormLayer():
                read = norm(graph, rows, layer.attention_norm, name=f"{name}/attention/norm")
                attended = self._attention(
                    layer.attention, read, layer.rotation_index, f"{name}/attention", f"{own}/attention"
                )
                rows = graph.add("Add", rows, attended, name=f"{name}/attention/sum")
                read = norm(graph, rows, layer.feed_forward_norm, name=f"{name}/feed_forward/norm")
                seen = self._gated(layer.feed_forward, read, f"{name}/feed_forward", f"{own}/feed_forward")
                return graph.add("Add", rows, seen, name=f"{name}/feed_forward/sum")
            case _:
                raise ValueError(f"A layer must be of a kind that is known here. Received: {type(layer).__name__}.")

    def _attention(self, part: SelfAttention, rows: str, rotation: int | None, name: str, own: str) -> str:
        graph = self._graph
        weights = part.query_key_value.weight.chunk(3)
        biases = (None,) * 3 if part.query_key_value.bias is None else part.query_key_value.bias.chunk(3)
        query, key, value = (
            self._by_head(
                rows, weight, bias, f"{name}/{what}", f"{own}/{what}", part.head_size**-0.5 if what == "query" else 1.0
            )
            for what, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True)
        )
        if rotation is not None:
            query, key = (self._turned(turning, rotation) for turning in (query, key))
        key = graph.add("Transpose", key, name=f"{name}/key/columns", perm=[0, 1, 3, 2])
        scores = graph.add("MatMul", query, key, name=f"{name}/scores")
        scores = graph.add("Add", scores, self._hiding(part.reach), name=f"{name}/scores_of_seen")
        shares = graph.add("Softmax", scores, name=f"{name}/shares", axis=-1)
        context = graph.add("MatMul", shares, value, name=f"{name}/context")
        context = graph.add("Transpose", context, name=f"{name}/context/by_token", perm=[0, 2, 1, 3])
        found = graph.add("Reshape", context, graph.integers(-1, self._config.hidden_size), name=f"{name}/context/rows")
        return self._linear(found, part.output, f"{name}/output", f"{own}/output")

    def _by_head(self, rows: str, weight: Tensor, bias: Tensor | None, name: str, own: str, scale: float) -> str:
        """A linear layer whose output is ``[batch, heads, sequence, head_size]``."""
        graph = self._graph
        made = graph.linear(
            rows, weight * scale, None if bias is None else bias * scale, name=name, weight_name=f"{own}.weight"
        )
        split = graph.add("Reshape", made, self._batch.heads, name=f"{name}/split")
        return graph.add("Transpose", split, name=f"{name}/by_head", perm=[0, 2, 1, 3])

    def _feed_forward(self, part: FeedForward, rows: str, name: str, own: str) -> str:
        wide = self._linear(rows, part.up, f"{name}/up", f"{own}/up")
        wide = activated(self._graph, wide, part.activation, name=f"{name}/activated")
        return self._linear(wide, part.down, f"{name}/down", f"{own}/down")

    def _gated(self, part: GatedFeedForward, rows: str, name: str, own: str) -> str:
        graph = self._graph
        weights = part.up.weight.chunk(2)
        biases = (None,) * 2 if part.up.bias is None else part.up.bias.chunk(2)
        wide, gate = (
            graph.linear(rows, weight, bias, name=f"{name}/{what}", weight_name=f"{own}/{what}.weight")
            for what, weight, bias in zip(("up", "gate"), weights, biases, strict=True)
        )
        wide = activated(graph, wide, part.activation, name=f"{name}/activated")
        wide = graph.add("Mul", wide, gate, name=f"{name}/gated")
        return self._linear(wide, part.down, f"{name}/down", f"{own}/down")

    def _linear(self, rows: str, part: nn.Linear, name: str, own: str) -> str:
        return self._graph.linear(rows, part.weight, part.bias, name=name, weight_name=f"{own}.weight")

    def _hiding(self, reach: Reach) -> str:
        """What is added to scores so that nothing is seen of padding, nor of what is out of reach."""
        if reach in self._hidden_keys:
            return self._hidden_keys[reach]
        graph, name = self._graph, f"hidden.{len(self._hidden_keys)}"
        seen = graph.add("Unsqueeze", self._batch.real, graph.integers(1, 2), name=f"{name}/real")
        for near in self._near(reach, name):
            seen = graph.add("And", seen, near, name=f"{near}/and_real")
        self._hidden_keys[reach] = graph.where_seen(seen, None, name=name)
        return self._hidden_keys[reach]

    def _near(self, reach: Reach, name: str) -> Iterator[str]:
        """``[sequence, sequence]``: what a query may see of the keys by their places."""
        if not reach.causal and reach.half_window is None:
            return
        graph, places = self._graph, self._batch.places
        keys = graph.add("Unsqueeze", places, graph.integers(0), name=f"{name}/keys")
        queries = graph.add("Unsqueeze", places, graph.integers(1), name=f"{name}/queries")
        distance = graph.add("Sub", keys, queries, name=f"{name}/distance")
        if reach.causal:
            yield graph.add("LessOrEqual", distance, graph.integer(0), name=f"{name}/before")
        if reach.half_window is not None:
            steps = graph.add("Abs", distance, name=f"{name}/steps")
            yield graph.add("LessOrEqual", steps, graph.integer(reach.half_window), name=f"{name}/near")

    def _turned(self, values: str, rotation: int) -> str:
        """Queries or keys ``[batch, heads, sequence, head_size]``, turned by their places."""
        graph = self._graph
        cosine, sine = self._rotation(rotation)
        first, second = graph.split(values, name=f"{values}/halves", parts=2, axis=-1)
        partners = graph.add("Concat", second, first, name=f"{values}/partners", axis=-1)
        along = graph.add("Mul", values, cosine, name=f"{values}/along")
        across = graph.add("Mul", partners, sine, name=f"{values}/across")
        return graph.add("Add", along, across, name=f"{values}/turned")

    def _rotation(self, rotation: int) -> tuple[str, str]:
        """Cosines and sines ``[sequence, head_size]``; the first half of the sines is negative."""
        rotary, graph = self._config.rotary, self._graph
        if rotary is None:
            raise ValueError("Rotary positions need config.rotary. Received: None. Use family modern.")
        theta = (rotary.global_theta, rotary.local_theta)[rotation]
        if theta not in self._rotations:
            name = f"rotation.{len(self._rotations)}"
            exponents = torch.arange(0, self._config.head_size, 2).float() / self._config.head_size
            speeds = graph.weight(f"{name}.speeds", 1.0 / theta**exponents)
            places = graph.add("Cast", self._batch.places, name=f"{name}/numbers", to=TensorProto.FLOAT)
            places = graph.add("Unsqueeze", places, graph.integers(1), name=f"{name}/places")
            angles = graph.add("Mul", places, speeds, name=f"{name}/angles")
            cosine = graph.add("Cos", angles, name=f"{name}/cosines")
            sine = graph.add("Sin", angles, name=f"{name}/sines")
            negative = graph.add("Neg", sine, name=f"{name}/negative")
            self._rotations[theta] = (
                graph.add("Concat", cosine, cosine, name=f"{name}/cosine", axis=-1),
                graph.add("Concat", negative, sine, name=f"{name}/sine", axis=-1),
            )
        return self._rotations[theta]
