"""What a run tells while it goes on. Observers receive events and never print."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class RunStarted:
    """Training begins, or goes on."""

    step: int
    total_steps: int
    resumed: bool
    precision: str
    device: str


@dataclass(frozen=True)
class Progress:
    """A few steps have been taken."""

    step: int
    total_steps: int
    epoch: float
    tokens: int
    loss: float
    """Mean over the predictions since the last of these events, in nats."""
    losses: dict[str, float]
    """The same by term."""
    learning_rate: float
    tokens_per_second: float
    seconds_left: float


@dataclass(frozen=True)
class StepsDecided:
    """The number of steps was decided by the clock."""

    step: int
    total_steps: int


@dataclass(frozen=True)
class Validated:
    """A validation has been made."""

    step: int
    metrics: dict[str, float]


@dataclass(frozen=True)
class Sampled:
    """Completions by the model as it is now."""

    step: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class CheckpointWritten:
    """A checkpoint stands on disk."""

    step: int
    folder: str


@dataclass(frozen=True)
class EndedEarly:
    """Validations got no better, and training ends before its last step."""

    step: int
    best_step: int


Event = RunStarted | Progress | StepsDecided | Validated | Sampled | CheckpointWritten | EndedEarly


@runtime_checkable
class Observer(Protocol):
    """Something that is told of events."""

    def __call__(self, event: Event) -> None:
        """Take note of an event."""
        ...
