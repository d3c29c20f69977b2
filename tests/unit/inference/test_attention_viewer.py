"""Who looks at whom in a text or a pair."""

import json

import numpy as np
import pytest
import torch

from bertsmith.engine.device import Device
from bertsmith.foundation.errors import InputError
from bertsmith.inference.attention import AttentionMap, AttentionViewer
from bertsmith.model import PackedTokens
from bertsmith.model.recording import attention_weights, recording_twin
from made_corpora import made_model, made_tokenizer
from made_language_models import made_elmo, made_gpt
from made_tasks import made_classifier

CPU = Device("cpu", "fp32")
MODEL = made_model(made_tokenizer().vocab_size, pairs=True, spread=0.3)
VIEWER = AttentionViewer(MODEL, made_tokenizer(), CPU)
TEXT, PAIR = "The old sailor waited.", "Quiet snow and rain"


@pytest.fixture(scope="module")
def found() -> AttentionMap:
    return VIEWER(TEXT, PAIR)


def _rows_sum_to_one(found: AttentionMap) -> bool:
    return bool(np.abs(found.weights.sum(-1) - 1.0).max() <= 1e-6)


def test_tokens_tell_where_they_come_from(found: AttentionMap) -> None:
    length = len(found.tokens)
    assert found.offsets.shape == (length, 2)
    assert found.words.shape == found.sequences.shape == (length,)
    assert [token for token, text in zip(found.tokens, found.sequences, strict=True) if text < 0] == [
        "[CLS]",
        "[SEP]",
        "[SEP]",
    ]
    for token, (start, end), word, text in zip(found.tokens, found.offsets, found.words, found.sequences, strict=True):
        if text < 0:
            assert (start, end, word) == (0, 0, -1)
        else:
            assert (TEXT, PAIR)[text][start:end].lower() == token.removeprefix("##").lower()
    assert found.words[found.sequences == 1].max() + 1 == len(PAIR.split())
    assert not found.cut


def test_the_border_is_the_first_token_of_the_second_text(found: AttentionMap) -> None:
    assert found.border == found.tokens.index("[SEP]") + 1
    assert found.sequences[found.border] == 1
    assert VIEWER(TEXT).border is None


def test_weights_are_those_of_the_pair_as_the_model_is_given_it(found: AttentionMap) -> None:
    encoding = made_tokenizer().encode(TEXT, PAIR)
    batch = PackedTokens.build(encoding.token_ids, encoding.segment_ids, np.array([0, len(encoding)]))
    expected = attention_weights(recording_twin(MODEL.encoder), batch).numpy()
    np.testing.assert_array_equal(found.weights, expected)
    assert found.weights.shape == (2, 2, len(found.tokens), len(found.tokens))
    assert found.weights.dtype == np.float32
    assert _rows_sum_to_one(found)
    joined = VIEWER(f"{TEXT} {PAIR}")
    assert joined.weights.shape != found.weights.shape


def test_a_model_as_it_is_opened_gives_weights_and_stays_as_it_is() -> None:
    model = made_model(made_tokenizer().vocab_size, dropout=0.5).train()
    viewer = AttentionViewer(model, made_tokenizer(), CPU)
    first, second = viewer(TEXT), viewer(TEXT)
    np.testing.assert_array_equal(first.weights, second.weights)
    assert _rows_sum_to_one(first)
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_weights_are_fp32_where_products_elsewhere_are_not() -> None:
    low = AttentionViewer(MODEL, made_tokenizer(), Device("cpu", "bf16"))(TEXT)
    np.testing.assert_array_equal(low.weights, VIEWER(TEXT).weights)


@pytest.mark.parametrize("model", [made_classifier(("a", "b")), made_gpt()], ids=["classifier", "gpt"])
def test_a_model_with_any_head_can_be_looked_at(model: torch.nn.Module) -> None:
    found = AttentionViewer(model, made_tokenizer(), CPU)(TEXT)  # pyright: ignore[reportArgumentType]
    assert _rows_sum_to_one(found)


def test_a_mask_is_the_mask() -> None:
    for algorithm in ("wordpiece", "bpe"):
        tokenizer = made_tokenizer(algorithm)
        found = AttentionViewer(made_model(tokenizer.vocab_size), tokenizer, CPU)("The [MASK] waited.")
        assert found.tokens.count(tokenizer.mask_token or "") == 1
        start, end = found.offsets[found.tokens.index(tokenizer.mask_token or "")]
        assert found.text[start:end] == tokenizer.mask_token


def test_a_long_text_is_cut_to_what_the_model_takes_or_to_what_is_asked_for() -> None:
    text = "The old river carried every small boat. " * 20
    for viewer, length in ((VIEWER, 64), (AttentionViewer(MODEL, made_tokenizer(), CPU, max_tokens=9), 9)):
        found = viewer(text)
        assert found.cut
        assert len(found.tokens) == length
        assert found.weights.shape[-2:] == (length, length)
        assert (found.tokens[0], found.tokens[-1]) == ("[CLS]", "[SEP]")
        assert _rows_sum_to_one(found)


def test_plain_values_hold_all_heads_or_those_asked_for(found: AttentionMap) -> None:
    everything = found.values()
    assert json.loads(json.dumps(everything)) == everything
    assert (everything["text"], everything["pair"]) == (TEXT, PAIR)
    assert everything["tokens"] == list(found.tokens)
    assert (everything["layers"], everything["heads"]) == ([0, 1], [0, 1])
    np.testing.assert_allclose(np.array(everything["weights"]), found.weights, atol=1e-7)
    layer = found.values(layer=1)
    assert (layer["layers"], layer["heads"]) == ([1], [0, 1])
    assert layer["weights"] == everything["weights"][1:]
    one = found.values(layer=0, head=1)
    assert one["weights"] == [[everything["weights"][0][1]]]
    assert "pair" not in VIEWER(TEXT).values()


@pytest.mark.parametrize(
    ("layer", "head", "told"),
    [
        (2, None, r"--layer must lie in \[0, 1\].*Received: 2"),
        (-1, None, "--layer .*Received: -1"),
        (0, 2, r"--head must lie in \[0, 1\].*Received: 2"),
        (1, -1, "--head .*Received: -1"),
        (None, 1, "--head needs --layer"),
    ],
)
def test_numbers_that_the_model_does_not_have_are_refused(
    found: AttentionMap, layer: int | None, head: int | None, told: str
) -> None:
    with pytest.raises(InputError, match=told):
        found.values(layer=layer, head=head)


@pytest.mark.parametrize(("text", "pair"), [("", None), (" \n", None), ("A text.", " ")])
def test_a_blank_text_is_refused(text: str, pair: str | None) -> None:
    with pytest.raises(InputError, match="must not be blank"):
        VIEWER(text, pair)


def test_an_elmo_is_refused() -> None:
    with pytest.raises(InputError, match="an ELMo, which reads by LSTMs and has none"):
        AttentionViewer(made_elmo(), made_tokenizer(), CPU)
