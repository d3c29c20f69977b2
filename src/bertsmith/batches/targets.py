"""What a batch asks for, and what the model sees of its text."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int

from bertsmith.batches.sequence_format import FramedTokens, SequenceFormat
from bertsmith.examples.masking import MaskingConfig, TargetedTokens, mask_tokens
from bertsmith.foundation.random_streams import random_stream


@dataclass(frozen=True)
class BatchOrigin:
    """Which batch of a run it is: all that its draws may depend on."""

    seed: int
    step: int
    total_steps: int | None
    """Steps of the run, where they are known."""
    epoch: int
    rows: Int[np.ndarray, " sequences"]
    """Number of each sequence among the examples of its epoch."""


@runtime_checkable
class TargetMaker(Protocol):
    """Decides what is to be found in the sequences of a batch, and what the model sees of them."""

    def __call__(self, framed: FramedTokens, sequence_format: SequenceFormat, origin: BatchOrigin) -> TargetedTokens:
        """Targets of a whole batch, before it is cut into micro-batches."""
        ...


@dataclass(frozen=True)
class MaskedTargets:
    """Hidden tokens, which must be found again: drawn for each step, or from each example's fixed masks."""

    config: MaskingConfig

    def __call__(self, framed: FramedTokens, sequence_format: SequenceFormat, origin: BatchOrigin) -> TargetedTokens:
        """The tokens with some of them hidden."""
        config = self.config.at(origin.step, origin.total_steps)
        if config.duplicates is None:
            stream = random_stream(origin.seed, "masks", origin.step)
        else:
            turn = origin.epoch % config.duplicates
            stream = [random_stream(origin.seed, "static masks", turn, row) for row in origin.rows.tolist()]
        return mask_tokens(
            framed.token_ids,
            framed.is_text,
            framed.sequence_starts,
            mask_id=sequence_format.mask_id,
            random_ids=sequence_format.random_ids,
            config=config,
            stream=stream,
            continues=None if config.unit == "token" else sequence_format.continues(framed),
        )


@dataclass(frozen=True)
class PlainTokens:
    """Tokens as they are, and no targets: for objectives that read off the tokens themselves what must be found, such
    as the next one at each place."""

    def __call__(self, framed: FramedTokens, sequence_format: SequenceFormat, origin: BatchOrigin) -> TargetedTokens:
        """The tokens unchanged."""
        none = np.zeros(0, np.int64)
        return TargetedTokens(framed.token_ids, none, none)
