"""The learning rate over a run, and how many steps a run has."""

import math
from dataclasses import dataclass, field
from typing import Any

from bertsmith.training.config import ScheduleConfig


def rate_share(config: ScheduleConfig, step: int, total_steps: int) -> float:
    """The learning rate of a step as a share of the highest one.

    Args:
        config: the shape.
        step: counted from 0.
        total_steps: steps of the whole run.
    """
    warmup_steps = max(1, round(config.warmup_share * total_steps))
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    passed = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    left = max(0.0, 1.0 - passed)
    match config.shape:
        case "linear":
            return left
        case "cosine":
            return 0.5 * (1.0 + math.cos(math.pi * (1.0 - left)))
        case "stable_then_decay":
            decay_steps = max(1, round(config.decay_share * total_steps))
            return min(1.0, max(0.0, (total_steps - step) / decay_steps))


_REVIEWS = (0.03, 0.1, 0.25, 0.5, 0.75, 0.9)
"""Shares of the time after which the number of steps is reviewed; from the last on it stands."""


@dataclass
class StepBudget:
    """How many steps a run has: known from the start, or found from a time and the measured speed.

    With a time, the number is decided before the first step and reviewed a few times. A decision holds from its step on
    and is part of the training state, so that a resumed run has the same rates.
    """

    total_steps: int
    seconds: float | None = None
    """Time that training may take, all validations included; None where the steps are known."""
    reserved_seconds: float = 0.0
    """Part of the time that the end needs: the last validation, and writing the model."""
    decisions: list[tuple[int, int]] = field(default_factory=list)
    """Step and the total decided there."""
    _reviews_done: int = 0

    def review(self, step: int, elapsed_seconds: float) -> bool:
        """Decide the number of steps anew where it is time; returns whether it changed.

        Args:
            step: steps taken so far.
            elapsed_seconds: what they took.
        """
        if self.seconds is None or step == 0:
            return False
        share = elapsed_seconds / self.seconds
        due = sum(share >= review for review in _REVIEWS)
        if due <= self._reviews_done:
            return False
        self._reviews_done = due
        left = max(0.0, self.seconds - self.reserved_seconds - elapsed_seconds)
        total = max(step + 1, step + int(left * step / elapsed_seconds))
        changed = total != self.total_steps
        if changed:
            self.total_steps = total
            self.decisions.append((step, total))
        return changed

    def to_json(self) -> dict[str, Any]:
        """Plain values for the training state."""
        return {
            "total_steps": self.total_steps,
            "seconds": self.seconds,
            "reserved_seconds": self.reserved_seconds,
            "decisions": self.decisions,
            "reviews_done": self._reviews_done,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "StepBudget":
        """The budget as it was."""
        return cls(
            total_steps=values["total_steps"],
            seconds=values["seconds"],
            reserved_seconds=values["reserved_seconds"],
            decisions=[(step, total) for step, total in values["decisions"]],
            _reviews_done=values["reviews_done"],
        )
