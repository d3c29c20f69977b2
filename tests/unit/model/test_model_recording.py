"""Attention weights out of a model that was built for speed."""

import numpy as np
import pytest
import torch
from small_models import KINDS, packed, sequences, small_model

from bertsmith.kernels.residual_norm import Stream
from bertsmith.model import PackedTokens
from bertsmith.model.recording import attention_weights, recording_twin
from made_language_models import made_elmo

LENGTH = 20


def _one(length: int = LENGTH) -> PackedTokens:
    return packed(sequences([length]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_fused_model_gives_weights_whose_rows_sum_to_one(kind: str) -> None:
    model = small_model(**KINDS[kind]).eval()
    weights = attention_weights(recording_twin(model.encoder), _one())
    assert weights.shape == (2, 4, LENGTH, LENGTH)
    assert weights.dtype == torch.float32
    assert not weights.requires_grad
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, LENGTH), atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_twin_computes_what_the_model_does(kind: str) -> None:
    model = small_model(**KINDS[kind]).eval()
    batch = packed(sequences([LENGTH, 3, 33]))
    with torch.no_grad():
        torch.testing.assert_close(
            recording_twin(model.encoder).packed(batch), model.encoder.packed(batch), atol=1e-5, rtol=0
        )


def test_the_twin_has_the_models_own_weights_and_drops_nothing_out() -> None:
    model = small_model(dropout={"attention_weights": 0.5, "embeddings": 0.5}).train()
    twin = recording_twin(model.encoder)
    ours = model.encoder.state_dict()
    assert {name: value.data_ptr() for name, value in twin.state_dict().items()} == {
        name: value.data_ptr() for name, value in ours.items()
    }
    before = attention_weights(twin, _one())
    torch.testing.assert_close(attention_weights(twin, _one()), before, atol=0, rtol=0)
    assert model.encoder.training
    with torch.no_grad():
        ours["layers.0.attention.query_key_value.weight"].mul_(2.0)
    assert not torch.allclose(attention_weights(twin, _one())[0], before[0], atol=1e-3)


@pytest.mark.parametrize("groups", [1, 2])
def test_a_shared_layer_gives_the_weights_of_every_call(groups: int) -> None:
    changes = KINDS["albert"] | {"num_hidden_layers": 4, "num_hidden_groups": groups}
    model = small_model(**changes).eval()
    twin = recording_twin(model.encoder)
    assert len(twin.layers) == groups
    batch = _one()
    found = list(twin.attention_weights(batch))
    assert len(found) == 4
    # Each call by itself, from the output of the one before it.
    with torch.no_grad():
        hidden = twin.embeddings(batch)
        for number, blocks in enumerate(found):
            layer = twin.layers[number * groups // 4]
            hidden = layer(Stream.of(hidden), batch.layout, None).exact
            torch.testing.assert_close(blocks[0], layer.attention.recorded[0], atol=0, rtol=0)
    assert not torch.allclose(found[0][0], found[1][0], atol=1e-3)


def test_a_token_has_no_weight_for_what_it_cannot_see() -> None:
    causal = attention_weights(recording_twin(small_model(**KINDS["causal"]).encoder), _one())
    assert not causal.triu(1).any()
    assert (causal.diagonal(dim1=-2, dim2=-1)[:, :, 0] == 1).all()
    modern = attention_weights(recording_twin(small_model(**KINDS["modern"]).encoder), _one())
    distance = (torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)).abs()
    assert (modern[0][:, distance > 2] > 0).all(), "the first layer sees everything"
    assert not modern[1][:, distance > 2].any(), "the second has a window of two to each side"
    assert (modern[1][:, distance <= 2] > 0).all()


def test_a_single_token_looks_at_itself() -> None:
    assert attention_weights(recording_twin(small_model().encoder), _one(1)).flatten().tolist() == [1.0] * 8


def test_fused_attention_says_that_it_keeps_no_weights() -> None:
    with pytest.raises(ValueError, match=r'fused attention\. Build it with attention="recording"'):
        small_model().encoder.attention_weights(_one())  # pyright: ignore[reportAttributeAccessIssue]


def test_an_encoder_without_attention_is_refused() -> None:
    with pytest.raises(ValueError, match="family elmo, which has none"):
        recording_twin(made_elmo().encoder)


@pytest.mark.parametrize(
    "batch", [packed(sequences([4, 5])), packed(sequences([5]), multiple=16)], ids=["two sequences", "filling"]
)
def test_more_than_one_sequence_is_refused(batch: PackedTokens) -> None:
    with pytest.raises(ValueError, match="one sequence, without filling"):
        attention_weights(recording_twin(small_model().encoder), batch)


def test_weights_do_not_depend_on_the_neighbours_of_a_sequence() -> None:
    twin = recording_twin(small_model().encoder)
    rows = sequences([7, 20, 3])
    together = list(twin.attention_weights(packed(rows)))
    for row in rows:
        alone = attention_weights(twin, packed([row]))
        length = len(row[0])
        for layer, blocks in enumerate(together):
            twins = [
                weights
                for block in blocks
                for weights in block
                if weights.shape[-1] >= length
                and np.allclose(weights[:, :length, :length], alone[layer], atol=1e-6)
                and not weights[:, :length, length:].any()
            ]
            assert len(twins) == 1
