"""What a fine-tuning begins with: a model that has not taken a step, and what the loop is told."""

from collections.abc import Callable

from bertsmith.engine.device import Device
from bertsmith.model.heads import Model
from bertsmith.recipes.finetuning.given import Given
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.start_model import freeze_encoder, start_model
from bertsmith.training.config import LoopConfig
from bertsmith.training.optimizer import new_optimizer, size_of_layer_weights
from bertsmith.training.step import TrainState
from bertsmith.training.weight_average import new_average


def loop_config_of(config: FinetuneConfig, given: Given) -> LoopConfig:
    """What the loop is told, with what fits the model where nobody said otherwise."""
    model = given.source.model
    size_of_weights = 0.0 if config.fresh_weights else size_of_layer_weights(model)
    return config.training_for(model.config.encoder.hidden_size, size_of_weights)


def first_state(
    config: FinetuneConfig, loop_config: LoopConfig, given: Given, device: Device, notify: Callable[[str], None]
) -> TrainState:
    """The state before the first step; `notify` is told what a person should know of the model."""
    model, notes = start_model(
        given.source,
        given.task_heads,
        dropout=config.dropout,
        fresh_weights=config.fresh_weights,
        seed=config.training.seed,
        frozen=config.freeze == "encoder",
    )
    for note in notes:
        notify(note)
    return new_state(model, config, loop_config, device)


def new_state(model: Model, config: FinetuneConfig, loop_config: LoopConfig, device: Device) -> TrainState:
    """A model, ready to be trained, with an optimizer that has seen nothing."""
    model = model.to(device.name)
    model.train()
    if config.freeze == "encoder":
        freeze_encoder(model)
    return TrainState(model, new_optimizer(model, loop_config.optimizer), average=new_average(model, loop_config))
