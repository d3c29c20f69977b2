"""Padding, neighbours and their order never change what a sequence gives; packed tokens are what they claim to be."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_models import LENGTHS, packed, padded, sequences, small_model
from torch import Tensor, nn
from torch.nn import functional

from bertsmith.kernels.residual_norm import Stream
from bertsmith.model import HeadsConfig, PackedTokens
from bertsmith.model.attention import _Rearrange

KINDS = ["fused", "recording"]
PRECISIONS = pytest.mark.parametrize(
    ("dtype", "weights", "tolerance"), [(torch.float32, 0.1, 1e-6), (torch.float64, 0.4, 1e-12)]
)


def outputs_alone(model: Any, rows: list[tuple[np.ndarray, np.ndarray]]) -> list[Tensor]:
    return [model.encoder.packed(packed([row])) for row in rows]


@pytest.mark.parametrize("attention", KINDS)
@PRECISIONS
@torch.no_grad()
def test_a_sequence_gives_the_same_alone_packed_and_padded(
    attention: str, dtype: torch.dtype, weights: float, tolerance: float
) -> None:
    model = small_model(attention=attention, initializer_range=weights).to(dtype)
    rows = sequences(LENGTHS)
    alone = outputs_alone(model, rows)
    together = model.encoder.packed(packed(rows)).split(LENGTHS)
    for width in (None, 51):
        view = model.encoder(*padded(rows, width=width))
        for number, expected in enumerate(alone):
            torch.testing.assert_close(together[number], expected, atol=tolerance, rtol=0)
            torch.testing.assert_close(view[number, : len(expected)], expected, atol=tolerance, rtol=0)
            assert not view[number, len(expected) :].any(), "padding gives zeros"


@pytest.mark.parametrize("attention", KINDS)
@PRECISIONS
@torch.no_grad()
def test_the_order_of_sequences_changes_nothing(
    attention: str, dtype: torch.dtype, weights: float, tolerance: float
) -> None:
    model = small_model(attention=attention, initializer_range=weights).to(dtype)
    rows = sequences(LENGTHS)
    expected = model.encoder.packed(packed(rows)).split(LENGTHS)
    order = np.random.default_rng(0).permutation(len(rows))
    shuffled = model.encoder.packed(packed([rows[number] for number in order]))
    for number, given in zip(order, shuffled.split([LENGTHS[number] for number in order]), strict=True):
        torch.testing.assert_close(given, expected[number], atol=tolerance, rtol=0)


@torch.no_grad()
def test_a_neighbour_changes_nothing_and_a_token_of_its_own_everything() -> None:
    model = small_model().double()
    rows = sequences(LENGTHS)
    before = model.encoder.packed(packed(rows)).split(LENGTHS)
    rows[2][0][5] = (rows[2][0][5] + 1) % 50
    after = model.encoder.packed(packed(rows)).split(LENGTHS)
    for number in range(len(rows)):
        change = (before[number] - after[number]).abs().amax(-1)
        assert (change > 1e-4).all() if number == 2 else (change < 1e-12).all()


@pytest.mark.parametrize("attention", KINDS)
@pytest.mark.parametrize("multiple", [2, 16, 128])
def test_filling_up_changes_neither_outputs_nor_gradients(attention: str, multiple: int) -> None:
    rows = sequences([5, 9, 3])
    expected_model, model = (small_model(attention=attention).double() for _ in range(2))
    expected = expected_model.encoder.packed(packed(rows))
    filled = packed(rows, multiple=multiple)
    assert len(filled.token_ids) % multiple == 0
    assert (filled.num_tokens, filled.num_sequences) == (17, 3)
    given = model.encoder.packed(filled)[: filled.num_tokens]
    torch.testing.assert_close(given, expected, atol=1e-12, rtol=0)
    loss_of(expected).backward()
    loss_of(given).backward()
    for twin, parameter in zip(expected_model.encoder.parameters(), model.encoder.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, twin.grad, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("attention", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@torch.no_grad()
def test_a_row_of_padding_gives_zeros_and_leaves_real_rows_unchanged(attention: str, dtype: torch.dtype) -> None:
    model = small_model(attention=attention).to(dtype)
    rows = sequences([9, 17, 1])
    token_ids, mask, segment_ids = padded(rows)
    expected = model.encoder(token_ids, mask, segment_ids)
    assert expected.dtype == dtype
    for place in (0, 1, 3):
        inputs = [torch.cat([x[:place], x[:1], x[place:]]) for x in (token_ids, mask, segment_ids)]
        inputs[1][place] = 0
        given = model.encoder(*inputs)
        assert torch.equal(given[place], torch.zeros_like(given[place]))
        assert torch.equal(torch.cat([given[:place], given[place + 1 :]]), expected)


@pytest.mark.parametrize("attention", KINDS)
@torch.no_grad()
def test_a_row_of_padding_is_harmless_under_autocast_too(attention: str) -> None:
    model = small_model(attention=attention)
    token_ids, mask, segment_ids = padded(sequences([9, 17, 1]))
    mask[1] = 0
    with torch.autocast("cpu", torch.bfloat16):
        given = model.encoder(token_ids, mask, segment_ids)
    assert torch.isfinite(given).all()
    assert not given[1].any()
    assert given[0, :9].any()


@torch.no_grad()
def test_a_batch_of_nothing_but_padding_gives_zeros() -> None:
    encoder = small_model().encoder
    given = encoder(torch.full((3, 5), 7), torch.zeros((3, 5), dtype=torch.long))
    assert torch.equal(given, torch.zeros(3, 5, 16))


@torch.no_grad()
def test_the_mask_may_be_of_integers_or_booleans_or_left_out() -> None:
    encoder = small_model().encoder
    token_ids, mask, segment_ids = padded(sequences([9, 4]))
    assert torch.equal(encoder(token_ids, mask, segment_ids), encoder(token_ids, mask.bool(), segment_ids))
    whole = torch.ones_like(mask)
    assert torch.equal(encoder(token_ids), encoder(token_ids, whole, torch.zeros_like(segment_ids)))


@torch.no_grad()
def test_sequences_of_one_token_work_alone_and_together() -> None:
    model = small_model().double()
    rows = sequences([1, 1, 1])
    together = model.encoder.packed(packed(rows))
    torch.testing.assert_close(together, torch.cat(outputs_alone(model, rows)), atol=1e-12, rtol=0)


@pytest.mark.parametrize("length", [16, 17])
@torch.no_grad()
def test_padding_that_a_group_adds_beyond_the_positions_of_the_model_is_harmless(length: int) -> None:
    model = small_model(max_position_embeddings=length).double()
    rows = sequences([length, 2])
    together = model.encoder.packed(packed(rows)).split([length, 2])
    for given, expected in zip(together, outputs_alone(model, rows), strict=True):
        torch.testing.assert_close(given, expected, atol=1e-12, rtol=0)


def loss_of(outputs: Tensor) -> Tensor:
    return (outputs * torch.linspace(-1, 1, outputs.shape[-1], dtype=outputs.dtype)).pow(2).sum()


@pytest.mark.parametrize("attention", KINDS)
def test_gradients_of_a_batch_are_the_sum_of_those_of_its_sequences(attention: str) -> None:
    rows = sequences(LENGTHS)
    model = small_model(attention=attention).double()
    loss_of(model.encoder.packed(packed(rows))).backward()
    together = {name: parameter.grad for name, parameter in model.encoder.named_parameters()}
    model.zero_grad(set_to_none=True)
    for row in rows:
        loss_of(model.encoder.packed(packed([row]))).backward()
    for name, parameter in model.encoder.named_parameters():
        torch.testing.assert_close(together[name], parameter.grad, atol=1e-9, rtol=1e-9, msg=name)


def test_padding_changes_no_gradient() -> None:
    token_ids, mask, segment_ids = padded(sequences(LENGTHS))
    gradients = []
    for padding in (7, 33):
        model = small_model().double()
        loss_of(model.encoder(token_ids.where(mask.bool(), padding), mask, segment_ids)).backward()
        gradients.append([parameter.grad for parameter in model.encoder.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))


class DenseEncoder(nn.Module):
    """The same encoder by the book, over one padded block and with plain indexing: nothing is packed."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, token_ids: Tensor, mask: Tensor, segment_ids: Tensor) -> Tensor:
        embeddings, config = self.encoder.embeddings, self.encoder.config
        positions = torch.arange(token_ids.shape[1])
        hidden = embeddings.token(token_ids) + embeddings.segment(segment_ids) + embeddings.position(positions)
        hidden = embeddings.norm(hidden)
        unseen = torch.zeros(mask.shape, dtype=hidden.dtype).masked_fill(mask == 0, -torch.inf)[:, None, None]
        for layer in self.encoder.layers:
            parts = layer.attention.query_key_value(hidden).chunk(3, -1)
            query, key, value = (part.unflatten(-1, (config.num_attention_heads, -1)) for part in parts)
            scores = torch.einsum("bqhd,bkhd->bhqk", query, key) / config.head_size**0.5 + unseen
            context = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), value).flatten(-2)
            hidden = layer.attention_norm(hidden + layer.attention.output(context))
            forward = layer.feed_forward
            hidden = layer.feed_forward_norm(hidden + forward.down(functional.gelu(forward.up(hidden))))
        return hidden


