"""Selecting and hiding tokens."""

from typing import Any

import numpy as np
import pytest

from bertsmith.examples.masking import MaskingConfig, TargetedTokens, mask_tokens
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
    tokens: np.ndarray,
    eligible: np.ndarray,
    starts: np.ndarray,
    config: MaskingConfig,
    seed: int = 0,
    continues: np.ndarray | None = None,
) -> TargetedTokens:
    return mask_tokens(
        tokens,
        eligible,
        starts,
        mask_id=MASK,
        random_ids=RANDOM_IDS,
        config=config,
        stream=random_stream(seed, "masks"),
        continues=continues,
    )


def _word_pieces(count: int, seed: int = 0) -> np.ndarray:
    """Whether each of so many tokens goes on with a word: words of natural lengths, up to nine pieces."""
    stream = random_stream(seed, "pieces")
    lengths = stream.geometric(0.7, size=count).clip(max=9)
    continues = np.ones(count, bool)
    continues[np.cumsum(lengths)[np.cumsum(lengths) < count]] = False
    continues[0] = False
    return continues


def _words(eligible: np.ndarray, continues: np.ndarray) -> np.ndarray:
    """The number of each token's word. Special tokens part words."""
    return np.cumsum(~continues | ~eligible | ~np.append(False, eligible[:-1]))


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


UNITS = [
    {"unit": "whole_word"},
    {"unit": "whole_word", "selection": "bernoulli"},
    {"unit": "ngram"},
    {"unit": "span"},
    {"unit": "ngram", "max_ngram": 5, "mask_rate": 0.4},
    {"unit": "span", "span_stop": 0.5, "max_span_words": 4, "mask_rate": 0.4},
]


@pytest.mark.parametrize("values", UNITS, ids=str)
def test_words_are_selected_whole_and_the_rate_holds_over_a_million_tokens(values: dict[str, Any]) -> None:
    tokens, eligible, starts = _sequences([128] * 8000)
    continues = _word_pieces(len(tokens))
    config = MaskingConfig.parse(values, where="a test")
    masked = _masked(tokens, eligible, starts, config, continues=continues)
    selected = np.zeros(len(tokens), bool)
    selected[masked.target_positions] = True
    assert not selected[~eligible].any()
    words = _words(eligible, continues)
    of_word = np.bincount(words, weights=selected) / np.maximum(np.bincount(words), 1)
    assert set(of_word.tolist()) == {0.0, 1.0}
    rate, count = config.mask_rate, int(eligible.sum())
    assert count > 1_000_000
    if config.selection == "bernoulli":
        # Words are drawn, so a share of tokens deviates as words of its pieces do.
        spread = np.sqrt(rate * (1 - rate) * (np.bincount(words[eligible]) ** 2).sum()) / count
        assert selected.sum() / count == pytest.approx(rate, abs=5 * spread)
        return
    # Only the fraction of a token is drawn; a budget that no word fills to the end costs at most a hundredth of it.
    assert rate * 0.99 < selected.sum() / count < rate + 5 * np.sqrt(0.25 * 8000) / count
    chosen = np.bincount(masked.target_positions // 128, minlength=8000)
    assert chosen.max() <= np.ceil(rate * 126)


@pytest.mark.parametrize("unit", ["whole_word", "ngram", "span"])
def test_a_budget_is_passed_only_by_the_one_unit_that_every_sequence_gets(unit: str) -> None:
    # A sequence of one word of six pieces, one of two words of three, and one of six words.
    tokens, eligible, starts = _sequences([8, 8, 8] * 200)
    continues = np.tile([0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0, 1, 1, 0, *[0] * 8], 200).astype(bool)
    masked = _masked(tokens, eligible, starts, MaskingConfig.parse({"unit": unit}, where="a test"), continues=continues)
    chosen = np.histogram(masked.target_positions, bins=starts)[0].reshape(200, 3)
    assert set(chosen[:, 0].tolist()) == {6}
    assert set(chosen[:, 1].tolist()) == {3}
    assert set(chosen[:, 2].tolist()) == {1}


@pytest.mark.parametrize("unit", ["whole_word", "ngram", "span"])
def test_rate_one_selects_everything_whatever_the_unit(unit: str) -> None:
    tokens, eligible, starts = _sequences([40, 3, 2, 17] * 20)
    config = MaskingConfig.parse({"unit": unit, "mask_rate": 1.0}, where="a test")
    masked = _masked(tokens, eligible, starts, config, continues=_word_pieces(len(tokens)))
    assert np.array_equal(masked.target_positions, np.flatnonzero(eligible))


@pytest.mark.parametrize("unit", ["whole_word", "ngram", "span"])
def test_the_fate_of_a_unit_is_drawn_once_and_that_of_a_piece_singly(unit: str) -> None:
    tokens, eligible, starts = _sequences([128] * 8000)
    continues = _word_pieces(len(tokens))
    words = _words(eligible, continues)
    for fate in ("piece", "unit"):
        config = MaskingConfig.parse({"unit": unit, "fate": fate}, where="a test")
        masked = _masked(tokens, eligible, starts, config, continues=continues)
        hidden = masked.token_ids[masked.target_positions] == MASK
        # Tokens that share a fate make a share deviate more: by the root of their number at most.
        most_together = 1 if fate == "piece" else 30
        tolerance = 5 * np.sqrt(0.16 * most_together / len(hidden))
        assert hidden.mean() == pytest.approx(0.8, abs=tolerance)
        of_word = words[masked.target_positions]
        share = np.bincount(of_word, weights=hidden)[np.unique(of_word)] / np.unique(of_word, return_counts=True)[1]
        assert (set(share.tolist()) == {0.0, 1.0}) == (fate == "unit")


@pytest.mark.parametrize(("fate", "least", "most"), [("piece", 0.02, 0.12), ("unit", 0.4, 0.9)])
def test_a_run_of_words_shares_its_fate(fate: str, least: float, most: float) -> None:
    tokens, eligible, starts = _sequences([12] * 400)
    config = MaskingConfig.parse(
        {"unit": "span", "span_stop": 0.01, "mask_rate": 0.5, "fate": fate, "mask_token_share": 0.5}, where="a test"
    )
    masked = _masked(tokens, eligible, starts, config, continues=np.zeros(len(tokens), bool))
    hidden = (masked.token_ids[masked.target_positions] == MASK).reshape(400, 5)
    # One by one, five tokens are all hidden or all seen in 2 of 32 sequences; half of the budgets are a single run.
    assert least < (hidden.all(axis=1) | ~hidden.any(axis=1)).mean() < most
    assert hidden.mean() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(400))


