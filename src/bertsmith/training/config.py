"""How a model is trained."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from bertsmith.foundation.config import Config

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]


class OptimizerConfig(Config):
    """AdamW, without decay on biases, norms and other vectors (Loshchilov and Hutter 2019), with or without Muon."""

    learning_rate: Positive = 1e-3
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.01
    beta1: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.9
    beta2: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.98
    eps: Positive = 1e-6
    matrices: Literal["adamw", "muon"] = "adamw"
    """Who updates the matrices inside the encoder's layers; the rest is AdamW's."""
    muon_learning_rate: Positive = 0.02
    clip_norm: Positive = 1.0
    """Largest norm of all gradients together; longer ones are scaled to it."""


class ScheduleConfig(Config):
    """The learning rate over a run, as a share of its highest value."""

    shape: Literal["linear", "cosine", "stable_then_decay"] = "linear"
    """What follows the warm-up: down to 0 in a line or half a cosine, or level and then in a line to 0."""
    warmup_share: Share = 0.06
    """Share of all steps in which the rate rises in a line from 0."""
    decay_share: Share = 0.3
    """For stable_then_decay: share of all steps in which the rate falls."""

    @model_validator(mode="after")
    def _shares_fit(self) -> "ScheduleConfig":
        if self.warmup_share + self.decay_share > 1 and self.shape == "stable_then_decay":
            raise ValueError("warmup_share and decay_share together must not exceed 1")
        return self


class LengthConfig(Config):
    """How long a run is: one of the three."""

    epochs: Positive | None = None
    steps: Count | None = None
    minutes: Positive | None = None

    @model_validator(mode="after")
    def _one_is_given(self) -> "LengthConfig":
        given = [name for name in ("epochs", "steps", "minutes") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"only one of epochs, steps and minutes may be given, and {' and '.join(given)} were")
        return self


class TrainingConfig(Config):
    """Everything about training that is not the model, the data or the length of the run."""

    batch_tokens: Count = 8192
    """Real tokens in a step's batch, special ones included."""
    micro_batch_tokens: Count = 16384
    """Most tokens in one forward pass; a larger batch is accumulated. Memory changes, and dropout's draws."""
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    seed: int = 0
    log_every_steps: Count = 10
    validate_every_share: Annotated[float, Field(gt=0.0, le=1.0)] = 0.1
    """A validation each time this share of the run has passed, and one at the end."""
    validation_tokens: Count = 200_000
    """Tokens of the validation part after which a validation ends: always the same ones, with the same masks."""
    checkpoint_every_minutes: Positive = 5.0
    keep_checkpoints: Count = 2
    """The newest stay, and beside them the best."""
