"""Choosing the tokens that a masked language model must predict, and what it sees in their places.

Source: Devlin et al. 2019, section 3.1; the number selected a sequence follows Liu et al. 2019's code: the fraction of
a token is decided by a draw, so that the mean rate is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Bool, Int
from pydantic import Field, field_validator, model_validator

from bertsmith.examples.mask_units import (
    Draws,
    Words,
    drawn_run_lengths,
    random_order,
    runs_within,
    with_one_at_least,
    words_within,
)
from bertsmith.examples.ranges import places_of
from bertsmith.foundation.config import Config

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class MaskingConfig(Config):
    """How many tokens are selected, which of them together, and what becomes of them."""

    mask_rate: Share = 0.15
    """Share of the eligible tokens that is selected."""
    final_mask_rate: Share | None = None
    """Where the rate ends that begins at `mask_rate` and goes there in a straight line over the run's steps; None: it
    stays."""
    mask_token_share: Share = 0.8
    """Share of the selected tokens that the mask token replaces."""
    random_token_share: Share = 0.1
    """Share of the selected tokens that a random one replaces; the rest stays as it is."""
    selection: Literal["exact", "bernoulli"] = "exact"
    """exact: rate x eligible tokens of a sequence, rounded by a draw, is a budget that tokens fill and words or runs
    never pass, but for one unit that a sequence gets in any case. Units come in random order; a word that does not fit
    is left and the next one tried, so the budget is all but always filled, and long words are a little rarer.
    bernoulli: each token, or word, by itself."""
    unit: Literal["token", "whole_word", "ngram", "span"] = "token"
    """What is selected together. ngram: 1 to `max_ngram` words, n of them with a chance proportional to 1/n (Lan et al.
    2020). span: words whose number is geometric (Joshi et al. 2020). Runs that would pass the budget are made shorter
    by words, those that meet another are skipped, and what is left when all were tried goes to single words."""
    fate: Literal["piece", "unit"] = "piece"
    """What mask, random or unchanged is drawn for: each token, or a unit as one, whose random tokens then differ."""
    max_ngram: Annotated[int, Field(ge=1)] = 3
    span_stop: Annotated[float, Field(gt=0.0, le=1.0)] = 0.2
    """Chance that a span ends after each of its words."""
    max_span_words: Annotated[int, Field(ge=1)] = 10
    duplicates: Annotated[int, Field(ge=1)] | None = None
    """None: masks are drawn anew each time. A number: static masking. Each example has so many fixed masks and shows
    them in turn, one an epoch; published BERT, whose data held each sequence under 10 masks, has 10. The masks depend
    on the seed, the example's number and the turn alone, and not on its batch or step; pairs too are those of the
    first so many epochs."""

    @field_validator("mask_rate", "final_mask_rate", "mask_token_share", "random_token_share", mode="before")
    @classmethod
    def _share_is_no_percentage(cls, value: Any) -> Any:
        if isinstance(value, int | float) and 1 < value <= 100:
            raise ValueError(f"must lie in [0, 1] (Did you mean {value / 100:g}?)")
        return value

    @model_validator(mode="after")
    def _settings_fit(self) -> "MaskingConfig":
        if self.mask_token_share + self.random_token_share > 1.0 + 1e-9:
            raise ValueError("mask_token_share and random_token_share together must not exceed 1")
        if self.selection == "bernoulli" and self.unit in ("ngram", "span"):
            raise ValueError(
                "selection must be exact with unit ngram or span, since runs are taken until a budget ends"
            )
        if self.duplicates is not None and self.final_mask_rate is not None:
            raise ValueError("final_mask_rate must not be given with duplicates, since fixed masks have a fixed rate")
        for name, unit in (("max_ngram", "ngram"), ("span_stop", "span"), ("max_span_words", "span")):
            if self.unit != unit and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} must be given with unit {unit} only")
        return self

    def at(self, step: int, total_steps: int | None) -> "MaskingConfig":
        """The same with the rate of a step.

        Args:
            step: counted from 0.
            total_steps: steps of the run. Needed where the rate changes.
        """
        if self.final_mask_rate is None:
            return self
        if total_steps is None:
            raise ValueError("A mask rate that changes over a run needs the run's steps. Received: total_steps=None.")
        passed = min(1.0, step / max(1, total_steps - 1))
        rate = self.mask_rate + (self.final_mask_rate - self.mask_rate) * passed
        return self.model_copy(update={"mask_rate": rate, "final_mask_rate": None})


@dataclass(frozen=True)
class TargetedTokens:
    """Tokens as the model sees them, and what it must find."""

    token_ids: Int[np.ndarray, " tokens"]
    target_positions: Int[np.ndarray, " targets"]
    """Ascending positions in `token_ids`."""
    target_ids: Int[np.ndarray, " targets"]
    """What must be found there; for a masked language model the true tokens at these positions."""


def mask_tokens(
    token_ids: Int[np.ndarray, " tokens"],
    eligible: Bool[np.ndarray, " tokens"],
    sequence_starts: Int[np.ndarray, " bounds"],
    *,
    mask_id: int,
    random_ids: Int[np.ndarray, " candidates"],
    config: MaskingConfig,
    stream: np.random.Generator | Sequence[np.random.Generator],
    continues: Bool[np.ndarray, " tokens"] | None = None,
) -> TargetedTokens:
    """Select tokens of packed sequences and hide them. The input is not changed.

    Args:
        token_ids: the tokens of all sequences.
        eligible: False for special tokens and padding, which are never selected.
        sequence_starts: first token of each sequence, and at the end the number of tokens.
        mask_id: the mask token.
        random_ids: what a random replacement is drawn from: every token but the special ones.
        config: rates, shares and units; `mask_rate` is the rate, whatever the step.
        stream: decides everything. One for each sequence makes the masks of a sequence independent of the others.
        continues: True where a token goes on with the word of the token before it. A word ends at special tokens and
            with its sequence in any case. Needed unless `unit` is token.
    """
    if config.unit != "token" and continues is None:
        raise ValueError(f"Masking by {config.unit} needs to know where words begin. Received: continues=None.")
    draws = Draws([stream] if isinstance(stream, np.random.Generator) else stream)
    words = Words.of(eligible, sequence_starts, None if config.unit == "token" else continues)
    taken = _taken(words, config, draws)
    chosen = np.flatnonzero(taken >= 0)
    lengths = words.lengths[chosen]
    positions = places_of(words.starts[chosen], lengths)
    in_sequence = np.bincount(words.sequences[chosen], weights=lengths, minlength=words.num_sequences).astype(np.int64)
    target_ids = token_ids[positions].astype(np.int64)
    seen = token_ids.astype(np.int64)
    if config.fate == "piece":
        fate = draws.uniform(in_sequence)
    else:
        units, unit = np.unique(taken[chosen], return_inverse=True)
        fate = draws.uniform(np.bincount(words.sequences[units], minlength=words.num_sequences))
        fate = np.repeat(fate[unit], lengths)
    replacements = random_ids[draws.integers(len(random_ids), in_sequence)]
    becomes_random = fate < config.mask_token_share + config.random_token_share
    seen[positions[becomes_random]] = replacements[becomes_random]
    seen[positions[fate < config.mask_token_share]] = mask_id
    return TargetedTokens(seen, positions, target_ids)


def _taken(words: Words, config: MaskingConfig, draws: Draws) -> Int[np.ndarray, " words"]:
    """For each word the number of the word that its unit begins with, or -1 where it is not selected."""
    word_draws = draws.uniform(words.counts)
    order = random_order(words, word_draws)
    if config.selection == "bernoulli":
        taken = np.where(word_draws < config.mask_rate, np.arange(len(word_draws)), -1)
        return with_one_at_least(words, order, taken)
    eligible = words.token_counts
    rounding = draws.uniform(np.ones(words.num_sequences, np.int64))
    budgets = np.floor(config.mask_rate * eligible + rounding).astype(np.int64)
    # One unit at least, or a short sequence teaches nothing.
    budgets = np.maximum(budgets, np.minimum(eligible, 1))
    if config.unit in ("token", "whole_word"):
        taken = words_within(words, order, budgets)
    else:
        lengths = drawn_run_lengths(draws.uniform(words.counts), words.to_end_of_stretch(), _run_weights(config))
        taken = runs_within(words, order, lengths, budgets)
        # At high rates every run may have been tried before the budgets are filled.
        covered = taken >= 0
        spent = np.bincount(words.sequences[covered], weights=words.lengths[covered], minlength=words.num_sequences)
        singly = words_within(words, order[~covered[order]], budgets - spent.astype(np.int64))
        taken = np.where(covered, taken, singly)
    return with_one_at_least(words, order, taken)


def _run_weights(config: MaskingConfig) -> np.ndarray:
    """Weights of runs of 1, 2, 3 … words, as the config has them."""
    if config.unit == "ngram":
        return 1.0 / np.arange(1, config.max_ngram + 1)
    return config.span_stop * (1.0 - config.span_stop) ** np.arange(config.max_span_words)
