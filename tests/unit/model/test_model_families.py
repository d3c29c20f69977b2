"""What holds in every family: padding changes nothing, gradients reach every weight, memory can be saved."""

from typing import Any

import pytest
import torch
from small_models import KINDS, LENGTHS, packed, padded, sequences, small_model
from torch import Tensor
from torch.nn import functional

from bertsmith.kernels.residual_norm import Stream
from bertsmith.model import Dropout, HeadsConfig, Model, RotaryConfig
from bertsmith.model.layer import PreNormLayer

ATTENTION = ["fused", "recording"]
GROUPED = KINDS["albert"] | {"num_hidden_layers": 6, "num_hidden_groups": 2}
HEADS = {
    "roberta": HeadsConfig(labels=("a", "b")),
    "albert": HeadsConfig(pooler=True, sentence_order=True, labels=("a", "b")),
    "distilbert": HeadsConfig(labels=("a", "b")),
    "modern": HeadsConfig(labels=("a", "b"), classifier_input="mean"),
}


def kind_model(kind: str, *, attention: str = "fused", **changes: Any) -> Model:
    return small_model(attention=attention, heads=HEADS.get(kind), **KINDS[kind] | changes)


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_gives_the_same_alone_packed_and_padded(kind: str, attention: str) -> None:
    model = kind_model(kind, attention=attention).double()
    rows = sequences(LENGTHS)
    for with_gradient in (True, False):
        with torch.set_grad_enabled(with_gradient):
            together = model.encoder.packed(packed(rows)).split(LENGTHS)
            view = model.encoder(*padded(rows, width=51))
            for number, row in enumerate(rows):
                alone = model.encoder.packed(packed([row]))
                torch.testing.assert_close(together[number], alone, atol=1e-11, rtol=0)
                torch.testing.assert_close(view[number, : len(alone)], alone, atol=1e-11, rtol=0)
                assert not view[number, len(alone) :].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_padding_are_finite_and_leave_real_rows_unchanged(
    kind: str, attention: str, dtype: torch.dtype
) -> None:
    # Most padding has nothing real within the modern model's window of two tokens.
    narrow = {"rotary": RotaryConfig(global_every=3, window=2)} if kind == "modern" else {}
    model = kind_model(kind, attention=attention, **narrow).to(dtype)
    token_ids, mask, segment_ids = padded(sequences([40, 17, 1]))
    for with_gradient in (True, False):
        with torch.set_grad_enabled(with_gradient):
            expected = model.encoder(token_ids, mask, segment_ids)
            inputs = [torch.cat([x[:1], x]) for x in (token_ids, mask, segment_ids)]
            inputs[1][1] = 0
            given = model.encoder(*inputs)
            assert torch.isfinite(given).all()
            assert not given[1].any()
            assert torch.equal(given[2:], expected[1:])
    model.encoder(token_ids, mask, segment_ids).float().pow(2).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.encoder.parameters())


@torch.no_grad()
def test_positions_of_roberta_skip_padding_and_those_of_bert_do_not() -> None:
    token_ids, mask = torch.tensor([[7, 7, 3, 4, 5]]), torch.tensor([[0, 0, 1, 1, 1]])
    for kind, skips in (("roberta", True), ("bert", False)):
        model = kind_model(kind).double()
        given = model.encoder(token_ids, mask)[0, 2:]
        alone = model.encoder(token_ids[:, 2:])[0]
        assert torch.allclose(given, alone, atol=1e-12) == skips


@torch.no_grad()
def test_nobody_reads_the_rows_of_robertas_positions_below_the_offset() -> None:
    model = kind_model("roberta").double()
    rows = sequences([64, 5])
    before = model.encoder.packed(packed(rows, multiple=16))
    table = model.encoder.embeddings.position.weight
    assert len(table) == 66
    table[:2] = 1e3
    assert torch.equal(model.encoder.packed(packed(rows, multiple=16)), before)
    table[2] += 1.0
    assert not torch.equal(model.encoder.packed(packed(rows, multiple=16)), before)


@torch.no_grad()
def test_a_causal_model_sees_nothing_that_comes_later() -> None:
    rows = sequences([20])
    later = [(rows[0][0].copy(), rows[0][1])]
    later[0][0][12] = (later[0][0][12] + 1) % 50
    for kind, causal in (("causal", True), ("bert", False)):
        model = kind_model(kind).double()
        change = (model.encoder.packed(packed(rows)) - model.encoder.packed(packed(later))).abs().amax(-1)
        assert (change[12:] > 1e-6).all()
        assert (change[:12] == 0).all() if causal else (change[:12] > 1e-6).all()


