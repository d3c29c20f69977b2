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


def validate_every(share: float, total_steps: int) -> int:
    """Steps from one validation to the next: so many that there are no more of them than the shares of a run, its end
    included.

    Args:
        share: of the run, after which there is one.
        total_steps: steps of the whole run.
    """
    # Rounded up, or the last of them would come a step or two before the one at the end. A tenth of 30 is 3, not a
    # little more.
    return max(1, math.ceil(share * total_steps - 1e-6))


_REVIEWS = (0.03, 0.1, 0.25, 0.5, 0.75, 0.9)
"""Shares of the time after which the number of steps is reviewed; from the last on it stands."""


@dataclass
class StepBudget:
    """How many steps a run has: known from the start, or found from a time and the measured speed.

    With a time, the number is decided before the first step and reviewed a few times. A decision holds from its step on
    and is part of the training state, so that a resumed run has the same rates. Time for the validations that are
    still to come is put aside, and what those before took is not taken for time of steps.
    """

    total_steps: int
    seconds: float | None = None
    """Time that the run may take, all validations included; None where the steps are known."""
    reserved_seconds: float = 0.0
    """Part of the time that the end needs beside validations: writing the model."""
    validate_every_share: float = 1.0
    """Share of the steps after which there is a validation; there is one after the last step too."""
    closing_validations: int = 0
    """Validations that follow the one after the last step."""
    validation_seconds: float = 0.0
    """What a validation takes: a guess, or what the last one took."""
    validated_seconds: float = 0.0
    """What all validations so far took."""
    decisions: list[tuple[int, int]] = field(default_factory=list)
    """Step and the total decided there."""
    _reviews_done: int = 0

    def begin(self, step_seconds: float) -> None:
        """Decide the number of steps before the first one, from what one takes."""
        self.total_steps = self._most_steps(0, 0.0, 1 / step_seconds)

    def validated(self, seconds: float) -> None:
        """Note what a validation took."""
        self.validation_seconds = seconds
        self.validated_seconds += seconds

    def review(self, step: int, elapsed_seconds: float) -> bool:
        """Decide the number of steps anew where it is time; returns whether it changed.

        Args:
            step: steps taken so far.
            elapsed_seconds: what they took, and the validations between them.
        """
        if self.seconds is None or step == 0:
            return False
        share = elapsed_seconds / self.seconds
        due = sum(share >= review for review in _REVIEWS)
        if due <= self._reviews_done:
            return False
        self._reviews_done = due
        total = self._most_steps(step, elapsed_seconds, step / max(elapsed_seconds - self.validated_seconds, 1e-9))
        changed = total != self.total_steps
        if changed:
            self.total_steps = total
            self.decisions.append((step, total))
        return changed

    def _most_steps(self, step: int, elapsed_seconds: float, steps_per_second: float) -> int:
        """The most steps that fit the time with their validations; one more than were taken at least."""
        assert self.seconds is not None
        left = max(0.0, self.seconds - self.reserved_seconds - elapsed_seconds)
        ahead = 1
        while True:
            validating_seconds = (ahead + self.closing_validations) * self.validation_seconds
            total = step + int((left - validating_seconds) * steps_per_second)
            every = validate_every(self.validate_every_share, total)
            if total <= step + 1 or math.ceil(total / every) - step // every <= ahead:
                return max(step + 1, total)
            ahead += 1

    def to_json(self) -> dict[str, Any]:
        """Plain values for the training state."""
        return {
            "total_steps": self.total_steps,
            "seconds": self.seconds,
            "reserved_seconds": self.reserved_seconds,
            "validate_every_share": self.validate_every_share,
            "closing_validations": self.closing_validations,
            "validation_seconds": self.validation_seconds,
            "validated_seconds": self.validated_seconds,
            "decisions": self.decisions,
            "reviews_done": self._reviews_done,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "StepBudget":
        """The budget as it was."""
        decisions = [(step, total) for step, total in values["decisions"]]
        known = {name: value for name, value in values.items() if name not in ("decisions", "reviews_done")}
        return cls(**known, decisions=decisions, _reviews_done=values["reviews_done"])
