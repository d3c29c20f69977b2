"""How a model is trained."""

import math
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from bertsmith.foundation.config import Config

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
PositiveOrInf = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]


class OptimizerConfig(Config):
    """Who updates the weights, and how far. Biases, norms and other vectors never decay.

    What published models were trained with is in docs/optimizers.md.
    """

    kind: Literal["adamw", "adam_published", "lamb", "stable_adamw"] = "adamw"
    """adamw: Loshchilov and Hutter 2019. adam_published: BERT's own, without bias correction (Devlin et al. 2019).
    lamb: a trust ratio for each matrix, as ALBERT used it (You et al. 2020). stable_adamw: ModernBERT's, which shortens
    the step of a weight whose gradients have become unusually large (Wortsman et al. 2023)."""
    learning_rate: Positive = 1e-3
    weight_decay: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 0.01
    """Share of a weight that a step takes away, times the learning rate."""
    beta1: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.9
    beta2: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.98
    eps: Positive = 1e-6
    """Added to the root of the mean of squares."""
    layer_decay: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Rate of a layer as a share of the rate of the one above; heads have the full rate, embeddings the lowest."""
    matrices: Literal["same", "muon"] = "same"
    """Who updates the matrices inside the encoder's layers: the same as all else, or Muon (Jordan et al. 2024)."""
    muon_learning_rate: Positive = 0.02
    """Of the matrices that Muon updates. Who gives it alone asks for Muon."""
    clip_norm: PositiveOrInf = 1.0
    """Largest norm of all gradients together; longer ones are scaled to it. inf: they stay as they are."""

    @model_validator(mode="before")
    @classmethod
    def _a_rate_asks_for_muon(cls, values: Any) -> Any:
        if isinstance(values, dict) and "muon_learning_rate" in values:
            return {"matrices": "muon"} | values
        return values

    @model_validator(mode="after")
    def _kinds_fit(self) -> "OptimizerConfig":
        if self.matrices == "muon" and self.kind in ("adam_published", "lamb"):
            raise ValueError(
                f"matrices=muon goes with kind adamw or stable_adamw, and kind is {self.kind}, which is there to train "
                "as a published model was, without Muon"
            )
        if self.matrices != "muon" and self.muon_learning_rate != type(self).model_fields["muon_learning_rate"].default:
            raise ValueError("muon_learning_rate must not be given with matrices same, which leaves no matrix to Muon")
        return self


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
        if self.shape != "stable_then_decay" and self.decay_share != type(self).model_fields["decay_share"].default:
            raise ValueError("decay_share must be given with shape stable_then_decay only")
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


class LoopConfig(Config):
    """What the training loop is told, whatever is trained."""

    micro_batch_tokens: Count = 16384
    """Most tokens in one forward pass; a larger batch is accumulated. Memory changes, and dropout's draws."""
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    average_share: Share = 0.0
    """Share of the run over which a mean of the weights looks back; less where it has fewer than 1,000 steps. The mean
    is what is validated and what the run leaves; 0: the weights themselves are."""
    seed: int = 0
    log_every_steps: Count = 10
    validate_every_share: Annotated[float, Field(gt=0.0, le=1.0)] = 0.1
    """A validation each time this share of the run has passed, and one at the end."""
    checkpoint_every_minutes: PositiveOrInf = 5.0
    """Time after which one is written where no validation was; inf: none is."""
    keep_checkpoints: Count = 2
    """The newest stay, and beside them the best."""

    @property
    def num_validations(self) -> int:
        """Over the run."""
        return math.ceil(1 / self.validate_every_share)


class TrainingConfig(LoopConfig):
    """Everything about pre-training that is not the model, the data or the length of the run."""

    batch_tokens: Count = 8192
    """Real tokens in a step's batch, special ones included."""
    recompute_activations: bool = False
    """Whether a layer's inner values are made again in the backward pass and not kept: less memory, more time."""
    validation_tokens: Count | None = None
    """Tokens of the validation part after which a validation ends: always the same ones, with the same masks. Where not
    given, so many that all validations take a twentieth of the run, from 10,000 to 200,000."""