@pytest.mark.parametrize("attention", KINDS)
def test_packed_gradients_equal_those_of_a_dense_computation(attention: str) -> None:
    inputs = padded(sequences(LENGTHS))
    real = inputs[1].bool()
    model, twin = small_model(attention=attention).double(), small_model().double()
    given = model.encoder(*inputs)[real]
    expected = DenseEncoder(twin.encoder)(*inputs)[real]
    torch.testing.assert_close(given, expected, atol=1e-11, rtol=0)
    loss_of(given).backward()
    loss_of(expected).backward()
    for (name, parameter), other in zip(model.encoder.named_parameters(), twin.encoder.parameters(), strict=True):
        assert parameter.grad is not None
        assert parameter.grad.any(), name
        torch.testing.assert_close(parameter.grad, other.grad, atol=1e-9, rtol=1e-9, msg=name)


def test_rearranging_has_the_gradient_of_an_index() -> None:
    rows = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    # Rows 0 and 2 to 4 are taken, once each, in another order; and back among rows that stay untouched.
    chosen = torch.tensor([4, 0, 3, 2])
    assert torch.autograd.gradcheck(lambda x: _Rearrange.apply(x, chosen, torch.empty(0).long(), False), rows)
    order = torch.tensor([2, 0, 4, 1, 3])
    assert torch.autograd.gradcheck(lambda x: _Rearrange.apply(x, order, order.argsort(), True), rows)


