"""The model that a run begins with: fresh from a preset or a config, or out of a folder."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int

from bertsmith.folders.model_folder import read_model, read_tokenizer
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.random_streams import derived_seed
from bertsmith.model import EncoderConfig, HeadsConfig, Model, ModelConfig, new_model
from bertsmith.model.extend import with_more_tokens
from bertsmith.model.like_size import elmo_of_like_size
from bertsmith.recipes.pretraining.options import ModelChoice
from bertsmith.recipes.pretraining.start_encoder import (
    SETTINGS,
    is_model_folder,
    known_encoder,
    notes_on_padding,
    refuse_larger_vocabulary,
)
from bertsmith.recipes.pretraining.vocabulary import words_beyond
from bertsmith.tokenization.tokenizer import Tokenizer

_HEAD_SETTINGS = ("mlm_head", "mlm_head_input", "tie_embeddings")
_LEFT_OUT = {"next_sentence": "next sentence", "sentence_order": "sentence order"}
"""Heads of pre-training that an adaptation may leave behind, as they are told."""


@dataclass(frozen=True)
class StartModel:
    """A model to train, and what a person should know about it."""

    model: Model
    notes: tuple[str, ...]


def start_model(
    choice: ModelChoice,
    tokenizer: Tokenizer,
    *,
    token_counts: Int[np.ndarray, " vocabulary"],
    objective: str,
    seed: int,
) -> StartModel:
    """Build or open the model.

    Args:
        choice: where it comes from.
        tokenizer: decides the number of embeddings of fresh weights.
        token_counts: how often each token stands in the training text.
        objective: decides the heads, and how a fresh model reads.
        seed: decides fresh weights.

    Raises:
        InputError: if the start is unknown, the tokenizer is larger than the embeddings or not that of the folder, or
            heads and encoder do not fit.
    """
    weights_seed = derived_seed(seed, "weights")
    if is_model_folder(choice.start):
        return _continued(choice, tokenizer, token_counts, objective, weights_seed)
    refuse_larger_vocabulary(choice, tokenizer)
    config = model_for(objective, known_encoder(choice, tokenizer), heads_for(choice, objective))
    counts = token_counts if choice.bias_from_frequencies else None
    model = new_model(config, seed=weights_seed, token_counts=counts)
    return StartModel(model, tuple(notes_on_padding(choice, tokenizer)))


def heads_for(choice: ModelChoice, objective: str, source: HeadsConfig | None = None) -> HeadsConfig:
    """The heads of the model to train.

    Args:
        choice: how the head over the vocabulary is built where it is new.
        objective: which heads are trained.
        source: heads of the folder that the model goes on from. A head over the vocabulary stays as it is there, and
            so does a pooler, even where the objective does not train it.

    Raises:
        InputError: if settings are given for a head that is as it is.
    """
    pairs = objective in ("mlm+nsp", "mlm+sop")
    chosen = {name: getattr(choice, name) for name in _HEAD_SETTINGS}
    if source is not None and source.masked_language_model:
        chosen = _decided(chosen, source, f"the head of {choice.start} goes on")
    elif objective == "bilm":
        chosen = _decided(chosen, HeadsConfig(mlm_head="linear"), "--objective bilm has a head of its own")
    values = {
        **chosen,
        "pooler": pairs or (source is not None and source.pooler),
        "next_sentence": objective == "mlm+nsp",
        "sentence_order": objective == "mlm+sop",
    }
    return HeadsConfig.parse(values, where=SETTINGS)


def _decided(chosen: dict[str, object], heads: HeadsConfig, why: str) -> dict[str, object]:
    """The settings of `heads`; others that were given are refused, as they would change nothing."""
    decided = heads.model_dump(include=set(_HEAD_SETTINGS))
    ignored = [
        f"model.{name}={value}"
        for name, value in chosen.items()
        if value not in (ModelChoice.model_fields[name].default, decided[name])
    ]
    if ignored:
        raise InputError(
            "Settings of the head over the vocabulary must be given where that head is new",
            f"{', '.join(ignored)}, and {why}",
            "Leave them out.",
        )
    return decided


def model_for(objective: str, encoder: EncoderConfig, heads: HeadsConfig) -> ModelConfig:
    """The model that an objective needs: causal for `causal`, an ELMo of like size for `bilm`.

    Raises:
        InputError: if the encoder cannot be made to read as the objective needs, or the heads do not fit it.
    """
    if objective == "bilm" and encoder.family != "elmo":
        # As large as the model that the same settings give to other objectives.
        return elmo_of_like_size(ModelConfig(encoder=encoder))
    if objective == "causal" and encoder.family == "bert":
        encoder = encoder.model_copy(update={"causal": True})
    refuse_unfit_reading(objective, encoder)
    return _model_of(encoder, heads)


def _model_of(encoder: EncoderConfig, heads: HeadsConfig) -> ModelConfig:
    return ModelConfig.parse({"encoder": encoder, "heads": heads}, where=SETTINGS)


def refuse_unfit_reading(objective: str, encoder: EncoderConfig) -> None:
    """Raise an `InputError` where an encoder would see what an objective asks for, or not see what it needs."""
    reads = "bilm" if encoder.family == "elmo" else "causal" if encoder.causal else "mlm"
    needs = objective.split("+")[0]
    if reads != needs:
        kinds = {"mlm": "an encoder that sees the whole text", "causal": "a causal one", "bilm": "an ELMo"}
        raise InputError(
            f"The objective {objective} needs {kinds[needs]}",
            f"a model of family {encoder.family}: {kinds[reads]}",
            f"Name another --model, or take this one with the objective {reads}.",
        )


def refuse_unfit_start(choice: ModelChoice, objective: str) -> None:
    """Raise an `InputError` where the start of a model cannot be made to read as the objective needs, or its heads.

    Of a model folder, config.json is read and what the weights are called: no weight is.
    """
    encoder = known_encoder(choice)
    if not is_model_folder(choice.start):
        model_for(objective, encoder, heads_for(choice, objective))
        return
    refuse_unfit_reading(objective, encoder)
    source = read_model(Path(choice.start), weights=False).model.config.heads
    _model_of(encoder, heads_for(choice, objective, source))


def _continued(
    choice: ModelChoice,
    tokenizer: Tokenizer,
    token_counts: Int[np.ndarray, " vocabulary"],
    objective: str,
    seed: int,
) -> StartModel:
    """A model with the weights of a folder; heads that it lacks are fresh, those not wanted left out, and both said."""
    folder = Path(choice.start)
    read = read_model(folder)
    refuse_unfit_reading(objective, read.model.config.encoder)
    source, extension = _extended(read.model, folder, tokenizer)
    encoder = source.config.encoder
    if choice.dropout is not None:
        encoder = encoder.model_copy(update={"dropout": choice.dropout})
    config = _model_of(encoder, heads_for(choice, objective, source.config.heads))
    # A head over the vocabulary that is new begins with the text's frequencies; one that is there is overwritten below.
    counts = token_counts if choice.bias_from_frequencies else None
    model = new_model(config, seed=seed, token_counts=counts)
    weights = source.state_dict()
    fresh = sorted({name.split(".")[0] for name in model.state_dict() if name not in weights})
    model.load_state_dict({name: weights[name] for name in model.state_dict() if name in weights}, strict=False)
    notes = [*read.notes, f"goes on from the weights of {folder}", *extension]
    if fresh:
        notes.append(f"not in that folder, so begun anew: {', '.join(fresh)}")
    lost = {name for name, _ in source.named_children()} - {name for name, _ in model.named_children()}
    left_out = [told for name, told in _LEFT_OUT.items() if name in lost]
    if source.config.heads.task_head in lost:
        left_out.append(f"the head of the task {source.config.heads.task}")
    if left_out:
        notes.append(f"in that folder, but not part of --objective {objective}, so left out: {', '.join(left_out)}")
    if model.pooler is not None and "pooler" not in fresh and not (model.next_sentence or model.sentence_order):
        notes.append(f"the pooler stays as it is in that folder: --objective {objective} does not train it")
    return StartModel(model, tuple(notes))


def _extended(model: Model, folder: Path, tokenizer: Tokenizer) -> tuple[Model, list[str]]:
    """The model with rows for the words that `tokenizer` has beyond the folder's own, and what to say of it."""
    num_embeddings = model.config.encoder.vocab_size
    own = read_tokenizer(folder, vocab_size=num_embeddings)
    words = words_beyond(own, tokenizer, num_embeddings=num_embeddings)
    if not words:
        return model, []
    pieces = own.word_pieces(words)
    larger = with_more_tokens(model, pieces, first_id=own.vocab_size)
    saved = sum(len(ids) - 1 for ids in pieces)
    return larger, [f"{len(words):,} words added, written with {saved / len(words) + 1:.1f} pieces each until now"]
