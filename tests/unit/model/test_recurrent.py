"""The ELMo encoder, compared with LSTMs that are run over one sequence at a time."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from small_models import LENGTHS, encoder_config, packed, padded, sequences
from torch import Tensor, nn

from bertsmith.model import HeadsConfig, Model, ModelConfig, PackedTokens, new_model
from bertsmith.model.recurrent import LayerMix, RecurrentEncoder, initialise_lstm, reading_backwards

HALF = 8


def elmo(seed: int = 0, *, layers: int = 2, dropout: float = 0.0) -> Model:
    encoder = encoder_config(
        family="elmo",
        embedding_size=HALF,
        intermediate_size=HALF,
        num_hidden_layers=layers,
        num_attention_heads=1,
        type_vocab_size=0,
        initializer_range=0.6,
        dropout={"embeddings": dropout, "feed_forward": dropout},
    )
    return new_model(ModelConfig(encoder=encoder, heads=HeadsConfig(mlm_head="linear")), seed=seed)


def encoder_of(model: Model) -> RecurrentEncoder:
    assert isinstance(model.encoder, RecurrentEncoder)
    return model.encoder


def one_by_one(encoder: RecurrentEncoder, token_ids: np.ndarray) -> list[Tensor]:
    """The outputs of all layers for one sequence, without packing, padding or reordering of packed rows."""
    rows = encoder.embeddings.token(torch.from_numpy(token_ids))
    ahead, back = rows, rows.flip(0)
    outputs: list[Tensor] = []
    for number, layer in enumerate(encoder.layers):
        forwards, backwards = layer.forwards(ahead)[0], layer.backwards(back)[0]
        ahead = forwards + ahead if number else forwards
        back = backwards + back if number else backwards
        outputs.append(torch.cat([ahead, back.flip(0)], dim=-1))
    return outputs


@pytest.mark.parametrize("lengths", [LENGTHS, [5, 5, 5], [1], [40]])
@pytest.mark.parametrize("multiple", [1, 64])
def test_packed_sequences_give_what_each_gives_alone(lengths: list[int], multiple: int) -> None:
    encoder = encoder_of(elmo(layers=3)).double()
    rows = sequences(lengths)
    batch = packed(rows, multiple=multiple)
    found = list(encoder.layer_outputs(batch))
    assert len(found) == 3
    for layer, output in enumerate(found):
        expected = torch.cat([one_by_one(encoder, ids)[layer] for ids, _ in rows])
        torch.testing.assert_close(output[: batch.num_tokens], expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(encoder.packed(batch), found[-1], rtol=0, atol=0)


def test_gradients_are_those_of_each_sequence_alone() -> None:
    rows = sequences(LENGTHS)
    weights = torch.randn(sum(LENGTHS), 2 * HALF, dtype=torch.float64)
    gradients: list[dict[str, Tensor]] = []
    for together in (True, False):
        encoder = encoder_of(elmo()).double()
        if together:
            batch = packed(rows, multiple=64)
            output = encoder.packed(batch)[: batch.num_tokens]
        else:
            output = torch.cat([one_by_one(encoder, ids)[-1] for ids, _ in rows])
        (output * weights).sum().backward()
        gradients.append({name: value.grad for name, value in encoder.named_parameters() if value.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], rtol=0, atol=1e-11)


def _changed(token_ids: np.ndarray, place: int) -> PackedTokens:
    ids = token_ids.copy()
    ids[place] = (ids[place] + 1) % 50
    return packed([(ids, np.zeros_like(ids)), *sequences([20], seed=1)])


@pytest.mark.parametrize("place", [0, 6, 12])
def test_each_half_reads_one_way(place: int) -> None:
    encoder = encoder_of(elmo())
    ids = sequences([13])[0][0]
    before = encoder.packed(packed([(ids, np.zeros_like(ids)), *sequences([20], seed=1)]))
    moved = (encoder.packed(_changed(ids, place)) - before).abs()
    ahead, back = moved[:, :HALF].amax(1) > 0, moved[:, HALF:].amax(1) > 0
    assert ahead[:13].tolist() == [number >= place for number in range(13)]
    assert back[:13].tolist() == [number <= place for number in range(13)]
    assert not moved[13:].any()


def test_what_fills_up_the_shape_changes_nothing() -> None:
    encoder = encoder_of(elmo())
    rows = sequences(LENGTHS)
    plain, filled = packed(rows), packed(rows, multiple=128)
    assert len(filled.token_ids) > plain.num_tokens
    torch.testing.assert_close(encoder.packed(filled)[: plain.num_tokens], encoder.packed(plain), rtol=0, atol=1e-6)


def test_reading_backwards_turns_each_sequence_and_undoes_itself() -> None:
    batch = packed(sequences([3, 1, 4]), multiple=16)
    order = reading_backwards(batch)
    assert order.tolist() == [2, 1, 0, 3, 7, 6, 5, 4, *range(8, 16)]
    assert order[order].tolist() == list(range(16))


def test_padded_sequences_are_taken_too() -> None:
    encoder = encoder_of(elmo())
    rows = sequences(LENGTHS)
    token_ids, mask, _ = padded(rows)
    whole = encoder.packed(packed(rows))
    starts = np.cumsum([0, *LENGTHS])
    found = encoder(token_ids, mask)
    for number, (start, end) in enumerate(pairwise(starts)):
        torch.testing.assert_close(found[number, : end - start], whole[start:end], rtol=0, atol=1e-6)
        assert not found[number, end - start :].any()


def test_layer_zero_is_the_embedding_twice() -> None:
    encoder = encoder_of(elmo(layers=3))
    batch = packed(sequences(LENGTHS))
    first, *rest = encoder.representations(batch)
    embedded = encoder.embeddings.token(batch.token_ids)
    assert torch.equal(first, torch.cat([embedded, embedded], dim=1))
    for found, expected in zip(rest, encoder.layer_outputs(batch), strict=True):
        assert torch.equal(found, expected)


def test_it_runs_in_bf16_near_enough() -> None:
    encoder = encoder_of(elmo())
    batch = packed(sequences(LENGTHS))
    with torch.autocast("cpu", torch.bfloat16):
        low = encoder.packed(batch)
    low.float().sum().backward()
    torch.testing.assert_close(low.float(), encoder.packed(batch), rtol=0.05, atol=0.02)


def test_dropout_falls_on_what_lstms_read_while_training_alone() -> None:
    model = elmo(dropout=0.5)
    encoder, batch = encoder_of(model), packed(sequences(LENGTHS))
    model.train()
    assert not torch.equal(encoder.packed(batch), encoder.packed(batch))
    model.eval()
    assert torch.equal(encoder.packed(batch), encoder.packed(batch))


def test_a_cell_begins_by_keeping_what_it_holds() -> None:
    lstm = nn.LSTM(4, 4)
    initialise_lstm(lstm, torch.Generator().manual_seed(0))
    assert (lstm.bias_ih_l0 + lstm.bias_hh_l0).tolist() == [0.0] * 4 + [1.0] * 4 + [0.0] * 8
    for weight in (lstm.weight_ih_l0, lstm.weight_hh_l0):
        assert 0.3 < weight.detach().abs().max() <= 0.5


def test_fresh_weights_are_a_function_of_the_seed() -> None:
    first, again, other = elmo(0), elmo(0), elmo(1)
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name])
    assert not torch.equal(
        first.state_dict()["encoder.layers.1.backwards.weight_hh_l0"],
        other.state_dict()["encoder.layers.1.backwards.weight_hh_l0"],
    )


def test_a_layer_mix_begins_as_the_mean_and_learns_weights_and_scale() -> None:
    layers = torch.randn(3, 5, 4)
    mix = LayerMix(3)
    torch.testing.assert_close(mix(layers), layers.mean(0))
    with torch.no_grad():
        mix.scores.copy_(torch.tensor([0.0, 1.0, -1.0]))
        mix.gamma.fill_(2.0)
    share = torch.tensor([0.0, 1.0, -1.0]).softmax(0)
    expected = 2.0 * (share[:, None, None] * layers).sum(0)
    torch.testing.assert_close(mix(layers), expected)
    mix(layers).square().sum().backward()
    assert mix.scores.grad is not None
    assert mix.scores.grad.abs().min() > 0
    assert mix.gamma.grad is not None
    assert mix.gamma.grad.abs() > 0