def test_attention_has_the_gradient_that_its_outputs_say() -> None:
    model = small_model(hidden_size=4, num_attention_heads=2, num_hidden_layers=1).double()
    layout = packed(sequences([2, 1, 3])).layout
    hidden = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: model.encoder.layers[0](Stream.of(x), layout, None).exact, hidden)


@pytest.mark.parametrize("name", ["token_ids", "segment_ids", "position_ids", "sequence_starts"])
@pytest.mark.parametrize(
    "spoil",
    [lambda value: value.float(), lambda value: value[None], lambda value: value.bool()],
    ids=["float", "matrix", "boolean"],
)
def test_packed_tokens_refuse_a_wrong_type_or_rank(name: str, spoil: Any) -> None:
    whole = packed(sequences([3, 4]))
    # Annotations are checked first while tests run; the rule itself holds without them.
    with pytest.raises(Exception, match=name):
        replace(whole, **{name: spoil(getattr(whole, name))})
    unchecked = object.__new__(PackedTokens)
    unchecked.__dict__.update(vars(whole) | {name: spoil(getattr(whole, name))})
    with pytest.raises(ValueError, match=f"{name} must be a vector of int32 or int64"):
        unchecked.__post_init__()


def test_packed_tokens_refuse_unequal_numbers() -> None:
    whole = packed(sequences([3, 4]))
    unchecked = object.__new__(PackedTokens)
    unchecked.__dict__.update(vars(whole) | {"segment_ids": whole.segment_ids[:-1]})
    with pytest.raises(ValueError, match=r"one entry a token\. Received: 7, 6 and 7"):
        unchecked.__post_init__()


def test_positions_begin_anew_in_every_sequence() -> None:
    whole = packed(sequences([3, 1, 2]))
    assert whole.position_ids.tolist() == [0, 1, 2, 0, 0, 1]
    assert whole.sequence_starts.tolist() == [0, 3, 4, 6]


def test_layer_outputs_end_with_the_output_of_the_encoder() -> None:
    model = small_model(heads=HeadsConfig(), num_hidden_layers=3)
    tokens = packed(sequences(LENGTHS))
    layers = list(model.encoder.layer_outputs(tokens))
    assert len(layers) == 3
    assert torch.equal(layers[-1], model.encoder.packed(tokens))
    assert not torch.equal(layers[0], layers[1])
