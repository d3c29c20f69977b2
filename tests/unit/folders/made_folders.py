"""Small models for model folders, and ways to change what lies in one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertsmith.model import EncoderConfig, HeadsConfig, Model, ModelConfig, new_model

EVERY_HEADS = [
    HeadsConfig(
        masked_language_model=masked, mlm_head=head, mlm_head_input=reads, tie_embeddings=tied, pooler=pooler,
        next_sentence=next_sentence,
    )
    for masked in (True, False)
    for head in ("transform", "linear")
    for reads in ("last", "all_layers")
    for tied in (True, False)
    for pooler, next_sentence in ((False, False), (True, False), (True, True))
    if not (head == "linear" and reads == "all_layers" and tied)
]  # fmt: skip


def named(heads: HeadsConfig) -> str:
    parts = [heads.mlm_head, heads.mlm_head_input, "tied" if heads.tie_embeddings else "untied"]
    parts += ["mlm"] * heads.masked_language_model + ["pooler"] * heads.pooler + ["nsp"] * heads.next_sentence
    return "-".join(parts)


def small_config(heads: HeadsConfig, **changes: Any) -> ModelConfig:
    sizes = {
        "vocab_size": 40,
        "hidden_size": 12,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 20,
        "max_position_embeddings": 24,
    }
    return ModelConfig(encoder=EncoderConfig.parse(sizes | changes, where="a test"), heads=heads)


def varied_model(config: ModelConfig, *, seed: int = 0) -> Model:
    """A model in evaluation mode in which no weight has the value that it starts with."""
    model = new_model(config, seed=seed).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model


def change_config(folder: Path, **values: Any) -> None:
    """Set values of config.json; one that is None is removed."""
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) | values
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}), encoding="utf-8")


def from_elsewhere(folder: Path) -> None:
    """Leave in config.json only what other programs write."""
    change_config(folder, bertsmith=None)


def weights_of(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model.safetensors")


def change_weights(folder: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    """Replace the weights of a folder by what `change` makes of them."""
    changed = change(weights_of(folder))
    save_file({name: value.clone() for name, value in changed.items()}, folder / "model.safetensors")


def assert_equal_models(one: Model, other: Model) -> None:
    first, second = one.state_dict(), other.state_dict()
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]), name