@torch.no_grad()
def test_windows_reach_half_their_width_in_a_layer_and_global_layers_see_all() -> None:
    rows = sequences([40])
    other = [(rows[0][0].copy(), rows[0][1])]
    other[0][0][20] = (other[0][0][20] + 1) % 50
    model = kind_model("modern", num_hidden_layers=3, rotary=RotaryConfig(global_every=3, window=6)).double()
    layers: list[PreNormLayer] = list(model.encoder.layers)
    assert [layer.attention.reach.half_window for layer in layers] == [None, 3, 3]
    # Without the global layer, two layers with windows of 3 to each side carry a change 6 tokens far.
    del model.encoder.layers[0]
    first, second = (model.encoder.embeddings(packed(tokens)) for tokens in (rows, other))
    tokens = packed(rows)
    for layer in model.encoder.layers:
        rotation = model.encoder.rotations(tokens.position_ids)[1]
        first, second = (layer(Stream.of(hidden), tokens.layout, rotation).exact for hidden in (first, second))
    changed = ((first - second).abs().amax(-1) > 1e-9).nonzero().flatten().tolist()
    assert changed == list(range(14, 27))


def loss_of(model: Model) -> Tensor:
    """A loss of every head that the model has."""
    rows = sequences([5, 17, 33])
    tokens = packed(rows, multiple=16)
    hidden = model.encoder.packed(tokens)
    parts: list[Tensor] = []
    if model.masked_language_model is not None:
        targets = tokens.token_ids[: tokens.num_tokens]
        parts.append(functional.cross_entropy(model.masked_language_model(hidden[: tokens.num_tokens]), targets))
    if model.sentence_order is not None:
        order = model.sentence_order(model.pooled(hidden, tokens))
        parts.append(functional.cross_entropy(order, torch.arange(3) % 2))
    if model.classifier is not None:
        parts.append(functional.cross_entropy(model.classify(hidden, tokens), torch.arange(3) % 2))
    return torch.stack(parts).sum()


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("kind", KINDS)
def test_activations_made_anew_give_the_same_gradients_bit_for_bit(kind: str, attention: str) -> None:
    gradients = []
    for on in (False, True):
        dropout = Dropout.everywhere(0.2)
        model = kind_model(kind, attention=attention, dropout=dropout, initializer_range=0.1)
        model.encoder.recompute_activations(on)
        torch.manual_seed(4)
        loss = loss_of(model)
        loss.backward()
        gradients.append([loss.detach(), *(parameter.grad for parameter in model.parameters())])
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))


def test_activations_made_anew_are_not_kept_meanwhile() -> None:
    def kept_bytes(on: bool) -> int:
        model = kind_model("bert", num_hidden_layers=8)
        model.encoder.recompute_activations(on)
        sizes: list[int] = []

        def keep(value: Tensor) -> Tensor:
            sizes.append(value.numel() * value.element_size())
            return value

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
            model.encoder.packed(packed(sequences([40, 40])))
        return sum(sizes)

    assert kept_bytes(True) < kept_bytes(False) / 4


def test_turning_it_off_again_keeps_activations_again() -> None:
    model = kind_model("bert")
    model.encoder.recompute_activations(True)
    model.encoder.recompute_activations(False)
    output = model.encoder.packed(packed(sequences([4])))
    output.sum().backward()
    assert "Checkpoint" not in repr(output.grad_fn)


@pytest.mark.parametrize("kind", ["grouped albert", *KINDS])
def test_one_training_step_moves_every_parameter_and_lowers_the_loss(kind: str) -> None:
    if kind == "grouped albert":
        model = small_model(heads=HEADS["albert"], **GROUPED | {"initializer_range": 0.1})
        assert len(model.encoder.layers) == 2
    else:
        model = kind_model(kind, initializer_range=0.1)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    losses = []
    for _ in range(2):
        torch.manual_seed(0)
        loss = loss_of(model)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[1] < losses[0]
    unmoved = {name for name, value in model.state_dict().items() if torch.equal(value, before[name])}
    # A key's bias adds the same to all scores of a query, but lies in one tensor with the query's and the value's.
    assert unmoved == set()


@torch.no_grad()
def test_a_group_serves_as_many_layers_in_a_row_as_the_others() -> None:
    model = small_model(**GROUPED).double()
    tokens = packed(sequences([9, 4]))
    layers = list(model.encoder.layer_outputs(tokens))
    assert len(layers) == 6
    hidden = model.encoder.embeddings(tokens)
    for number, expected in enumerate(layers):
        hidden = model.encoder.layers[number // 3](Stream.of(hidden), tokens.layout, None).exact
        torch.testing.assert_close(hidden, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("kind", KINDS)
def test_autocast_to_a_lower_precision_stays_finite_and_near_both_ways(kind: str, attention: str) -> None:
    gradients = []
    for lower in (False, True):
        model = kind_model(kind, attention=attention, initializer_range=0.1)
        torch.manual_seed(0)
        with torch.autocast("cpu", torch.bfloat16, enabled=lower):
            loss = loss_of(model)
        loss.backward()
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))
    exact, given = gradients
    assert torch.isfinite(given).all()
    assert functional.cosine_similarity(exact, given, dim=0) > 0.99
