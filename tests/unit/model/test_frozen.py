"""Models for inference alone: near the model that they were made of, and apart from it."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from small_models import KINDS, LENGTHS, packed, padded, sequences, small_model
from torch import Tensor

from bertsmith.kernels.encoding import WordPrecision, encodes
from bertsmith.model import HeadsConfig, Model, PackedTokens
from bertsmith.model import frozen as module
from bertsmith.model.frozen import FrozenEncoder, frozen
from bertsmith.model.int8 import Int8Linear
from bertsmith.model.recording import recording_twin

NEAR: dict[WordPrecision, float] = {"fp32": 2e-6, "bf16": 2e-2, "int8": 5e-2}
"""Relative error that a precision leaves after two layers of random weights."""
PRECISIONS = list(NEAR)
SIZES: list[dict[str, Any]] = [
    {"hidden_size": 24, "num_attention_heads": 4, "intermediate_size": 24},
    {"hidden_size": 40, "num_attention_heads": 2, "intermediate_size": 100},
    {"hidden_size": 312, "num_attention_heads": 12, "intermediate_size": 600},
]


@pytest.fixture(params=["kernels", "torch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By the kernels, where the processor has what they need, or by torch alone."""
    if request.param == "torch":
        monkeypatch.setattr(module, "encodes", lambda precision: False)
    elif not any(encodes(precision) for precision in PRECISIONS):
        pytest.skip("this processor has nothing that the kernels for inference need")
    return request.param


def tokens(lengths: list[int] = LENGTHS) -> PackedTokens:
    return packed(sequences(lengths))


def encoded(model: Model, batch: PackedTokens) -> Tensor:
    with torch.inference_mode():
        return model.encoder.packed(batch)


def relative_error(given: Tensor, exact: Tensor) -> float:
    return float((given.double() - exact).norm() / exact.norm())


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_family_is_near_itself_in_float64(kind: str, precision: WordPrecision) -> None:
    batch = tokens()
    for sizes in SIZES:
        model = small_model(**KINDS[kind] | sizes | {"initializer_range": sizes["hidden_size"] ** -0.5}).eval()
        exact = encoded(copy.deepcopy(model).double(), batch)
        made = frozen(model, precision)
        assert made.precision == made.encoder.precision == precision
        given = encoded(made, batch)
        assert given.dtype == torch.float32
        assert relative_error(given, exact) < NEAR[precision]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", ["bert", "albert", "modern"])
def test_a_text_is_the_same_whatever_its_neighbours_and_their_order(kind: str) -> None:
    rows = sequences(LENGTHS)
    for precision in PRECISIONS:
        made = frozen(small_model(**KINDS[kind]), precision)
        ends = np.cumsum(LENGTHS)
        together = np.split(encoded(made, packed(rows)).numpy(), ends[:-1])
        backwards = np.split(encoded(made, packed(rows[::-1])).numpy(), np.cumsum(LENGTHS[::-1])[:-1])[::-1]
        filled = encoded(made, packed(rows, multiple=64))[: ends[-1]].numpy()
        for row, one, other in zip(rows, together, backwards, strict=True):
            np.testing.assert_allclose(other, one, rtol=0, atol=1e-5)
            np.testing.assert_allclose(encoded(made, packed([row])).numpy(), one, rtol=0, atol=1e-5)
        np.testing.assert_allclose(filled, np.concatenate(together), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_in_fp32_it_gives_what_torch_gives_at_every_length(kind: str) -> None:
    if not encodes("fp32"):
        pytest.skip("this processor has no vectors as wide as the kernels want them")
    sizes = SIZES[1] | {"initializer_range": 40**-0.5, "max_position_embeddings": 202}
    model = small_model(**KINDS[kind] | sizes).eval()
    made = frozen(model, "fp32")
    assert isinstance(made.encoder, FrozenEncoder)
    # More sequences than the threads share, and so few that they share each.
    for lengths in (list(range(1, 201)), [200], [5, 40]):
        batch = tokens(lengths)
        torch.testing.assert_close(encoded(made, batch), encoded(model, batch), rtol=0, atol=5e-6)


def test_eight_bits_by_torch_are_as_near_as_by_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    if not encodes("int8"):
        pytest.skip("this processor does not multiply numbers of 8 bits")
    model, batch = small_model(**SIZES[2] | {"initializer_range": 312**-0.5}), tokens()
    exact = encoded(copy.deepcopy(model).double(), batch)
    by_kernels = frozen(model, "int8")
    monkeypatch.setattr(module, "encodes", lambda precision: False)
    by_torch = frozen(model, "int8")
    assert isinstance(by_kernels.encoder, FrozenEncoder)
    assert not isinstance(by_torch.encoder, FrozenEncoder)
    errors = [relative_error(encoded(made, batch), exact) for made in (by_kernels, by_torch)]
    assert 0.8 < errors[0] / errors[1] < 1.25
    assert relative_error(encoded(by_torch, batch), encoded(by_kernels, batch).double()) < errors[1] * 1.5


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_training_goes_on_beside_it_and_a_new_one_knows(precision: WordPrecision) -> None:
    model, batch = small_model(hidden_size=32, num_attention_heads=1), tokens()
    made = frozen(model, precision)
    before = encoded(made, batch)
    # The fused update leaves no trace on a weight's version.
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, fused=True)
    model.encoder.packed(batch).pow(2).sum().backward()
    optimizer.step()
    assert torch.equal(encoded(made, batch), before)
    changed = encoded(frozen(model, precision), batch)
    assert not torch.allclose(changed, before, atol=0.1)
    assert relative_error(changed, encoded(model.eval(), batch).double()) < NEAR[precision]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", ["bert", "modern"])
