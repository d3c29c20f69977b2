"""Small models for model folders, and ways to change what lies in one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertsmith.folders.model_folder import write_model
from bertsmith.model import EncoderConfig, HeadsConfig, Model, ModelConfig, RotaryConfig, new_model
from bertsmith.model.config import has_labels, reads_pooler
from bertsmith.tokenization import Tokenizer

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

LABELS = ("no", "perhaps", "yes")
KINDS: dict[str, dict[str, Any]] = {
    "bert": {},
    "causal": {"causal": True},
    "roberta": {"family": "roberta", "pad_token_id": 1, "type_vocab_size": 1},
    "albert": {"family": "albert", "embedding_size": 8, "num_hidden_groups": 2, "num_hidden_layers": 4},
    "distilbert": {"family": "distilbert", "type_vocab_size": 0},
    "modern": {"family": "modern", "type_vocab_size": 0, "rotary": RotaryConfig(global_every=3, window=8)},
}
"""What makes a small model one of each kind."""
TASKS = ("classify", "multilabel", "regress", "choose", "tag", "answer", "embed")
UNUSUAL_HEADS = [
    HeadsConfig(),
    HeadsConfig(masked_language_model=False),
    HeadsConfig(pooler=True),
    HeadsConfig(pooler=True, next_sentence=True, sentence_order=True, tie_embeddings=False),
    HeadsConfig(masked_language_model=False, pooler=True, sentence_order=True),
    HeadsConfig(masked_language_model=False, pooler=True, labels=LABELS, classifier_dropout=0.25),
    HeadsConfig(masked_language_model=False, pooler=True, labels=LABELS, classifier_input="mean"),
    HeadsConfig(pooler=True, labels=LABELS),
    HeadsConfig(pooler=True, labels=LABELS, mlm_head="linear", mlm_head_input="all_layers", tie_embeddings=False),
]
"""Some that every family can have, most of which no class of another program has."""


def task_heads(kind: str, task: str, **more: Any) -> HeadsConfig:
    """The heads of a model that was fine-tuned for a task: no others than its family's class has."""
    family = KINDS[kind].get("family", "bert")
    values = {
        "masked_language_model": False,
        "task": task,
        "labels": LABELS if has_labels(task) else (),
        "pooler": reads_pooler(family, task),  # pyright: ignore[reportArgumentType]
    }
    return HeadsConfig.parse(values | more, where="a test")


def named(heads: HeadsConfig) -> str:
    parts = [heads.mlm_head, heads.mlm_head_input, "tied" if heads.tie_embeddings else "untied"]
    parts += ["mlm"] * heads.masked_language_model + ["pooler"] * heads.pooler + ["nsp"] * heads.next_sentence
    parts += ["sop"] * heads.sentence_order + ["labels", heads.classifier_input] * bool(heads.labels)
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


def written(folder: Path, kind: str, heads: HeadsConfig, tokenizer: Tokenizer) -> Model:
    """Write a small model of a kind; the folder is made if need be."""
    model = varied_model(small_config(heads, **KINDS[kind]))
    folder.mkdir(exist_ok=True)
    write_model(folder, model, tokenizer)
    return model