def test_masks_of_a_sequence_with_a_stream_of_its_own_do_not_depend_on_its_neighbours() -> None:
    tokens, eligible, starts = _sequences([40, 25, 31])
    continues = _word_pieces(len(tokens))
    for unit in ("token", "whole_word", "ngram", "span"):
        config = MaskingConfig.parse({"unit": unit, "fate": "unit"}, where="a test")

        def masked(numbers: list[int], config: MaskingConfig = config) -> list[np.ndarray]:
            parts = [slice(starts[number], starts[number + 1]) for number in numbers]
            bounds = np.cumsum([0, *[part.stop - part.start for part in parts]])
            found = mask_tokens(
                np.concatenate([tokens[part] for part in parts]),
                np.concatenate([eligible[part] for part in parts]),
                bounds,
                mask_id=MASK,
                random_ids=RANDOM_IDS,
                config=config,
                stream=[random_stream(0, "masks", number) for number in numbers],
                continues=np.concatenate([continues[part] for part in parts]),
            )
            return np.split(found.token_ids, bounds[1:-1])

        together, alone = masked([0, 1, 2]), [masked([number])[0] for number in range(3)]
        assert all(np.array_equal(first, second) for first, second in zip(together, alone, strict=True))
        assert np.array_equal(masked([2, 0])[0], together[2])


def test_words_must_be_told_where_they_are_needed() -> None:
    tokens, eligible, starts = _sequences([12])
    with pytest.raises(ValueError, match="where words begin"):
        _masked(tokens, eligible, starts, MaskingConfig(unit="whole_word"))


def test_the_rate_goes_in_a_straight_line_from_the_first_step_to_the_last() -> None:
    config = MaskingConfig(mask_rate=0.3, final_mask_rate=0.15)
    assert config.at(0, 101).mask_rate == 0.3
    assert config.at(50, 101).mask_rate == pytest.approx(0.225)
    assert config.at(100, 101).mask_rate == pytest.approx(0.15)
    assert config.at(0, 1).mask_rate == 0.3
    assert MaskingConfig(mask_rate=0.3).at(50, None) == MaskingConfig(mask_rate=0.3)
    with pytest.raises(ValueError, match="the run's steps"):
        config.at(0, None)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"unit": "ngram", "selection": "bernoulli"}, "selection must be exact"),
        ({"unit": "span", "selection": "bernoulli"}, "selection must be exact"),
        ({"duplicates": 10, "final_mask_rate": 0.1}, "fixed masks have a fixed rate"),
        ({"max_ngram": 2}, "max_ngram must be given with unit ngram"),
        ({"unit": "ngram", "span_stop": 0.5}, "span_stop must be given with unit span"),
        ({"unit": "ngram", "max_span_words": 5}, "max_span_words must be given with unit span"),
        ({"unit": "word"}, "unit"),
        ({"duplicates": 0}, "duplicates"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(values: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        MaskingConfig.parse(values, where="the options")


@pytest.mark.parametrize("name", ["mask_rate", "final_mask_rate", "mask_token_share", "random_token_share"])
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
