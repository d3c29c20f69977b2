"""The settings of corpus preparation."""

import os
from typing import Any

from pydantic import Field, field_validator

from bertsmith.foundation.config import Config


class CorpusConfig(Config):
    """How documents become tokens on disk. Nothing here but `workers` may differ without changing the bytes."""

    validation_fraction: float = 0.05
    """Share of the documents that are held out, in [0, 1); 0 holds out none."""
    seed: int = 0
    """Decides, together with a document's text, on which side the document falls."""
    workers: int | None = Field(default=None, ge=1)
    """Processes that tokenize; 1 works in this process, None takes every usable core."""
    shard_tokens: int = Field(default=64_000_000, ge=1)
    """Tokens in each token file but the last."""

    @field_validator("validation_fraction")
    @classmethod
    def _fraction_is_no_percentage(cls, value: float) -> float:
        if 0 <= value < 1:
            return value
        hint = f"; did you mean {value / 100:g}?" if 1 <= value < 100 else ""
        raise ValueError(f"must lie in [0, 1){hint}")

    @property
    def recorded(self) -> dict[str, Any]:
        """The settings that decide the bytes."""
        return self.model_dump(exclude={"workers"})

    @property
    def num_workers(self) -> int:
        """The number of worker processes that is meant, at least one."""
        if self.workers is not None:
            return self.workers
        # Containers and batch systems hand out fewer cores than the machine has.
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return usable or 1
