"""What holds for any text, any rate and any stream."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.examples.masking import MaskingConfig, TargetedTokens, mask_tokens
from bertsmith.foundation.random_streams import random_stream

MASK, FIRST_TEXT_ID, VOCABULARY = 3, 4, 40
_settings = st.sampled_from(
    [
        {"selection": "exact"},
        {"selection": "bernoulli"},
        {"unit": "whole_word"},
        {"unit": "whole_word", "selection": "bernoulli", "fate": "unit"},
        {"unit": "ngram", "fate": "unit"},
        {"unit": "ngram", "max_ngram": 1},
        {"unit": "span"},
        {"unit": "span", "span_stop": 0.05, "fate": "unit"},
    ]
)
_configs = st.builds(
    lambda rate, shares, values: MaskingConfig.parse(
        {"mask_rate": rate, "mask_token_share": shares[0], "random_token_share": shares[1] - shares[0], **values},
        where="a test",
    ),
    st.floats(0, 1),
    st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted),
    _settings,
)
_sequences = st.lists(st.lists(st.booleans(), min_size=1, max_size=12), min_size=1, max_size=8)


def _continues(count: int) -> np.ndarray:
    """Whether each token goes on with a word: the same for the same place in a batch."""
    return random_stream(0, "pieces").random(200)[:count] < 0.4


def _words(eligible: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The number of each token's word, token by token."""
    words: list[int] = []
    for place, goes_on in enumerate(_continues(len(eligible))):
        new = place in starts or not (goes_on and eligible[place] and eligible[place - 1])
        words.append((words[-1] if words else 0) + new)
    return np.array(words, np.int64)


def _mask(
    eligible: np.ndarray, starts: np.ndarray, config: MaskingConfig, seed: int
) -> tuple[np.ndarray, TargetedTokens]:
    tokens = np.where(eligible, FIRST_TEXT_ID + np.arange(len(eligible)) % (VOCABULARY - FIRST_TEXT_ID), 1)
    before = tokens.copy()
    tokens.flags.writeable = False
    masked = mask_tokens(
        tokens,
        eligible,
        starts,
        mask_id=MASK,
        random_ids=np.arange(FIRST_TEXT_ID, VOCABULARY),
        config=config,
        stream=random_stream(seed, "masks"),
        continues=_continues(len(tokens)),
    )
    assert np.array_equal(tokens, before)
    return tokens, masked


@given(_sequences, _configs, st.integers(0, 2**63))
def test_targets_are_true_tokens_at_ascending_eligible_places(
    sequences: list[list[bool]], config: MaskingConfig, seed: int
) -> None:
    eligible = np.array([flag for sequence in sequences for flag in sequence])
    starts = np.concatenate([[0], np.cumsum([len(sequence) for sequence in sequences])])
    tokens, masked = _mask(eligible, starts, config, seed)
    positions = masked.target_positions
    assert (np.diff(positions) > 0).all()
    assert eligible[positions].all()
    assert np.array_equal(masked.target_ids, tokens[positions])
    untouched = np.ones(len(tokens), bool)
    untouched[positions] = False
    assert np.array_equal(masked.token_ids[untouched], tokens[untouched])
    selected = ~untouched
    if config.unit != "token":
        words = _words(eligible, starts)
        assert set(np.unique(words[selected])).isdisjoint(np.unique(words[untouched]))
    longest = 1 if config.unit == "token" else int(np.bincount(_words(eligible, starts)).max())
    for sequence, first, end in zip(sequences, starts[:-1], starts[1:], strict=True):
        chosen = selected[first:end].sum()
        assert min(1, sum(sequence)) <= chosen <= sum(sequence)
        if config.selection == "exact":
            wanted = config.mask_rate * sum(sequence)
            assert chosen <= max(longest, np.floor(wanted) + 1)
            # What is left of a budget is smaller than a word.
            assert chosen > np.floor(wanted - 1e-9) - longest


@given(_sequences, _configs, st.integers(0, 2**63))
def test_masks_are_a_function_of_the_stream(sequences: list[list[bool]], config: MaskingConfig, seed: int) -> None:
    eligible = np.array([flag for sequence in sequences for flag in sequence])
    starts = np.concatenate([[0], np.cumsum([len(sequence) for sequence in sequences])])
    (_, first), (_, second) = (_mask(eligible, starts, config, seed) for _ in range(2))
    assert np.array_equal(first.token_ids, second.token_ids)
    assert np.array_equal(first.target_positions, second.target_positions)


@given(st.integers(0, 2**63))
def test_another_stream_gives_other_masks(seed: int) -> None:
    eligible = np.ones(200, bool)
    starts = np.array([0, 100, 200])
    _, first = _mask(eligible, starts, MaskingConfig(), seed)
    _, second = _mask(eligible, starts, MaskingConfig(), seed + 1)
    assert not np.array_equal(first.token_ids, second.token_ids)
