"""Small models whose loss goes through every kernel."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertsmith.model import Dropout, EncoderConfig, Model, ModelConfig, PackedTokens, RotaryConfig, new_model
from bertsmith.objectives.vocabulary_loss import vocabulary_loss

VOCABULARY = 300
HIDDEN_SIZE = 64
"""Two heads of 32, which in bf16 go a way of their own."""
KINDS: dict[str, dict[str, Any]] = {
    "bert": {},
    "causal": {"causal": True, "activation": "gelu_tanh"},
    "modern": {"family": "modern", "type_vocab_size": 0, "rotary": RotaryConfig(global_every=2, window=8)},
}
"""Norm after or before, plain or gated activation, all of a sequence, what stands before or a window."""


def varied_model(kind: str, *, dropout: float = 0.0) -> Model:
    """Two layers, whose weights are large enough that every part of it shows in the loss."""
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN_SIZE,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 2 * HIDDEN_SIZE,
        "max_position_embeddings": 128,
        "initializer_range": 0.15,
        "dropout": Dropout.everywhere(dropout),
    }
    config = ModelConfig(encoder=EncoderConfig.parse(sizes | KINDS[kind], where="a test"))
    return new_model(config, seed=0).train()


def packed_tokens(lengths: list[int]) -> PackedTokens:
    """Random sequences."""
    starts = np.cumsum([0, *lengths])
    ids = np.random.default_rng(0).integers(0, VOCABULARY, starts[-1])
    return PackedTokens.build(ids, np.zeros_like(ids), starts)


def loss_and_gradients(model: Model, packed: PackedTokens, precision: str, *, seed: int = 0) -> list[Tensor]:
    """The loss of guessing every token, and its gradient in each weight that it depends on."""
    model.zero_grad()
    torch.manual_seed(seed)
    head = model.masked_language_model
    assert head is not None
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        features = head.features(model.head_input(packed))
        loss = vocabulary_loss(features, head.projection, head.bias, packed.token_ids, with_hits=False).total
    (loss / packed.num_tokens).backward()
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    return [loss.detach(), *gradients]
