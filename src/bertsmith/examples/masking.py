"""Choosing the tokens that a masked language model must predict, and what it sees in their places.

Source: Devlin et al. 2019, section 3.1; the number selected a sequence follows Liu et al. 2019's code: the fraction of
a token is decided by a draw, so that the mean rate is exact.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Bool, Int
from pydantic import Field, field_validator, model_validator

from bertsmith.foundation.config import Config

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class MaskingConfig(Config):
    """How many tokens are selected, and what becomes of them."""

    mask_rate: Share = 0.15
    """Share of the eligible tokens that is selected."""
    mask_token_share: Share = 0.8
    """Share of the selected tokens that the mask token replaces."""
    random_token_share: Share = 0.1
    """Share of the selected tokens that a random one replaces; the rest stays as it is."""
    selection: Literal["exact", "bernoulli"] = "exact"
    """exact: rate x eligible tokens of a sequence, rounded by a draw. bernoulli: each token by itself."""

    @field_validator("mask_rate", "mask_token_share", "random_token_share", mode="before")
    @classmethod
    def _share_is_no_percentage(cls, value: Any) -> Any:
        if isinstance(value, int | float) and 1 < value <= 100:
            raise ValueError(f"must lie in [0, 1] (Did you mean {value / 100:g}?)")
        return value

    @model_validator(mode="after")
    def _shares_fit(self) -> "MaskingConfig":
        if self.mask_token_share + self.random_token_share > 1.0 + 1e-9:
            raise ValueError("mask_token_share and random_token_share together must not exceed 1")
        return self


@dataclass(frozen=True)
class MaskedTokens:
    """Tokens as the model sees them, and what it must find."""

    token_ids: Int[np.ndarray, " tokens"]
    target_positions: Int[np.ndarray, " targets"]
    """Ascending positions in `token_ids`."""
    target_ids: Int[np.ndarray, " targets"]
    """The true tokens at these positions."""


def mask_tokens(
    token_ids: Int[np.ndarray, " tokens"],
    eligible: Bool[np.ndarray, " tokens"],
    sequence_starts: Int[np.ndarray, " bounds"],
    *,
    mask_id: int,
    random_ids: Int[np.ndarray, " candidates"],
    config: MaskingConfig,
    stream: np.random.Generator,
) -> MaskedTokens:
    """Select tokens of packed sequences and hide them. The input is not changed.

    Args:
        token_ids: the tokens of all sequences.
        eligible: False for special tokens and padding, which are never selected.
        sequence_starts: first token of each sequence, and at the end the number of tokens.
        mask_id: the mask token.
        random_ids: what a random replacement is drawn from: every token but the special ones.
        config: rates and shares.
        stream: decides everything.
    """
    selected = _select(eligible, sequence_starts, config, stream)
    positions = np.flatnonzero(selected)
    target_ids = token_ids[positions].astype(np.int64)
    seen = token_ids.astype(np.int64)
    fate = stream.random(len(positions))
    replacements = random_ids[stream.integers(len(random_ids), size=len(positions))]
    becomes_random = fate < config.mask_token_share + config.random_token_share
    seen[positions[becomes_random]] = replacements[becomes_random]
    seen[positions[fate < config.mask_token_share]] = mask_id
    return MaskedTokens(seen, positions, target_ids)


def _select(
    eligible: Bool[np.ndarray, " tokens"],
    sequence_starts: Int[np.ndarray, " bounds"],
    config: MaskingConfig,
    stream: np.random.Generator,
) -> Bool[np.ndarray, " tokens"]:
    lengths = np.diff(sequence_starts)
    sequence = np.repeat(np.arange(len(lengths)), lengths)[eligible]
    eligible_lengths = np.bincount(sequence, minlength=len(lengths))
    draws = stream.random(len(sequence))
    # Eligible tokens ordered by their draw inside their sequence: the first ones of each sequence are selected.
    order = np.lexsort((draws, sequence))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(eligible_lengths) - eligible_lengths, eligible_lengths)
    if config.selection == "exact":
        wanted = np.floor(config.mask_rate * eligible_lengths + stream.random(len(lengths))).astype(np.int64)
    else:
        wanted = np.bincount(sequence, weights=draws < config.mask_rate, minlength=len(lengths)).astype(np.int64)
    # One position at least, or a short sequence teaches nothing.
    wanted = np.maximum(wanted, np.minimum(eligible_lengths, 1))
    chosen = np.zeros(len(sequence), bool)
    chosen[order] = rank < np.repeat(wanted, eligible_lengths)
    selected = np.zeros(len(eligible), bool)
    selected[np.flatnonzero(eligible)[chosen]] = True
    return selected
