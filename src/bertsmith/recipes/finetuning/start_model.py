"""The model that a fine-tuning begins with: an encoder out of a folder, with a fresh head on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertsmith.folders.model_folder import read_model, read_tokenizer
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.random_streams import derived_seed
from bertsmith.model import PRESETS, Dropout, HeadsConfig, Model, ModelConfig, new_model
from bertsmith.model.config import reads_pooler
from bertsmith.objectives.regression import rescale
from bertsmith.recipes.predict import model_folder_of
from bertsmith.tokenization.tokenizer import Tokenizer

_HEADS = ("classifier.", "token_classifier.", "spans.")


@dataclass(frozen=True)
class Source:
    """The folder that a fine-tuning starts from."""

    folder: Path
    model: Model
    tokenizer: Tokenizer
    notes: tuple[str, ...]

    @property
    def num_positions(self) -> int:
        """Tokens in the longest sequence that the encoder takes."""
        return self.model.config.encoder.num_positions

    @property
    def max_length(self) -> int:
        """Most tokens of a sequence where none is asked for: positions past those of its own training never learned."""
        return min(self.tokenizer.longest_sequence(self.num_positions), 512)


def open_source(name: str) -> Source:
    """Open the folder of an encoder, or of a run.

    Raises:
        InputError: if it is none.
    """
    if name in PRESETS:
        raise InputError(
            "--model must be the folder of a trained encoder",
            f"{name}, a preset without weights",
            f"Pre-train one: bertsmith pretrain TEXT --model {name} --out DIR.",
        )
    folder = model_folder_of(name)
    read = read_model(folder)
    encoder = read.model.config.encoder
    return Source(folder, read.model, read_tokenizer(folder, vocab_size=encoder.vocab_size), read.notes)


def start_model(
    source: Source, task: dict[str, Any], *, dropout: float, fresh_weights: bool, seed: int, frozen: bool = False
) -> tuple[Model, tuple[str, ...]]:
    """Build the model to train.

    Args:
        source: where sizes and weights come from.
        task: what `HeadsConfig` says of the task.
        dropout: in all places of the encoder and before the head.
        fresh_weights: take the sizes alone.
        seed: decides weights that do not come from the source.
        frozen: whether the encoder will not be trained. It then has no dropout: what nobody trains need not be noisy.

    Returns:
        the model, and what a person should know of it.
    """
    config = task_model_config(source, task, dropout=dropout)
    places = Dropout.everywhere(0.0 if frozen else dropout)
    config = config.model_copy(update={"encoder": config.encoder.model_copy(update={"dropout": places})})
    model = new_model(config, seed=derived_seed(seed, "weights"))
    if fresh_weights:
        return model, (f"fresh weights with the sizes of {source.folder}",)
    known = source.model.state_dict()
    weights = {name: value for name, value in known.items() if name.startswith(("encoder.", "pooler."))}
    notes = list(source.notes)
    before, heads = source.model.config.heads, config.heads
    if before.task_head is not None and (before.task, before.labels) == (heads.task, heads.labels):
        weights |= {name: value for name, value in known.items() if name.startswith(_HEADS)}
        notes.append("goes on with the head of that folder, which was trained for the same")
    elif before.task_head is not None:
        same = before.task == heads.task
        other = f"other labels ({len(before.labels)})" if same else f"another task, {before.task}"
        notes.append(f"the head of that folder is for {other}, so a new one begins")
    if model.pooler is not None and "pooler.dense.weight" not in weights:
        notes.append(
            "that folder has no pooler, as its training had no task over whole sequences, so one begins anew beside "
            "the head"
        )
    model.load_state_dict({name: weights[name] for name in model.state_dict() if name in weights}, strict=False)
    if heads.task == "regress" and before.task == "regress":  # Its head gives values, and is trained to give distances.
        rescale(model, before.value_scale, heads.value_scale)
    return model, tuple(notes)


def known_order(source: Source, labels: Sequence[str]) -> tuple[str, ...]:
    """The labels, in the source's own order where it knows the same ones."""
    known = source.model.config.heads.labels
    return known if set(known) == set(labels) else tuple(labels)


def freeze_encoder(model: Model) -> None:
    """Leave the encoder's weights as they are in training; pooler and head go on learning."""
    model.encoder.requires_grad_(False)


def task_model_config(source: Source, task: dict[str, Any], *, dropout: float) -> ModelConfig:
    """The source's encoder with the head of a task.

    Args:
        source: whose encoder it is.
        task: what `HeadsConfig` says of the task.
        dropout: before the head.
    """
    encoder, before = source.model.config.encoder, source.model.config.heads
    name = task["task"]
    # The first token of a causal encoder has read nothing, and one half of an ELMo's neither.
    one_way = encoder.causal or encoder.family == "elmo"
    if one_way and name == "embed" and task.get("pooling") == "first":
        raise InputError(
            "The first token of a model that reads one way has read nothing, so embed.pooling must be mean or max",
            f"first, for {source.folder}",
            "Use mean.",
        )
    # A modern encoder learned nothing about texts as a whole, which its first token would have to tell.
    reads_mean = one_way or (encoder.family == "modern" and before.task_head != "classifier")
    heads = HeadsConfig(
        masked_language_model=False,
        classifier_dropout=dropout,
        classifier_input="mean" if reads_mean else before.classifier_input,
        pooler=reads_pooler(encoder.family, name) or (name == "embed" and before.pooler),
        **task,
    )
    return ModelConfig(encoder=encoder, heads=heads)
