"""The model that a fine-tuning begins with: an encoder out of a folder, with a fresh classifier on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bertsmith.folders.model_folder import read_model, read_tokenizer
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.random_streams import derived_seed
from bertsmith.model import PRESETS, Dropout, EncoderConfig, HeadsConfig, Model, ModelConfig, new_model
from bertsmith.recipes.predict import model_folder_of
from bertsmith.recipes.settings import read_settings
from bertsmith.tokenization.tokenizer import Tokenizer


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
        """Most tokens of a sequence where none is asked for: positions past those of its own run never learned."""
        run = self.folder.parent / "run.toml"
        trained = read_settings(run).get("max_length") if run.is_file() else None
        return min(self.num_positions, 512, self.tokenizer.model_max_length or 512, trained or 512)


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


def start_classifier(
    source: Source, labels: Sequence[str], *, dropout: float, fresh_weights: bool, seed: int, frozen: bool = False
) -> tuple[Model, tuple[str, ...]]:
    """Build the model to train.

    Args:
        source: where sizes and weights come from.
        labels: the classes.
        dropout: in all places of the encoder and before the classifier.
        fresh_weights: take the sizes alone.
        seed: decides weights that do not come from the source.
        frozen: whether the encoder will not be trained. It then has no dropout: what nobody trains need not be noisy.

    Returns:
        the model, and what a person should know of it.
    """
    encoder = source.model.config.encoder.model_copy(update={"dropout": Dropout.everywhere(0.0 if frozen else dropout)})
    config = _classifier_config(encoder, labels, source.model.config.heads, dropout)
    model = new_model(config, seed=derived_seed(seed, "weights"))
    if fresh_weights:
        return model, (f"fresh weights with the sizes of {source.folder}",)
    weights = {
        name: value for name, value in source.model.state_dict().items() if name.startswith(("encoder.", "pooler."))
    }
    notes = list(source.notes)
    if source.model.classifier is not None and source.model.config.heads.labels == config.heads.labels:
        weights |= {name: value for name, value in source.model.state_dict().items() if name.startswith("classifier.")}
        notes.append("goes on with the classifier of that folder, which has the same labels")
    elif source.model.classifier is not None:
        known = source.model.config.heads.labels
        notes.append(f"the classifier of that folder has other labels ({len(known)}), so a new one begins")
    if model.pooler is not None and "pooler.dense.weight" not in weights:
        notes.append(
            "that folder has no pooler, as its training had no task over whole sequences, so one begins anew beside "
            "the classifier"
        )
    model.load_state_dict({name: weights[name] for name in model.state_dict() if name in weights}, strict=False)
    return model, tuple(notes)


def known_order(source: Source, labels: Sequence[str]) -> tuple[str, ...]:
    """The labels, in the source's own order where it knows the same ones."""
    known = source.model.config.heads.labels
    return known if set(known) == set(labels) else tuple(labels)


def freeze_encoder(model: Model) -> None:
    """Leave the encoder's weights as they are in training; pooler and classifier go on learning."""
    model.encoder.requires_grad_(False)


def _classifier_config(
    encoder: EncoderConfig, labels: Sequence[str], before: HeadsConfig, dropout: float
) -> ModelConfig:
    bare = ModelConfig(encoder=encoder, heads=HeadsConfig(masked_language_model=False))
    # The first token of a causal encoder has read nothing, and one half of an ELMo's neither.
    one_way = encoder.causal or encoder.family == "elmo"
    heads = HeadsConfig(
        masked_language_model=False,
        pooler=bare.uses_pooler,
        labels=tuple(labels),
        classifier_dropout=dropout,
        classifier_input="mean" if one_way else before.classifier_input,
    )
    return ModelConfig(encoder=encoder, heads=heads)
