"""Original TensorFlow checkpoints, made from the weights of the reference classes.

The names of the variables are those that Google's code gives them, written out here a second time and by hand.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AlbertConfig, AlbertForPreTraining, BertConfig, BertForPreTraining, PreTrainedModel

LAYERS = 2
SIZES: dict[str, Any] = {
    "vocab_size": 30,
    "hidden_size": 12,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "initializer_range": 0.02,
}
ALBERT_SIZES = SIZES | {"embedding_size": 6, "num_hidden_groups": 1, "inner_group_num": 1}
SLOTS = {"global_step": np.array(7), "bert/pooler/dense/kernel/adam_m": np.zeros((12, 12), np.float32)}


def _dense(ours: str, theirs: str) -> list[tuple[str, str]]:
    return [(f"{ours}/kernel", f"{theirs}.weight"), (f"{ours}/bias", f"{theirs}.bias")]


def _norm(ours: str, theirs: str) -> list[tuple[str, str]]:
    return [(f"{ours}/gamma", f"{theirs}.weight"), (f"{ours}/beta", f"{theirs}.bias")]


def _embeddings(family: str) -> list[tuple[str, str]]:
    kinds = ("word", "position", "token_type")
    tables = [(f"bert/embeddings/{kind}_embeddings", f"{family}.embeddings.{kind}_embeddings.weight") for kind in kinds]
    return tables + _norm("bert/embeddings/LayerNorm", f"{family}.embeddings.LayerNorm")


def bert_pairs() -> list[tuple[str, str]]:
    """Variables of BERT beside the names of the reference class."""
    pairs = _embeddings("bert")
    for number in range(LAYERS):
        ours, theirs = f"bert/encoder/layer_{number}", f"bert.encoder.layer.{number}"
        for part in ("query", "key", "value"):
            pairs += _dense(f"{ours}/attention/self/{part}", f"{theirs}.attention.self.{part}")
        pairs += _dense(f"{ours}/attention/output/dense", f"{theirs}.attention.output.dense")
        pairs += _norm(f"{ours}/attention/output/LayerNorm", f"{theirs}.attention.output.LayerNorm")
        pairs += _dense(f"{ours}/intermediate/dense", f"{theirs}.intermediate.dense")
        pairs += _dense(f"{ours}/output/dense", f"{theirs}.output.dense")
        pairs += _norm(f"{ours}/output/LayerNorm", f"{theirs}.output.LayerNorm")
    pairs += _dense("bert/pooler/dense", "bert.pooler.dense")
    pairs += _dense("cls/predictions/transform/dense", "cls.predictions.transform.dense")
    pairs += _norm("cls/predictions/transform/LayerNorm", "cls.predictions.transform.LayerNorm")
    return [
        *pairs,
        ("cls/predictions/output_bias", "cls.predictions.bias"),
        ("cls/seq_relationship/output_weights", "cls.seq_relationship.weight"),
        ("cls/seq_relationship/output_bias", "cls.seq_relationship.bias"),
    ]


def albert_pairs() -> list[tuple[str, str]]:
    """Variables of ALBERT beside the names of the reference class."""
    ours = "bert/encoder/transformer/group_0/inner_group_0"
    theirs = "albert.encoder.albert_layer_groups.0.albert_layers.0"
    pairs = _embeddings("albert")
    pairs += _dense("bert/encoder/embedding_hidden_mapping_in", "albert.encoder.embedding_hidden_mapping_in")
    for part in ("query", "key", "value"):
        pairs += _dense(f"{ours}/attention_1/self/{part}", f"{theirs}.attention.{part}")
    pairs += _dense(f"{ours}/attention_1/output/dense", f"{theirs}.attention.dense")
    pairs += _norm(f"{ours}/LayerNorm", f"{theirs}.attention.LayerNorm")
    pairs += _dense(f"{ours}/ffn_1/intermediate/dense", f"{theirs}.ffn")
    pairs += _dense(f"{ours}/ffn_1/intermediate/output/dense", f"{theirs}.ffn_output")
    pairs += _norm(f"{ours}/LayerNorm_1", f"{theirs}.full_layer_layer_norm")
    pairs += _dense("bert/pooler/dense", "albert.pooler")
    pairs += _dense("cls/predictions/transform/dense", "predictions.dense")
    pairs += _norm("cls/predictions/transform/LayerNorm", "predictions.LayerNorm")
    return [
        *pairs,
        ("cls/predictions/output_bias", "predictions.bias"),
        ("cls/seq_relationship/output_weights", "sop_classifier.classifier.weight"),
        ("cls/seq_relationship/output_bias", "sop_classifier.classifier.bias"),
    ]


def random_reference(family: str) -> PreTrainedModel:
    """A reference model in which no weight has the value that it starts with."""
    torch.manual_seed(5)
    if family == "albert":
        model: PreTrainedModel = AlbertForPreTraining(AlbertConfig(**ALBERT_SIZES | {"hidden_act": "gelu_new"}))
    else:
        model = BertForPreTraining(BertConfig(**SIZES))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def variables_of(model: PreTrainedModel, pairs: Iterable[tuple[str, str]]) -> dict[str, np.ndarray]:
    """The weights as TensorFlow's code keeps them: kernels as ``[inputs, outputs]``."""
    state = model.state_dict()
    return {
        ours: (state[theirs].T if ours.endswith("/kernel") else state[theirs]).numpy().copy() for ours, theirs in pairs
    }


def write_checkpoint(
    folder: Path,
    variables: dict[str, np.ndarray],
    *,
    config: dict[str, Any] = SIZES,
    config_name: str = "bert_config.json",
    prefix: str = "bert_model.ckpt",
    capitals: bool = False,
) -> Path:
    """Let TensorFlow write a checkpoint, and lay its config and vocabulary beside it."""
    import tensorflow  # Loaded by the tests that need it alone.

    folder.mkdir()
    names = sorted(variables)
    tensorflow.raw_ops.SaveV2(
        prefix=str(folder / prefix),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tensorflow.constant(variables[name]) for name in names],
    )
    (folder / config_name).write_text(json.dumps(config), encoding="utf-8")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxy"]
    if capitals:
        pieces[-1] = "Z"
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    return folder
