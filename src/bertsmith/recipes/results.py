"""What recipes give back."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Run:
    """A finished run."""

    folder: Path
    model_folder: Path
    """The model, ready to be used or opened elsewhere."""
    steps: int
    tokens: int
    """Real tokens trained on."""
    metrics: dict[str, float]
    """The last validation."""
    context_free_loss: float | None
    """Loss of guessing by word frequency alone on the same validation text, in nats; None without such a text."""
    already_finished: bool = False
    evaluation: dict[str, Any] = field(default_factory=dict)
    """Of a fine-tuning, what the last validation found in detail; empty otherwise."""
    spread: dict[str, float] = field(default_factory=dict)
    """Of a fine-tuning by several seeds, the standard deviation of each score over them, whose means are `metrics`."""


@dataclass(frozen=True)
class Report:
    """What an evaluation found."""

    folder: Path
    source: Path
    metrics: dict[str, Any]
    errors: tuple[dict[str, Any], ...] = ()
    """Of rows, everything that the model got wrong, the worst first; `metrics` has the first of them. Of numbers, and
    of pairs with a score, it is every row, the farthest off first."""
