"""The graph of a model: its inputs, its encoder, the head of what it is for, its outputs."""

import onnx
from onnx import TensorProto, helper

from bertsmith.exchange.onnx_export.encoder_graph import batch_shape, layer_outputs
from bertsmith.exchange.onnx_export.graph import Graph
from bertsmith.exchange.onnx_export.head_graph import add_head
from bertsmith.foundation.errors import InputError
from bertsmith.inference.engine import TASKS_OF_TOKENS, Job, job_of
from bertsmith.inference.onnx_engine import EMBEDDING, HIDDEN, input_names, output_names
from bertsmith.model.config import ModelConfig
from bertsmith.model.encoder import Encoder
from bertsmith.model.heads import Model

_BATCH, _SEQUENCE = "batch", "sequence"


def exported_config(config: ModelConfig) -> ModelConfig:
    """What a model is once it is exported: it has the head of what it is for, and no other.

    Raises:
        InputError: for a model that has no graph, or that no predictor would run.
    """
    encoder, heads, job = config.encoder, config.heads, job_of(config)
    if encoder.family == "elmo":
        raise InputError(
            "Only models with attention are exported", "an ELMo, which reads by LSTMs", "Use it as a model folder."
        )
    if job == "fill" and encoder.causal:
        raise InputError(
            "A model is exported to do a task, to fill masks or to embed",
            "a causal language model, which writes on from a prompt",
            "Use it as a model folder: bertsmith generate.",
        )
    pooler = heads.task_head == "classifier" and config.uses_pooler
    gone = {"next_sentence": False, "sentence_order": False, "pooler": pooler, "masked_language_model": job == "fill"}
    return config.model_copy(update={"heads": heads.model_copy(update=gone)})


def model_graph(model: Model, *, version: str = "", projection_apart: bool = False) -> onnx.ModelProto:
    """A model as a graph for `OnnxEngine`, in fp32.

    It takes ``input_ids`` and ``attention_mask``, and ``token_type_ids`` where the model tells segments apart, each
    int64 ``[batch, sequence]`` with padding at the end. It gives ``logits`` ``[batch, labels]``, of each token where
    the task is one of tokens, or over the vocabulary; ``start_logits`` and ``end_logits`` ``[batch, sequence]``; or
    ``last_hidden_state`` ``[batch, sequence, hidden]`` and ``sentence_embedding`` ``[batch, hidden]``.

    Args:
        model: any that `exported_config` lets pass.
        version: of this program, to be written into the graph.
        projection_apart: whether a projection on the vocabulary that is tied to the embedding is kept by itself, so
            that it alone may be changed.
    """
    if not isinstance(model.encoder, Encoder):
        raise ValueError(f"A graph needs an encoder with attention. Received: {type(model.encoder).__name__}.")
    graph, job = Graph(), job_of(model.config)
    batch = batch_shape(graph, model.encoder)
    layers = list(layer_outputs(graph, model.encoder, batch))
    add_head(graph, model, job, layers, batch, apart=projection_apart)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, [_BATCH, _SEQUENCE])
        for name in input_names(model.config)
    ]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, _axes(name, job, model.config))
        for name in output_names(job)
    ]
    return graph.model(inputs, outputs, name=f"{model.config.encoder.family} to {job}", version=version)


def _axes(name: str, job: Job, config: ModelConfig) -> list[str | int]:
    if name == HIDDEN:
        return [_BATCH, _SEQUENCE, config.encoder.hidden_size]
    if name == EMBEDDING:
        return [_BATCH, config.encoder.hidden_size]
    if job == "answer":
        return [_BATCH, _SEQUENCE]
    if job == "fill":
        return [_BATCH, _SEQUENCE, config.encoder.vocab_size]
    return [_BATCH, *([_SEQUENCE] if job in TASKS_OF_TOKENS else []), config.heads.num_outputs]
