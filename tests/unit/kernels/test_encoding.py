"""All layers of an encoder at once, against the book in float64."""

import copy
import dataclasses
import platform
from pathlib import Path

import pytest
import torch
from exact_results import random, relative_error
from made_layers import by_the_book, counted_product, made_layer, made_norm
from torch import Tensor

from bertsmith.kernels import library
from bertsmith.kernels.encoding import (
    LinearWeights,
    LookUp,
    PackedLayers,
    StackShape,
    WordPrecision,
    embed,
    encodes,
    to_int8,
)
from bertsmith.kernels.library import kernels

LENGTHS = [1, 7, 13, 12, 64, 33, 300, 2, 128]
NEAR: dict[WordPrecision, float] = {"fp32": 1e-6, "bf16": 5e-3, "int8": 1.5e-2}
"""Relative error that a precision leaves in a layer of random weights."""
# Width, heads, width between the products of the feed-forward: no multiple of a panel, of a word, or all of them.
SIZES = [(24, 4, 24), (40, 5, 56), (100, 4, 144), (312, 12, 600), (128, 2, 512), (64, 1, 37)]


def shape_of(
    width: int, heads: int, *, activation: str = "gelu", modern: bool = False, causal: bool = False
) -> StackShape:
    return StackShape(width, heads, activation, gated=modern, norm_first=modern, causal=causal, eps=1e-5)


def bounds(lengths: list[int]) -> Tensor:
    return torch.tensor([0, *lengths]).cumsum(0)


@pytest.fixture(params=list(NEAR))
def precision(request: pytest.FixtureRequest) -> WordPrecision:
    if not encodes(request.param):
        pytest.skip(f"this processor does not multiply in {request.param}")
    return request.param


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("width", "heads", "between"), SIZES)
def test_a_layer_with_its_norm_last_is_near_the_book(
    width: int, heads: int, between: int, bias: bool, precision: WordPrecision
) -> None:
    shape = shape_of(width, heads)
    layer = made_layer(shape, between, precision, bias=bias)
    hidden = random(sum(LENGTHS), width, seed=7)
    given = PackedLayers([layer], shape, precision).encode(hidden, bounds(LENGTHS))
    assert given.dtype == torch.float32
    assert relative_error(given, by_the_book(layer, shape, hidden, LENGTHS)) < NEAR[precision]


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu"])
@pytest.mark.parametrize("causal", [False, True])
def test_every_activation_and_direction(activation: str, causal: bool, precision: WordPrecision) -> None:
    shape = shape_of(48, 3, activation=activation, causal=causal)
    layer = made_layer(shape, 100, precision)
    hidden = random(sum(LENGTHS), 48, seed=7)
    given = PackedLayers([layer], shape, precision).encode(hidden, bounds(LENGTHS))
    assert relative_error(given, by_the_book(layer, shape, hidden, LENGTHS)) < NEAR[precision]


