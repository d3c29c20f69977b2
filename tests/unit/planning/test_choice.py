"""What is trained in a given time."""

from dataclasses import replace

import pytest

from bertsmith.engine.rates import MachineRates
from bertsmith.model import preset
from bertsmith.planning.choice import SIZES, Asked, choose, step_seconds, text_vocab_size, validation_tokens

RATES = MachineRates(900e9, 900e9, 14e9)
ASKED = Asked(
    seconds=54.0,
    text_bytes=12_000_000,
    vocab_size=None,
    batch_tokens=None,
    max_length=128,
    validations=10,
    mask_rate=0.3,
)


def test_sizes_grow() -> None:
    weights = [size.weights for size in SIZES]
    assert weights == sorted(weights)
    assert all(size.hidden % 64 == 0 for size in SIZES)


@pytest.mark.parametrize("size", SIZES[:4])
def test_weights_are_those_of_the_layers(size: object) -> None:
    known = next(known for known in SIZES if known == size)
    encoder = preset("modern-toy", vocab_size=1, **known.settings)
    hidden = encoder.hidden_size
    assert known.weights == encoder.num_hidden_layers * (4 * hidden**2 + 3 * hidden * encoder.intermediate_size)


def test_more_time_makes_a_larger_model_that_sees_more() -> None:
    choices = [choose(replace(ASKED, seconds=54.0 * minutes), RATES) for minutes in (1, 4, 15, 60, 600)]
    weights = [choice.size.weights for choice in choices]
    tokens = [choice.steps * choice.batch_tokens for choice in choices]
    assert weights == sorted(weights)
    assert len(set(weights)) == len(weights)
    assert tokens == sorted(tokens)


def test_a_faster_machine_makes_a_larger_model() -> None:
    fast = MachineRates(400e12, 400e12, 3e12)
    assert choose(ASKED, fast).size.weights > 8 * choose(ASKED, RATES).size.weights


def test_steps_fill_the_time() -> None:
    found = choose(ASKED, RATES)
    taken = found.steps * step_seconds(found.size, found.vocab_size, found.batch_tokens, ASKED, RATES)
    assert 0.97 * ASKED.seconds < taken <= ASKED.seconds
    assert found.steps * found.batch_tokens / found.tokens_per_second == pytest.approx(taken)


def test_what_was_asked_for_stays() -> None:
    found = choose(replace(ASKED, vocab_size=64_000, batch_tokens=1024), RATES)
    assert (found.vocab_size, found.batch_tokens) == (64_000, 1024)


def test_few_steps_have_small_batches_and_many_large_ones() -> None:
    slow = MachineRates(20e9, 20e9, 14e9)
    assert (
        choose(replace(ASKED, seconds=20.0), slow).batch_tokens
        < choose(replace(ASKED, seconds=86400.0), slow).batch_tokens
    )


def test_a_batch_holds_two_of_the_longest_sequences() -> None:
    assert choose(replace(ASKED, max_length=4096), RATES).batch_tokens == 8192


def test_validations_take_a_twentieth_of_the_time_or_so() -> None:
    found = choose(ASKED, RATES)
    taken = 10 * found.validation_tokens / (3 * found.tokens_per_second)
    assert taken == pytest.approx(2.7, rel=0.01)
    assert choose(replace(ASKED, seconds=1.0), RATES).validation_tokens == 10_000


@pytest.mark.parametrize(("tokens", "shown"), [(1e4, 10_000), (1e6, 15_000), (1e9, 200_000)])
def test_a_validation_of_a_longer_run_sees_more(tokens: float, shown: int) -> None:
    assert validation_tokens(tokens, validations=10) == shown


@pytest.mark.parametrize(("size", "pieces"), [(0, 384), (1_000_000, 1984), (10**9, 32_000)])
def test_a_text_fills_a_piece_for_every_500_bytes(size: int, pieces: int) -> None:
    assert text_vocab_size(size) == pieces
