"""What stands on the encoder, as nodes: the head of a task, the one over the vocabulary, or a text's embedding."""

from onnx import TensorProto
from torch import nn

from bertsmith.exchange.onnx_export.encoder_graph import BatchShape, activated, norm
from bertsmith.exchange.onnx_export.graph import Graph
from bertsmith.inference.engine import Job
from bertsmith.inference.onnx_engine import EMBEDDING, ENDS, HIDDEN, MASK, SCORES, STARTS
from bertsmith.model.config import Pooling
from bertsmith.model.heads import Model
from bertsmith.model.pretraining_heads import Pooler, Transform
from bertsmith.model.task_heads import ReluDense, TanhDense, TokenHead

_LEAST_LENGTH = 1e-12
"""Shorter vectors are not made longer than by this, as torch does it."""


def add_head(graph: Graph, model: Model, job: Job, layers: list[str], batch: BatchShape, *, apart: bool) -> None:
    """Add what a job reads, up to the graph's outputs.

    Args:
        graph: with the encoder.
        model: whose heads they are.
        job: what is wanted.
        layers: the outputs of its layers, ``[tokens, hidden]`` each.
        batch: the shape of a batch.
        apart: whether a projection on the vocabulary is kept apart from the embedding that it is tied to.
    """
    heads = _Heads(graph, model, batch)
    match job:
        case "fill":
            heads.vocabulary(layers, apart=apart)
        case "embed":
            heads.embedding(layers[-1])
        case "tag":
            heads.tags(layers[-1])
        case "answer":
            heads.spans(layers[-1])
        case _:
            heads.classes(layers[-1])


class _Heads:
    def __init__(self, graph: Graph, model: Model, batch: BatchShape) -> None:
        self._graph = graph
        self._model = model
        self._batch = batch

    def vocabulary(self, layers: list[str], *, apart: bool) -> None:
        graph, head, heads = self._graph, self._model.masked_language_model, self._model.config.heads
        if head is None:
            raise _missing("head over the vocabulary")
        rows = layers[-1]
        if heads.mlm_head_input == "all_layers":
            rows = graph.add("Concat", *layers, name="vocabulary/all_layers", axis=-1)
        if isinstance(head.transform, Transform):
            rows = self._transformed(rows, head.transform, "vocabulary/transform")
        tied = head.untied is None and not apart
        name = "embeddings/token.weight" if tied else "vocabulary/projection.weight"
        rows = graph.linear(rows, head.projection, head.bias, name="vocabulary/projection", weight_name=name)
        self._by_token(rows, self._model.config.encoder.vocab_size, name=SCORES)

    def embedding(self, rows: str) -> None:
        graph, heads = self._graph, self._model.config.heads
        hidden = graph.add("Reshape", rows, self._batch.hidden, name=HIDDEN)
        if not heads.normalize:
            self._pooled(hidden, heads.pooling, name=EMBEDDING)
            return
        vectors = self._pooled(hidden, heads.pooling, name="embedding/pooled")
        length = graph.add("ReduceL2", vectors, graph.integers(-1), name="embedding/length", keepdims=1)
        length = graph.add("Max", length, graph.number(_LEAST_LENGTH), name="embedding/divisor")
        graph.add("Div", vectors, length, name=EMBEDDING)

    def classes(self, rows: str) -> None:
        graph, head, heads = self._graph, self._model.classifier, self._model.config.heads
        if head is None:
            raise _missing("classifier")
        hidden = graph.add("Reshape", rows, self._batch.hidden, name="classifier/hidden")
        sequences = self._pooled(hidden, heads.classifier_input, name="classifier/input")
        summary = self._model.pooler if head.summary is None else head.summary
        found = self._summarised(sequences, summary)
        if heads.task != "regress" or heads.value_scale is None:
            graph.linear(found, head.output.weight, head.output.bias, name=SCORES)
            return
        mean, spread = heads.value_scale
        found = graph.linear(found, head.output.weight, head.output.bias, name="classifier/output")
        found = graph.add("Mul", found, graph.number(spread), name="classifier/spread")
        graph.add("Add", found, graph.number(mean), name=SCORES)

    def tags(self, rows: str) -> None:
        if self._model.token_classifier is None:
            raise _missing("head for labels of tokens")
        rows = self._of_tokens(rows, self._model.token_classifier)
        self._by_token(rows, self._model.config.heads.num_outputs, name=SCORES)

    def spans(self, rows: str) -> None:
        graph = self._graph
        if self._model.spans is None:
            raise _missing("head for answers")
        both = self._by_token(self._of_tokens(rows, self._model.spans), 2, name="spans/both")
        for name, part in zip((STARTS, ENDS), graph.split(both, name="spans/apart", parts=2, axis=-1), strict=True):
            graph.add("Squeeze", part, graph.integers(-1), name=name)

    def _of_tokens(self, rows: str, head: TokenHead) -> str:
        if isinstance(head.transform, Transform):
            rows = self._transformed(rows, head.transform, "head/transform")
        return self._graph.linear(rows, head.output.weight, head.output.bias, name="head/output")

    def _by_token(self, rows: str, width: int, *, name: str) -> str:
        shape = self._graph.add("Concat", self._batch.shape, self._graph.integers(width), name=f"{name}/shape", axis=0)
        return self._graph.add("Reshape", rows, shape, name=name)

    def _pooled(self, hidden: str, pooling: Pooling, *, name: str) -> str:
        """One vector a sequence ``[batch, hidden]``, out of those of its tokens; padding has no part in it."""
        graph, one = self._graph, self._graph.integers(1)
        if pooling == "first":
            return graph.add("Gather", hidden, graph.integer(0), name=name, axis=1)
        if pooling == "max":
            real = graph.add("Unsqueeze", self._batch.real, graph.integers(-1), name=f"{name}/real")
            return graph.add(
                "ReduceMax", graph.where_seen(real, hidden, name=f"{name}/seen"), one, name=name, keepdims=0
            )
        counted = graph.add("Cast", MASK, name=f"{name}/counted", to=TensorProto.FLOAT)
        counted = graph.add("Unsqueeze", counted, graph.integers(-1), name=f"{name}/real")
        seen = graph.add("Mul", hidden, counted, name=f"{name}/seen")
        total = graph.add("ReduceSum", seen, one, name=f"{name}/total", keepdims=0)
        tokens = graph.add("ReduceSum", counted, one, name=f"{name}/tokens", keepdims=0)
        return graph.add("Div", total, tokens, name=name)

    def _summarised(self, sequences: str, part: nn.Module | None) -> str:
        graph, name = self._graph, "classifier/dense"
        match part:
            case Pooler() | TanhDense():
                made = graph.linear(sequences, part.dense.weight, part.dense.bias, name=name)
                return graph.add("Tanh", made, name="classifier/summary")
            case ReluDense():
                made = graph.linear(sequences, part.dense.weight, part.dense.bias, name=name)
                return graph.add("Relu", made, name="classifier/summary")
            case Transform():
                return self._transformed(sequences, part, "classifier/transform")
            case _:
                raise ValueError(f"A summary must be of a kind that is known here. Received: {type(part).__name__}.")

    def _transformed(self, rows: str, part: Transform, name: str) -> str:
        graph = self._graph
        rows = graph.linear(rows, part.dense.weight, part.dense.bias, name=f"{name}/dense")
        rows = activated(graph, rows, part.activation, name=f"{name}/activated")
        return norm(graph, rows, part.norm, name=f"{name}/norm")


def _missing(what: str) -> ValueError:
    return ValueError(f"The model has no {what}. Received: a request for a graph with it.")
