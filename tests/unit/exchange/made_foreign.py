"""Folders from elsewhere for the tests of the exchange."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from bertsmith.folders.model_folder import write_model
from bertsmith.model import EncoderConfig, HeadsConfig, ModelConfig, new_model
from made_corpora import made_tokenizer

SIZES: dict[str, Any] = {
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 24,
}
Weights = dict[str, Tensor]


def write_foreign(folder: Path, *, extra_rows: int = 0) -> Path:
    """Write a BERT without anything in its config that only bertsmith writes."""
    folder.mkdir(parents=True)
    tokenizer = made_tokenizer()
    encoder = EncoderConfig.parse(SIZES | {"vocab_size": tokenizer.vocab_size + extra_rows}, where="a test")
    heads = HeadsConfig(pooler=True, next_sentence=True)
    write_model(folder, new_model(ModelConfig(encoder=encoder, heads=heads), seed=3), tokenizer)
    change_config(folder, bertsmith=None)
    return folder


def change_config(folder: Path, **values: Any) -> None:
    """Set values of config.json; one that is None is removed."""
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) | values
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}), encoding="utf-8")


def weights_of(folder: Path) -> Weights:
    """The weights of a folder."""
    return load_file(folder / "model.safetensors")


def change_weights(folder: Path, change: Callable[[Weights], Weights]) -> None:
    """Replace the weights of a folder by what `change` makes of them."""
    changed = change(weights_of(folder))
    save_file({name: value.clone() for name, value in changed.items()}, folder / "model.safetensors")
