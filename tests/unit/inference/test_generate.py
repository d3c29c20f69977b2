"""Writing on from a prompt."""

import numpy as np
import pytest
import torch

from bertsmith.foundation.errors import InputError
from bertsmith.inference.generate import generate
from bertsmith.model import Model, PackedTokens
from made_corpora import made_tokenizer
from made_language_models import MADE, made_gpt

PROMPT = "The old sailor walked"


def _logits(model: Model, ids: list[int]) -> torch.Tensor:
    array = np.array(ids)
    packed = PackedTokens.build(array, np.zeros_like(array), np.array([0, len(array)]))
    assert model.masked_language_model is not None
    with torch.no_grad():
        return model.masked_language_model(model.head_input(packed))[-1]


def _without_specials(logits: torch.Tensor) -> torch.Tensor:
    tokenizer = made_tokenizer()
    assert tokenizer.sep_id is not None
    logits[sorted(tokenizer.special_ids - {tokenizer.sep_id})] = -torch.inf
    return logits


def _never_ending(model: Model) -> Model:
    """The same model, with a separator that is never likely."""
    assert model.masked_language_model is not None
    with torch.no_grad():
        model.masked_language_model.bias[made_tokenizer().sep_id] = -1e4
    return model


def test_greedy_takes_the_likeliest_token_each_time() -> None:
    model, tokenizer = _never_ending(made_gpt()), made_tokenizer()
    found = generate(model, tokenizer, PROMPT, max_new_tokens=6, temperature=0.0)
    ids = tokenizer.encode(PROMPT).token_ids[:-1].tolist()
    for written in found.token_ids:
        assert written == int(_without_specials(_logits(model, ids)).argmax())
        ids.append(written)
    assert len(found.token_ids) == 6
    assert not found.ended
    assert found.text == tokenizer.decode(ids).strip()
    assert found.continuation == tokenizer.decode(found.token_ids)


def test_the_seed_decides_and_one_candidate_is_greedy() -> None:
    model, tokenizer = _never_ending(made_gpt()), made_tokenizer()

    def write(**settings: object) -> tuple[int, ...]:
        return generate(model, tokenizer, PROMPT, max_new_tokens=12, **settings).token_ids

    assert write(seed=3) == write(seed=3)
    assert len({write(seed=number) for number in range(4)}) == 4
    assert write(top_k=1, seed=5) == write(temperature=0.0) == write(temperature=1e-4, seed=9)


def test_draws_follow_the_model() -> None:
    model, tokenizer = made_gpt(), made_tokenizer()
    logits = _without_specials(_logits(model, tokenizer.encode(PROMPT).token_ids[:-1].tolist()))
    best = logits.topk(3)
    expected = (best.values / 1.5).softmax(0).numpy()
    drawn = [
        generate(model, tokenizer, PROMPT, max_new_tokens=1, temperature=1.5, top_k=3, seed=seed) for seed in range(150)
    ]
    ids = [tokenizer.sep_id if found.ended else found.token_ids[0] for found in drawn]
    assert set(ids) == set(best.indices.tolist())
    shares = [ids.count(number) / len(ids) for number in best.indices.tolist()]
    np.testing.assert_allclose(shares, expected, atol=0.13)


def test_no_special_token_is_ever_written() -> None:
    model, tokenizer = _never_ending(made_gpt()), made_tokenizer()
    assert model.masked_language_model is not None
    special = sorted(tokenizer.special_ids - {tokenizer.sep_id})
    with torch.no_grad():
        model.masked_language_model.bias[special] = 1e4
    found = generate(model, tokenizer, PROMPT, max_new_tokens=20)
    assert len(found.token_ids) == 20
    assert not set(found.token_ids) & tokenizer.special_ids


def test_a_separator_ends_the_text() -> None:
    model = made_gpt()
    assert model.masked_language_model is not None
    with torch.no_grad():
        model.masked_language_model.bias[made_tokenizer().sep_id] = 1e4
    found = generate(model, made_tokenizer(), PROMPT)
    assert found.ended
    assert found.token_ids == ()
    assert found.continuation == ""


def test_a_text_longer_than_the_model_goes_on_through_its_window() -> None:
    model, tokenizer = _never_ending(made_gpt()), made_tokenizer()
    positions = model.config.encoder.num_positions
    found = generate(model, tokenizer, PROMPT, max_new_tokens=2 * positions, temperature=0.0)
    assert len(found.token_ids) == 2 * positions
    ids = [*tokenizer.encode(PROMPT).token_ids[:-1].tolist(), *found.token_ids]
    window = [ids[0], *ids[-positions:-1]]
    assert len(window) == positions
    assert found.token_ids[-1] == int(_without_specials(_logits(model, window)).argmax())


def test_an_empty_prompt_begins_a_text() -> None:
    assert generate(_never_ending(made_gpt()), made_tokenizer(), "", max_new_tokens=3).token_ids


def test_the_model_keeps_its_mode() -> None:
    model = made_gpt().train()
    generate(model, made_tokenizer(), PROMPT, max_new_tokens=1)
    assert model.training


@pytest.mark.parametrize("kind", ["bert", "elmo"])
def test_a_model_that_is_not_causal_is_refused(kind: str) -> None:
    with pytest.raises(InputError, match="causal language model"):
        generate(MADE[kind](), made_tokenizer(), PROMPT)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_k": 0}, "top_k"),
    ],
)
def test_arguments_outside_their_rules_are_refused(settings: dict[str, float], told: str) -> None:
    with pytest.raises(InputError, match=told):
        generate(made_gpt(), made_tokenizer(), PROMPT, **settings)
