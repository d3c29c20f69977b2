"""What a pre-training begins with: its batches, and a model that has not taken a step."""

from collections.abc import Callable

from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.corpus.corpus import Corpus
from bertsmith.engine.device import Device
from bertsmith.foundation.errors import InputError
from bertsmith.model.encoder import Encoder
from bertsmith.model.heads import Model
from bertsmith.planning.choice import MOST_VALIDATED, validation_tokens
from bertsmith.recipes.pretraining.data import PretrainingData, pretraining_data
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.start_model import start_model
from bertsmith.recipes.step_budget import steps_without_clock
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.training.step import TrainState, new_optimizer
from bertsmith.training.weight_average import new_average

DEFAULT_EPOCHS = 3.0


def data_of_run(config: PretrainConfig, corpus: Corpus, sequence_format: SequenceFormat) -> PretrainingData:
    """Batches to train on and to validate on.

    Raises:
        InputError: as `pretraining_data`.
    """
    return pretraining_data(
        corpus,
        sequence_format,
        objective=config.objective,
        max_length=config.max_length,
        masking=config.masking,
        training=config.training,
        sequences=config.sequences,
    )


def validation_tokens_of_run(config: PretrainConfig, batches_per_epoch: int) -> int:
    """Tokens of each validation: as given, or what the length of the run is worth.

    Where that is a time, the most, since what validations take is counted when its steps are.
    """
    if config.training.validation_tokens is not None:
        return config.training.validation_tokens
    if config.length.minutes is not None:
        return MOST_VALIDATED
    steps = steps_without_clock(config.length, default_epochs=DEFAULT_EPOCHS, batches_per_epoch=batches_per_epoch)
    return validation_tokens(float(steps * config.training.batch_tokens), config.training.num_validations)


def first_state(
    config: PretrainConfig, corpus: Corpus, tokenizer: Tokenizer, device: Device, notify: Callable[[str], None]
) -> TrainState:
    """The state before the first step; `notify` is told what a person should know of the model.

    Raises:
        InputError: as `start_model` and `new_state`.
    """
    start = start_model(
        config.model,
        tokenizer,
        token_counts=corpus.split("train").token_counts,
        objective=config.objective,
        seed=config.training.seed,
    )
    for note in start.notes:
        notify(note)
    return new_state(start.model, config, device)


def new_state(model: Model, config: PretrainConfig, device: Device) -> TrainState:
    """A model, ready to be trained, with an optimizer that has seen nothing.

    Raises:
        InputError: if activations are to be made anew in an encoder that cannot.
    """
    if config.training.recompute_activations:
        if not isinstance(model.encoder, Encoder):
            raise InputError(
                "training.recompute_activations needs an encoder of transformer layers",
                f"one of family {model.config.encoder.family}",
                "Leave it false.",
            )
        model.encoder.recompute_activations(True)
    model = model.to(device.name)
    model.train()
    training = config.training
    return TrainState(model, new_optimizer(model, training.optimizer), average=new_average(model, training))
