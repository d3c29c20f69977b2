"""Selecting and hiding tokens."""

import numpy as np
import pytest

from bertsmith.examples.masking import MaskedTokens, MaskingConfig, mask_tokens
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.random_streams import random_stream

MASK = 4
VOCABULARY = 1000
SPECIAL = range(5)
RANDOM_IDS = np.arange(5, VOCABULARY)


def _sequences(lengths: list[int], seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random text between two special tokens, for each length given (special tokens included)."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    tokens = random_stream(seed, "text").integers(5, VOCABULARY, size=starts[-1])
    eligible = np.ones(starts[-1], bool)
    for place in (starts[:-1], starts[1:] - 1):
        eligible[place] = False
        tokens[place] = 2
    return tokens, eligible, starts


def _masked(
    tokens: np.ndarray, eligible: np.ndarray, starts: np.ndarray, config: MaskingConfig, seed: int = 0
) -> MaskedTokens:
    return mask_tokens(
        tokens,
        eligible,
        starts,
        mask_id=MASK,
        random_ids=RANDOM_IDS,
        config=config,
        stream=random_stream(seed, "masks"),
    )


@pytest.mark.parametrize("selection", ["exact", "bernoulli"])
def test_rate_and_shares_hold_over_a_million_tokens(selection: str) -> None:
    tokens, eligible, starts = _sequences([102, 34, 12, 82] * 4500)
    masked = _masked(tokens, eligible, starts, MaskingConfig.parse({"selection": selection}, where="a test"))
    count = len(masked.target_positions)
    assert eligible.sum() > 990_000
    # Standard deviation of a share of n draws is sqrt(p (1 - p) / n): five of them.
    # Where each token is drawn by itself, a sequence of 10 is lifted to one target in 0.85 ** 10 of the cases.
    least_of_one = 0.85**10 / (100 + 32 + 10 + 80) if selection == "bernoulli" else 0.0
    assert count / eligible.sum() == pytest.approx(0.15 + least_of_one, abs=5 * np.sqrt(0.15 * 0.85 / 1e6))
    seen = masked.token_ids[masked.target_positions]
    unchanged = seen == masked.target_ids
    tolerance = 5 * np.sqrt(0.8 * 0.2 / count)
    assert (seen == MASK).mean() == pytest.approx(0.8, abs=tolerance)
    # One in 995 random tokens is the true one.
    assert unchanged.mean() == pytest.approx(0.1 + 0.1 / 995, abs=tolerance)
    assert ((seen != MASK) & ~unchanged).mean() == pytest.approx(0.1 - 0.1 / 995, abs=tolerance)


def test_exact_selection_rounds_each_sequence_up_or_down() -> None:
    tokens, eligible, starts = _sequences([52] * 400)
    masked = _masked(tokens, eligible, starts, MaskingConfig(mask_rate=0.15))
    chosen = np.bincount(masked.target_positions // 52, minlength=400)
    assert set(chosen.tolist()) == {7, 8}


def test_bernoulli_selection_spreads_beyond_rounding() -> None:
    tokens, eligible, starts = _sequences([52] * 400)
    masked = _masked(tokens, eligible, starts, MaskingConfig(mask_rate=0.15, selection="bernoulli"))
    chosen = np.bincount(masked.target_positions // 52, minlength=400)
    assert chosen.min() < 5
    assert chosen.max() > 10
    assert chosen.var() == pytest.approx(50 * 0.15 * 0.85, rel=0.3)


def test_selection_is_even_over_positions() -> None:
    tokens, eligible, starts = _sequences([22] * 20_000)
    masked = _masked(tokens, eligible, starts, MaskingConfig())
    by_place = np.bincount(masked.target_positions % 22, minlength=22)[1:-1] / 20_000
    assert by_place == pytest.approx(np.full(20, 0.15), abs=5 * np.sqrt(0.15 * 0.85 / 20_000))


@pytest.mark.parametrize("selection", ["exact", "bernoulli"])
def test_special_tokens_are_never_selected_even_at_rate_one(selection: str) -> None:
    tokens, eligible, starts = _sequences([30, 3, 2, 17] * 50)
    config = MaskingConfig.parse({"mask_rate": 1.0, "selection": selection}, where="a test")
    masked = _masked(tokens, eligible, starts, config)
    assert np.array_equal(masked.target_positions, np.flatnonzero(eligible))
    assert np.array_equal(masked.token_ids[~eligible], tokens[~eligible])


def test_random_replacement_never_draws_a_special_id() -> None:
    tokens, eligible, starts = _sequences([102] * 300)
    few = np.array([7, 9])
    masked = mask_tokens(
        tokens,
        eligible,
        starts,
        mask_id=MASK,
        random_ids=few,
        config=MaskingConfig(mask_rate=1.0, mask_token_share=0.0, random_token_share=1.0),
        stream=random_stream(0, "masks"),
    )
    assert set(masked.token_ids[eligible].tolist()) == {7, 9}
    drawn = _masked(
        tokens, eligible, starts, MaskingConfig(mask_rate=1.0, mask_token_share=0.0, random_token_share=1.0)
    )
    assert not set(drawn.token_ids[eligible].tolist()) & set(SPECIAL)


@pytest.mark.parametrize("selection", ["exact", "bernoulli"])
def test_every_sequence_with_text_has_a_target(selection: str) -> None:
    tokens, eligible, starts = _sequences([3, 4, 2, 5] * 100)
    for seed in range(20):
        config = MaskingConfig.parse({"mask_rate": 0.05, "selection": selection}, where="a test")
        masked = _masked(tokens, eligible, starts, config, seed)
        chosen = np.histogram(masked.target_positions, bins=starts)[0].reshape(100, 4)
        assert (chosen[:, [0, 1, 3]] >= 1).all()
        assert (chosen[:, 2] == 0).all()


def test_no_eligible_token_gives_no_target() -> None:
    tokens, eligible, starts = _sequences([2, 2])
    masked = _masked(tokens, eligible, starts, MaskingConfig(mask_rate=1.0))
    assert len(masked.target_positions) == len(masked.target_ids) == 0
    assert np.array_equal(masked.token_ids, tokens)


@pytest.mark.parametrize("name", ["mask_rate", "mask_token_share", "random_token_share"])
def test_a_percentage_is_refused_with_the_share_that_was_meant(name: str) -> None:
    with pytest.raises(InputError, match=rf"{name}.*\[0, 1\].*Did you mean 0\.15\?.*Received: .*{name}=15\b") as caught:
        MaskingConfig.parse({name: 15}, where="the options")
    assert "?." not in str(caught.value)
    with pytest.raises(ValueError, match=r"Did you mean 0\.15\?"):
        MaskingConfig.model_validate({name: 15})


def test_shares_that_exceed_one_together_are_refused() -> None:
    with pytest.raises(InputError, match="together must not exceed 1"):
        MaskingConfig.parse({"mask_token_share": 0.8, "random_token_share": 0.3}, where="the options")
    assert MaskingConfig(mask_token_share=0.9, random_token_share=0.1).random_token_share == 0.1
