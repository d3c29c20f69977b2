"""Small models and batches for the tests of the encoder."""

from typing import Any

import numpy as np
import torch

from bertsmith.model import EncoderConfig, HeadsConfig, Model, ModelConfig, PackedTokens, RotaryConfig, new_model

LENGTHS = [1, 7, 20, 3, 16, 17, 1, 40]
"""On both sides of the lengths to which groups of sequences are padded, and alone."""
KINDS: dict[str, dict[str, Any]] = {
    "bert": {},
    "causal": {"causal": True},
    "roberta": {"family": "roberta", "pad_token_id": 1, "max_position_embeddings": 66, "type_vocab_size": 1},
    "albert": {"family": "albert", "embedding_size": 12, "num_hidden_groups": 1},
    "distilbert": {"family": "distilbert", "type_vocab_size": 0},
    "modern": {"family": "modern", "type_vocab_size": 0, "rotary": RotaryConfig(global_every=2, window=4)},
}
"""What makes a small model one of each kind. The modern one's window is narrower than most sequences."""


def encoder_config(**changes: Any) -> EncoderConfig:
    sizes = {
        "vocab_size": 50,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 24,
        "max_position_embeddings": 64,
    }
    return EncoderConfig.parse(sizes | changes, where="a test")


def small_model(seed: int = 0, *, attention: Any = "fused", heads: HeadsConfig | None = None, **changes: Any) -> Model:
    """A model whose weights are large enough that every part of it shows in the output."""
    config = ModelConfig(encoder=encoder_config(**{"initializer_range": 0.3} | changes), heads=heads or HeadsConfig())
    return new_model(config, seed=seed, attention=attention)


def sequences(lengths: list[int], seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Token ids and segment ids of random sequences."""
    stream = np.random.default_rng(seed)
    return [(stream.integers(0, 50, length), np.arange(length) * 2 // length) for length in lengths]


def packed(rows: list[tuple[np.ndarray, np.ndarray]], *, multiple: int = 1) -> PackedTokens:
    starts = np.cumsum([0, *(len(row[0]) for row in rows)])
    return PackedTokens.build(
        np.concatenate([row[0] for row in rows]),
        np.concatenate([row[1] for row in rows]),
        starts,
        multiple=multiple,
    )


def padded(
    rows: list[tuple[np.ndarray, np.ndarray]], *, width: int | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Token ids, attention mask and segment ids; padding holds a token that occurs elsewhere too."""
    width = width or max(len(row[0]) for row in rows)
    token_ids = torch.full((len(rows), width), 7)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    segment_ids = torch.ones((len(rows), width), dtype=torch.long)
    for number, (ids, segments) in enumerate(rows):
        token_ids[number, : len(ids)] = torch.from_numpy(ids)
        segment_ids[number, : len(ids)] = torch.from_numpy(segments)
        mask[number, : len(ids)] = 1
    return token_ids, mask, segment_ids
