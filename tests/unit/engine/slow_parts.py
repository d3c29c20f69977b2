"""Models of every kind whose parts take a time that is told, on a clock that nothing else moves."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bertsmith.batches.batch import Batch
from bertsmith.engine.part_clock import Part
from bertsmith.model import EncoderConfig, Model, ModelConfig, PackedTokens, RotaryConfig, layer, new_model
from bertsmith.model.like_size import elmo_of_like_size
from bertsmith.objectives.bidirectional_lstm import BidirectionalLanguageModel
from bertsmith.objectives.causal import CausalLanguageModel
from bertsmith.objectives.masked_language_model import MaskedLanguageModel
from bertsmith.objectives.report import Objective
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.step import TrainState, new_optimizer

KINDS: dict[str, dict[str, Any]] = {
    "bert": {},
    "causal": {"causal": True},
    "roberta": {"family": "roberta", "pad_token_id": 1, "max_position_embeddings": 66, "type_vocab_size": 1},
    "albert": {"family": "albert", "embedding_size": 32, "num_hidden_groups": 1},
    "distilbert": {"family": "distilbert", "type_vocab_size": 0},
    "modern": {"family": "modern", "type_vocab_size": 0, "rotary": RotaryConfig(global_every=2, window=4)},
    "elmo": {},
}
LAYERS = 2
FORWARD = {"embedding": 1.0, "attention": 10.0, "feed_forward": 100.0, "recurrence": 100.0, "norms": 1e3}
"""Seconds of a call. Each in a digit of its own, so that a sum tells what it is made of."""
HEAD_FORWARD, OPTIMIZER = 1e4, 1e5
BACKWARD = 2.0
"""Backward, a part takes so many times as long."""


class StandingClock:
    """Stands still unless it is moved."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        patch.setattr("bertsmith.engine.part_clock.time.perf_counter", lambda: self.now)


class _Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, clock: StandingClock, seconds: float) -> Tensor:
        clock.now += seconds
        ctx.clock, ctx.seconds = clock, seconds
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        ctx.clock.now += BACKWARD * ctx.seconds
        return gradients[0], None, None


def model_of(kind: str, **changes: Any) -> Model:
    """Two layers with two heads of 32, for which there are kernels."""
    sizes = {"vocab_size": 60, "hidden_size": 64, "num_hidden_layers": LAYERS, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 96, "max_position_embeddings": 64}
    config = ModelConfig(encoder=EncoderConfig.parse(sizes | KINDS[kind] | changes, where="a test"))
    return new_model(elmo_of_like_size(config) if kind == "elmo" else config, seed=0).train()


def state_of(model: Model) -> TrainState:
    return TrainState(model, new_optimizer(model, OptimizerConfig()))


def objective_of(kind: str) -> Objective:
    """What a model of that kind can be trained to do."""
    return {"causal": CausalLanguageModel(), "elmo": BidirectionalLanguageModel()}.get(kind, MaskedLanguageModel())


def batch() -> Batch:
    """Three sequences, with three tokens to be found."""
    ids = np.random.default_rng(0).integers(5, 60, 48)
    packed = PackedTokens.build(ids, np.zeros_like(ids), np.array([0, 10, 31, 48]))
    return Batch(packed, torch.tensor([2, 12, 40]), torch.tensor([7, 8, 9]), 3)


def slow_down(state: TrainState, clock: StandingClock, patch: pytest.MonkeyPatch) -> None:
    """Let each part of a model move the clock."""

    def slower(module: nn.Module, seconds: float) -> None:
        whole: Callable[..., Any] = module.forward

        def forward(*inputs: Any) -> Any:
            found = whole(*inputs)
            # Of two directions, one takes all the time.
            return (
                (_Slow.apply(found[0], clock, seconds), *found[1:])
                if isinstance(found, tuple)
                else _Slow.apply(found, clock, seconds)
            )

        patch.setattr(module, "forward", forward)

    model = state.model
    for module, part in _modules(model):
        slower(module, FORWARD[part])
    assert model.masked_language_model is not None
    slower(model.masked_language_model.transform, HEAD_FORWARD)
    for name in ("add_then_norm", "add_and_norm"):
        whole = getattr(layer, name)
        patch.setattr(
            layer,
            name,
            lambda hidden, added, norm, dropout, whole=whole: whole(
                hidden, _Slow.apply(added, clock, FORWARD["norms"]), norm, dropout
            ),
        )
    step = state.optimizer.step

    def slow_step() -> None:
        clock.now += OPTIMIZER
        step()

    patch.setattr(state.optimizer, "step", slow_step)


def _modules(model: Model) -> Iterator[tuple[nn.Module, Part]]:
    yield model.encoder.get_submodule("embeddings"), "embedding"
    for one in model.encoder.get_submodule("layers").children():
        if hasattr(one, "attention"):
            yield one.get_submodule("attention"), "attention"
            yield one.get_submodule("feed_forward"), "feed_forward"
        else:
            yield one, "recurrence"