def test_layers_and_heads_read_it(kind: str, precision: WordPrecision) -> None:
    heads = HeadsConfig(task="tag", labels=("a", "b", "c"), mlm_head_input="all_layers", tie_embeddings=False)
    model = small_model(heads=heads, **KINDS[kind], hidden_size=32, num_attention_heads=2).eval()
    made, batch = frozen(model, precision), tokens()
    assert not made.training
    assert not any(weight.requires_grad for weight in made.parameters())
    hidden = encoded(made, batch)
    with torch.inference_mode():
        outputs = list(made.encoder.layer_outputs(batch))
        assert len(outputs) == 2
        assert torch.equal(outputs[-1], hidden)
        assert torch.equal(made.head_input(batch), torch.cat(outputs, -1))
        assert made.tag(hidden).shape == (batch.num_tokens, 3)
        for output, exact in zip(outputs, model.encoder.layer_outputs(batch), strict=True):
            assert relative_error(output, exact.double()) < NEAR[precision]
        token_ids, mask, segment_ids = padded(sequences(LENGTHS))
        assert torch.equal(made.encoder(token_ids, mask, segment_ids)[mask.bool()], hidden)


@pytest.mark.usefixtures("way")
def test_what_is_tied_stays_tied_and_no_memory_is_shared() -> None:
    model = small_model()
    made = frozen(model, "int8")
    assert made.masked_language_model is not None
    assert made.masked_language_model.projection is made.token_embedding.weight
    assert made.encoder.embeddings.token is made.token_embedding  # pyright: ignore[reportAttributeAccessIssue]
    theirs = {weight.data_ptr() for weight in model.parameters()}
    assert not any(weight.data_ptr() in theirs for weight in made.parameters())


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_precision_of_the_device_changes_nothing_of_eight_bits_but_attention(precision: WordPrecision) -> None:
    """And nothing at all that the kernels do in fp32; torch does that as the device has it."""
    model, batch = small_model(hidden_size=32, num_attention_heads=1), tokens()
    made = frozen(model, precision)
    exact = encoded(copy.deepcopy(model).double(), batch)
    near = NEAR["bf16" if precision == "fp32" and not isinstance(made.encoder, FrozenEncoder) else precision]
    with torch.autocast("cpu", torch.bfloat16):
        assert relative_error(encoded(made, batch), exact) < near


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_nothing_gives_nothing_and_one_token_gives_one(precision: WordPrecision) -> None:
    made = frozen(small_model(), precision)
    none = np.empty(0, np.int64)
    assert encoded(made, PackedTokens.build(none, none, np.zeros(1, np.int64))).shape == (0, 16)
    assert encoded(made, tokens([1])).shape == (1, 16)


@pytest.mark.usefixtures("way")
def test_a_token_that_the_table_does_not_have_is_an_error_and_no_memory_is_read() -> None:
    made = frozen(small_model(), "int8")
    for ids in ([3, 50], [3, -1]):
        with pytest.raises(IndexError):
            encoded(made, PackedTokens.build(np.array(ids), np.zeros(2, np.int64), np.array([0, 2])))
    with pytest.raises(IndexError):
        encoded(made, PackedTokens.build(np.zeros(2, np.int64), np.array([0, 2]), np.array([0, 2])))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_it_is_not_saved_and_shows_no_attention(precision: WordPrecision) -> None:
    made = frozen(small_model(), precision)
    with pytest.raises(ValueError, match="Save the model that it was made of"):
        made.state_dict()
    with pytest.raises(ValueError, match=f"frozen in {precision}"):
        recording_twin(made.encoder)
    with pytest.raises(ValueError, match="Only a transformer encoder that is not frozen"):
        frozen(made, precision)


def test_tokens_elsewhere_than_on_the_cpu_are_refused() -> None:
    made = frozen(small_model(), "int8")
    if not isinstance(made.encoder, FrozenEncoder):
        pytest.skip("this processor has nothing that the kernels for inference need")
    with pytest.raises(ValueError, match="Received: tokens on meta"):
        made.encoder.packed(tokens().to("meta"))


def test_an_lstm_is_not_frozen() -> None:
    heads = HeadsConfig(mlm_head="linear")
    model = small_model(heads=heads, family="elmo", embedding_size=8, type_vocab_size=0)
    with pytest.raises(ValueError, match="Received: one of family elmo"):
        frozen(model, "int8")


def test_a_layer_of_eight_bits_is_near_the_one_that_it_was_made_of() -> None:
    generator = torch.Generator().manual_seed(0)
    layer = torch.nn.Linear(70, 33)
    values = torch.randn(5, 3, 70, generator=generator)
    values[0, 0] = 0.0
    values[1, 1] = values[1, 1].abs()
    given, exact = Int8Linear(layer)(values), layer(values).detach()
    assert relative_error(given, exact.double()) < 1e-2
    torch.testing.assert_close(given[0, 0], exact[0, 0])
    assert given.dtype == torch.float32
