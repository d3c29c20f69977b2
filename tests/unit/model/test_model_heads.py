"""Heads have the shapes that their config says, share weights where it says so, and all of them learn."""

import numpy as np
import pytest
import torch
from small_models import KINDS, LENGTHS, packed, sequences, small_model
from torch.nn import functional

from bertsmith.model import HeadsConfig, Model
from bertsmith.model.pooling import mean_tokens

VOCABULARY_HEADS = [
    HeadsConfig(mlm_head=head, mlm_head_input=reads, tie_embeddings=tied, pooler=True, next_sentence=True)
    for head in ("transform", "linear")
    for reads in ("last", "all_layers")
    for tied in (True, False)
    if not (head == "linear" and reads == "all_layers" and tied)
]


def named(heads: HeadsConfig) -> str:
    return f"{heads.mlm_head}-{heads.mlm_head_input}-{'tied' if heads.tie_embeddings else 'untied'}"


@pytest.mark.parametrize("heads", VOCABULARY_HEADS, ids=named)
def test_a_vocabulary_head_has_its_shapes(heads: HeadsConfig) -> None:
    model = small_model(heads=heads, num_hidden_layers=3)
    head = model.masked_language_model
    assert head is not None
    hidden = model.head_input(packed(sequences([4, 3])))
    width = 48 if heads.mlm_head_input == "all_layers" else 16
    assert hidden.shape == (7, width)
    features = head.features(hidden)
    assert features.shape == (7, 16 if heads.mlm_head == "transform" else width)
    assert head.projection.shape == (50, features.shape[1])
    assert head(hidden).shape == (7, 50)
    torch.testing.assert_close(head(hidden), features @ head.projection.T + head.bias)


@pytest.mark.parametrize("heads", VOCABULARY_HEADS, ids=named)
def test_a_tied_projection_is_the_token_embedding_and_is_stored_once(heads: HeadsConfig) -> None:
    model = small_model(heads=heads)
    head = model.masked_language_model
    assert head is not None
    embedding = model.encoder.embeddings.token.weight
    assert (head.projection is embedding) == heads.tie_embeddings
    names = [name for name in model.state_dict() if name.startswith("masked_language_model")]
    assert ("masked_language_model.untied" in names) != heads.tie_embeddings
    if heads.tie_embeddings:
        model.double()
        assert head.projection is model.encoder.embeddings.token.weight
        assert head.projection.dtype == torch.float64


def test_the_last_columns_of_what_a_head_reads_are_the_last_layer() -> None:
    heads = HeadsConfig(mlm_head="linear", mlm_head_input="all_layers", tie_embeddings=False)
    model = small_model(heads=heads, num_hidden_layers=3)
    tokens = packed(sequences(LENGTHS))
    hidden = model.head_input(tokens)
    layers = list(model.encoder.layer_outputs(tokens))
    assert torch.equal(hidden, torch.cat(layers, dim=-1))
    assert torch.equal(hidden[:, -16:], model.encoder.packed(tokens))


def test_the_pooler_reads_the_first_token_of_each_sequence() -> None:
    model = small_model(heads=HeadsConfig(pooler=True))
    tokens = packed(sequences([4, 3, 1]), multiple=16)
    hidden = model.encoder.packed(tokens)
    pooled = model.pooled(hidden, tokens)
    assert pooled.shape == (3, 16)
    pooler = model.pooler
    assert pooler is not None
    torch.testing.assert_close(pooled, torch.tanh(pooler.dense(hidden[[0, 4, 7]])))


def test_a_model_without_a_pooler_says_how_to_get_one() -> None:
    model = small_model()
    tokens = packed(sequences([4]))
    with pytest.raises(ValueError, match=r"heads\.pooler=true"):
        model.pooled(model.encoder.packed(tokens), tokens)


def test_heads_that_the_config_leaves_out_are_not_there() -> None:
    model = small_model(heads=HeadsConfig(masked_language_model=False))
    assert model.masked_language_model is None
    assert model.pooler is None
    assert model.next_sentence is None
    assert all(name.startswith("encoder.") for name in model.state_dict())


def pretraining_loss(model: Model) -> torch.Tensor:
    rows = sequences(LENGTHS)
    tokens = packed(rows)
    hidden = model.head_input(tokens)
    assert model.masked_language_model is not None
    assert model.next_sentence is not None
    targets = torch.from_numpy(np.random.default_rng(1).integers(0, 50, tokens.num_tokens))
    loss = functional.cross_entropy(model.masked_language_model(hidden), targets)
    pooled = model.pooled(hidden[:, -model.config.encoder.hidden_size :], tokens)
    return loss + functional.cross_entropy(model.next_sentence(pooled), torch.arange(len(rows)) % 2)


