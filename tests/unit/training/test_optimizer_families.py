"""Every family's weights find their place: Muon's or not, with how many matrices in each, how far from the heads."""

from typing import Any

import pytest
import torch

from bertsmith.model import EncoderConfig, HeadsConfig, Model, ModelConfig, RotaryConfig, new_model
from bertsmith.model.recurrent import RecurrentLayer
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.optimizer import RATE_RATIO, new_optimizer
from bertsmith.training.stacked import NUM_STACKED, num_stacked

FAMILIES: dict[str, dict[str, Any]] = {
    "bert": {},
    "gpt": {"family": "bert", "causal": True},
    "roberta": {"family": "roberta", "pad_token_id": 1},
    "distilbert": {"family": "distilbert", "type_vocab_size": 0},
    "albert": {"family": "albert", "embedding_size": 8, "num_hidden_groups": 1},
    "modern": {"family": "modern", "type_vocab_size": 0, "rotary": RotaryConfig(global_every=2, window=8)},
}
ELMO = {"family": "elmo", "type_vocab_size": 0, "embedding_size": 8}
each_family = pytest.mark.parametrize("family", FAMILIES)


def _config(changes: dict[str, Any]) -> EncoderConfig:
    sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2}
    return EncoderConfig(**sizes | {"intermediate_size": 32, "max_position_embeddings": 32} | changes)


def _model(family: str) -> Model:
    heads = HeadsConfig(pooler=family in ("bert", "albert"))
    return new_model(ModelConfig(encoder=_config(FAMILIES[family]), heads=heads), seed=0)


def _groups_by_name(model: Model, config: OptimizerConfig) -> dict[str, dict[str, Any]]:
    names = {id(weight): name for name, weight in model.named_parameters()}
    return {names[id(w)]: group for group in new_optimizer(model, config).param_groups for w in group["params"]}


@each_family
def test_a_step_of_every_kind_moves_every_weight(family: str) -> None:
    for settings in ({"kind": "lamb"}, {"kind": "adam_published"}, {"kind": "stable_adamw", "matrices": "muon"}):
        model = _model(family)
        before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
        optimizer = new_optimizer(model, OptimizerConfig(**settings))
        for weight in model.parameters():
            weight.grad = torch.randn(weight.shape, generator=torch.Generator().manual_seed(0))
        optimizer.step()
        for name, weight in model.named_parameters():
            assert not torch.equal(before[name], weight), (settings, name)
            assert bool(weight.isfinite().all()), (settings, name)


@each_family
def test_muon_takes_the_matrices_of_the_layers_in_every_family(family: str) -> None:
    model = _model(family)
    groups = _groups_by_name(model, OptimizerConfig(matrices="muon"))
    stacked = {name: group[NUM_STACKED] for name, group in groups.items() if group[RATE_RATIO] != 1.0}
    layers = range(1 if family == "albert" else 4)
    parts = {
        "attention.query_key_value": 3,
        "attention.output": 1,
        "feed_forward.up": 2 if family == "modern" else 1,
        "feed_forward.down": 1,
    }
    assert stacked == {f"encoder.layers.{n}.{part}.weight": held for n in layers for part, held in parts.items()}


@each_family
def test_heads_learn_fastest_and_embeddings_slowest_in_every_family(family: str) -> None:
    groups = _groups_by_name(_model(family), OptimizerConfig(layer_decay=0.5))
    num_layers = 1 if family == "albert" else 4
    for name, group in groups.items():
        if name.startswith("encoder.embeddings."):
            distance = num_layers + 1
        elif name.startswith("encoder.layers."):
            distance = num_layers - int(name.split(".")[2])
        else:  # Heads, and a last norm behind all layers.
            distance = 0
        assert group[RATE_RATIO] == 0.5**distance, name


def test_the_gates_of_an_lstm_are_matrices_of_their_own() -> None:
    layer = RecurrentLayer(_config(ELMO), residual=True)
    names = [name for name, weight in layer.named_parameters() if weight.ndim == 2]
    assert len(names) == 4
    assert {num_stacked(layer, name) for name in names} == {4}