@pytest.mark.parametrize("half_window", [None, 3, 64])
@pytest.mark.parametrize(("width", "heads", "between"), [(24, 2, 40), (128, 2, 192)])
def test_a_gated_layer_with_its_norm_first_rotations_and_a_window(
    width: int, heads: int, between: int, half_window: int | None, precision: WordPrecision
) -> None:
    shape = shape_of(width, heads, modern=True)
    layer = made_layer(shape, between, precision, bias=False, half_window=half_window)
    hidden = random(sum(LENGTHS), width, seed=7)
    angles = 3 * random(sum(LENGTHS), shape.head_size // 2, seed=8).double()
    cosine, sine = angles.cos(), angles.sin()
    tables = [(torch.cat([cosine, cosine], 1), torch.cat([-sine, sine], 1))]
    for made in (layer, dataclasses.replace(layer, attention_norm=None)):
        given = PackedLayers([made], shape, precision).encode(hidden, bounds(LENGTHS), tables)
        assert relative_error(given, by_the_book(made, shape, hidden, LENGTHS, angles=angles)) < NEAR[precision]


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
def test_in_fp32_nothing_is_lost_where_scores_and_activations_are_far_from_zero(activation: str) -> None:
    if not encodes("fp32"):
        pytest.skip("this processor has no vectors as wide as the kernels want them")
    # Most weights of attention vanish, and GELU is asked for numbers up to 20 on both sides.
    shape = shape_of(64, 2, activation=activation)
    layer = made_layer(shape, 200, "fp32")
    layer = dataclasses.replace(layer, up=LinearWeights(5 * layer.up.weight, layer.up.bias))
    hidden = 6 * random(sum(LENGTHS), 64, seed=7)
    given = PackedLayers([layer], shape, "fp32").encode(hidden, bounds(LENGTHS))
    assert relative_error(given, by_the_book(layer, shape, hidden, LENGTHS)) < NEAR["fp32"]


def test_whole_numbers_are_those_of_the_book() -> None:
    if not encodes("int8"):
        pytest.skip("this processor does not multiply numbers of 8 bits")
    # Without attention nothing is in bf16, and what is left is the rounding to steps, which float64 makes alike.
    shape = shape_of(384, 12, activation="relu")
    layer = made_layer(shape, 1536, "int8")
    none = LinearWeights(torch.zeros_like(layer.output.weight), layer.output.bias, torch.zeros(384))
    layer = dataclasses.replace(layer, output=none)
    hidden = random(sum(LENGTHS), 384, seed=7) * torch.logspace(-2, 2, 384)
    given = PackedLayers([layer], shape, "int8").encode(hidden, bounds(LENGTHS))
    assert relative_error(given, by_the_book(layer, shape, hidden, LENGTHS, product=counted_product)) < 5e-4
    assert relative_error(given, by_the_book(layer, shape, hidden, LENGTHS)) > 2e-3


def test_the_largest_weight_of_each_row_counts_127_steps() -> None:
    weight = torch.tensor([[0.0, 0.0], [0.5, -1.0], [127.0, 2.6], [1e-20, -1e-20]])
    numbers, steps = to_int8(weight)
    assert numbers.tolist() == [[0, 0], [64, -127], [127, 3], [127, -127]]
    torch.testing.assert_close(numbers * steps[:, None], weight, rtol=0, atol=0.5)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("modern", [False, True])
def test_a_sequence_has_the_same_bits_alone_and_with_others_and_with_any_threads(
    modern: bool, precision: WordPrecision
) -> None:
    shape = shape_of(40, 2, modern=modern)
    layers = PackedLayers([made_layer(shape, 72, precision, seed=seed) for seed in (0, 100)], shape, precision)
    # More blocks of sequences than threads take as one.
    lengths = LENGTHS * 4
    hidden = random(sum(lengths), 40, seed=7)
    together = layers.encode(hidden, bounds(lengths))
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        assert torch.equal(layers.encode(hidden, bounds(lengths)), together)
        some = layers.encode(hidden[: sum(LENGTHS)], bounds(LENGTHS))
        assert torch.equal(some, together[: sum(LENGTHS)])
        for own, alone in zip(hidden.split(lengths), together.split(lengths), strict=True):
            assert torch.equal(layers.encode(own, bounds([len(own)])), alone)


def test_layers_one_by_one_are_the_same_as_all_at_once(precision: WordPrecision) -> None:
    shape = shape_of(40, 2)
    one, other = (made_layer(shape, 72, precision, seed=seed) for seed in (0, 100))
    layers = PackedLayers([one, other, one], shape, precision)
    assert len(layers) == 3
    hidden = random(sum(LENGTHS), 40, seed=7)
    all_at_once = layers.encode(hidden, bounds(LENGTHS))
    for number in range(3):
        hidden = layers.encode(hidden, bounds(LENGTHS), layers=slice(number, number + 1))
    assert torch.equal(hidden, all_at_once)


def test_no_sequence_gives_no_row(precision: WordPrecision) -> None:
    shape = shape_of(40, 2)
    layers = PackedLayers([made_layer(shape, 72, precision)], shape, precision)
    assert layers.encode(torch.empty(0, 40), bounds([])).shape == (0, 40)


def test_what_is_no_number_stays_in_its_sequence_and_is_seen(precision: WordPrecision) -> None:
    shape = shape_of(40, 2)
    layers = PackedLayers([made_layer(shape, 72, precision)], shape, precision)
    hidden = random(30, 40)
    hidden[12, 3] = torch.nan
    given = layers.encode(hidden, bounds([10, 15, 5]))
    assert given[10:25].isnan().any(1)[2]
    assert not given[:10].isnan().any()
    assert not given[25:].isnan().any()


def test_a_change_of_the_weights_afterwards_changes_nothing(precision: WordPrecision) -> None:
    shape = shape_of(32, 1)
    layer = made_layer(shape, 32, precision)
    layers = PackedLayers([layer], shape, precision)
    hidden = random(9, 32)
    before = layers.encode(hidden, bounds([9]))
    with torch.no_grad():
        for part in (layer.query_key_value, layer.output, layer.up, layer.down):
            part.weight.zero_()
            if part.bias is not None:
                part.bias.zero_()
        layer.feed_forward_norm.weight.zero_()
    assert torch.equal(layers.encode(hidden, bounds([9])), before)


@pytest.mark.parametrize("width", [24, 100, 384])
@pytest.mark.parametrize("tables", [1, 2, 3])
def test_embeddings_are_added_up_and_normalised(width: int, tables: int) -> None:
    if not encodes("fp32"):
        pytest.skip("this processor has no vectors as wide as the kernels want them")
    values = [random(rows, width, seed=rows) for rows in (50, 2, 9)][:tables]
    ids = [torch.randint(0, len(table), (301,), dtype=torch.int32) for table in values]
    look_ups = [LookUp(rows, table) for rows, table in zip(ids, values, strict=True)]
    first_rows = [look_ups[0], *(LookUp(None, table) for table in values[1:])]
    for bias in (True, False):
        norm = made_norm(width, bias=bias)
        exactly = copy.deepcopy(norm).double()
        total = sum(table[rows].double() for rows, table in zip(ids, values, strict=True))
        assert relative_error(embed(look_ups, norm).detach(), exactly(total).detach()) < 1e-6
        total = values[0][ids[0]].double() + sum(table[0].double() for table in values[1:])
        assert relative_error(embed(first_rows, norm).detach(), exactly(total).detach()) < 1e-6


LESSER: dict[str, tuple[list[str], list[WordPrecision]]] = {
    "AMX": ([], ["fp32", "bf16", "int8"]),
    "bf16": (["-mno-avx512bf16"], ["fp32", "int8"]),
    "VNNI": (["-mno-avx512vnni"], ["fp32", "bf16"]),
    "bf16 and VNNI": (["-mno-avx512bf16", "-mno-avx512vnni"], ["fp32"]),
    "AVX-512": (["-mno-avx512f"], []),
}
"""What is left out of this processor, how, and what the rest can do."""


@pytest.mark.parametrize("without", LESSER)
def test_lesser_processors_do_what_they_can(without: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if platform.machine() != "x86_64" or not encodes("int8"):
        pytest.skip("this processor has nothing to leave out")
    flags, known = LESSER[without]
    quickly_made = [flag.replace("-O3", "-O1") for flag in library._FLAGS]
    no_amx = ["-mno-amx-tile", "-mno-amx-bf16", "-mno-amx-int8"]
    monkeypatch.setattr(library, "_FLAGS", [*quickly_made, *no_amx, *flags])
    kernels.cache_clear()
    assert kernels().why_not == ""
    assert [name for name in NEAR if encodes(name)] == known
    shape = shape_of(40, 2)
    hidden = random(sum(LENGTHS), 40, seed=7)
    for name in known:
        layer = made_layer(shape, 72, name)
        given = PackedLayers([layer], shape, name).encode(hidden, bounds(LENGTHS))
        assert relative_error(given, by_the_book(layer, shape, hidden, LENGTHS)) < NEAR[name]