@pytest.mark.parametrize("attention", ["fused", "recording"])
@pytest.mark.parametrize("heads", VOCABULARY_HEADS, ids=named)
def test_one_backward_pass_reaches_every_parameter(heads: HeadsConfig, attention: str) -> None:
    model = small_model(heads=heads, attention=attention)
    pretraining_loss(model).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), name


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu"])
def test_the_activation_of_the_config_acts_in_layers_and_head(activation: str) -> None:
    expected = {
        "gelu": lambda x: functional.gelu(x),
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "relu": torch.relu,
    }[activation]
    model = small_model(activation=activation)
    layer, head = model.encoder.layers[0].feed_forward, model.masked_language_model
    assert head is not None
    rows = torch.randn(5, 16)
    torch.testing.assert_close(layer(rows), layer.down(expected(layer.up(rows))))
    torch.testing.assert_close(head.features(rows), head.transform.norm(expected(head.transform.dense(rows))))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_mean_of_tokens_is_that_of_each_sequence_and_leaves_filling_out(dtype: torch.dtype) -> None:
    tokens = packed(sequences([4, 1, 300]), multiple=16)
    hidden = torch.randn(len(tokens.token_ids), 3, generator=torch.Generator().manual_seed(0)).to(dtype)
    given = mean_tokens(hidden, tokens)
    assert given.dtype == dtype
    expected = torch.stack([rows.double().mean(0) for rows in hidden[:305].split([4, 1, 300])])
    if dtype == torch.bfloat16:
        # Summed in fp32, so that rounding happens once, at the end.
        torch.testing.assert_close(given, expected.to(dtype), atol=0, rtol=2**-7)
    else:
        torch.testing.assert_close(given, expected, atol=1e-12, rtol=0)


def test_the_gradient_of_the_mean_is_an_even_share() -> None:
    tokens = packed(sequences([4, 1]), multiple=8)
    hidden = torch.randn(8, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: mean_tokens(x, tokens), hidden)


@pytest.mark.parametrize(
    ("kind", "summary"),
    [("roberta", "TanhDense"), ("distilbert", "ReluDense"), ("modern", "Transform"), ("bert", None), ("albert", None)],
)
def test_a_classifier_is_built_as_its_family_publishes_it(kind: str, summary: str | None) -> None:
    heads = HeadsConfig(masked_language_model=False, pooler=summary is None, labels=("a", "b", "c"))
    model = small_model(heads=heads, **KINDS[kind])
    classifier = model.classifier
    assert classifier is not None
    assert (classifier.summary is None) == (summary is None)
    assert summary is None or type(classifier.summary).__name__ == summary
    # The pooler is the model's own part: stored once.
    assert not [name for name in model.state_dict() if "classifier" in name and "pooler" in name]
    tokens = packed(sequences(LENGTHS))
    hidden = model.encoder.packed(tokens)
    scores = model.eval().classify(hidden, tokens)
    assert scores.shape == (len(LENGTHS), 3)
    scores.pow(2).sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in classifier.parameters())


def test_a_model_without_a_classifier_says_how_to_get_one() -> None:
    model = small_model()
    tokens = packed(sequences([4]))
    with pytest.raises(ValueError, match=r"heads\.labels="):
        model.classify(model.encoder.packed(tokens), tokens)


def test_a_classifier_over_the_mean_reads_every_token() -> None:
    heads = HeadsConfig(masked_language_model=False, labels=("a", "b"), classifier_input="mean")
    model = small_model(heads=heads, **KINDS["modern"]).eval()
    tokens = packed(sequences([6, 3]))
    hidden = torch.randn(9, 16, requires_grad=True)
    model.classify(hidden, tokens)[0].sum().backward()
    assert hidden.grad is not None
    assert (hidden.grad[:6].abs().amax(-1) > 0).all()
    assert not hidden.grad[6:].any()


def test_robertas_head_is_gelu_whatever_its_layers_have() -> None:
    model = small_model(activation="relu", **KINDS["roberta"])
    head = model.masked_language_model
    assert head is not None
    rows = torch.randn(5, 16)
    torch.testing.assert_close(head.features(rows), head.transform.norm(functional.gelu(head.transform.dense(rows))))
