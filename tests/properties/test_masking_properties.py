"""What holds for any text, any rate and any stream."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.examples.masking import MaskedTokens, MaskingConfig, mask_tokens
from bertsmith.foundation.random_streams import random_stream

MASK, FIRST_TEXT_ID, VOCABULARY = 3, 4, 40
_configs = st.builds(
    lambda rate, shares, selection: MaskingConfig(
        mask_rate=rate, mask_token_share=shares[0], random_token_share=shares[1] - shares[0], selection=selection
    ),
    st.floats(0, 1),
    st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted),
    st.sampled_from(["exact", "bernoulli"]),
)
_sequences = st.lists(st.lists(st.booleans(), min_size=1, max_size=12), min_size=1, max_size=8)


def _mask(
    eligible: np.ndarray, starts: np.ndarray, config: MaskingConfig, seed: int
) -> tuple[np.ndarray, MaskedTokens]:
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
    for sequence, first, end in zip(sequences, starts[:-1], starts[1:], strict=True):
        chosen = ((positions >= first) & (positions < end)).sum()
        assert min(1, sum(sequence)) <= chosen <= sum(sequence)
        if config.selection == "exact":
            wanted = config.mask_rate * sum(sequence)
            assert chosen <= max(1, np.floor(wanted) + 1)
            assert chosen >= np.floor(wanted - 1e-9)


@given(_sequences, _configs, st.integers(0, 2**63))
def test_masks_are_a_function_of_the_stream(sequences: list[list[bool]], config: MaskingConfig, seed: int) -> None:
    eligible = np.array([flag for sequence in sequences for flag in sequence])
    starts = np.concatenate([[0], np.cumsum([len(sequence) for sequence in sequences])])
    (_, first), (_, second) = (_mask(eligible, starts, config, seed) for _ in range(2))
    assert np.array_equal(first.token_ids, second.token_ids)
    assert np.array_equal(first.target_positions, second.target_positions)


@given(st.integers(0, 2**63))
def test_another_stream_gives_other_masks(seed: int) -> None:
    eligible = np.ones(400, bool)
    starts = np.array([0, 200, 400])
    _, first = _mask(eligible, starts, MaskingConfig(), seed)
    _, second = _mask(eligible, starts, MaskingConfig(), seed + 1)
    assert not np.array_equal(first.token_ids, second.token_ids)
