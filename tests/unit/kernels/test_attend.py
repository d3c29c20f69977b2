"""Attention of packed tokens against a dense computation in float64."""

from typing import Any

import pytest
import torch
from dense_attention import ALL_TOGETHER, BY_LENGTH, LENGTHS, REACHES, Packed, dense_attention, made_packed
from exact_results import TYPES, random, relative_error
from torch import Tensor

from bertsmith.kernels import attention
from bertsmith.model import attention_reach
from bertsmith.model.attention_reach import Reach

pytestmark = pytest.mark.usefixtures("compiled")

SIZES = [(1, 5, False), (2, 1, False), (3, 4, True), (4, 16, True), (4, 3, False), (2, 32, True), (1, 64, False)]
"""Heads, the size of each, and whether positions turn them. In bf16, heads of 32 or 64 go a way of their own."""
WAYS = [(torch.float32, 4), (torch.bfloat16, 4), (torch.bfloat16, 32)]
"""A type and a size of head for each way."""
LONG_REACHES = [Reach(), Reach(causal=True), Reach(half_window=16), Reach(half_window=45, causal=True)]
GROUPS = {"one block": ALL_TOGETHER, "blocks by length": BY_LENGTH}


@pytest.fixture(params=["whole", "in parts"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether all is taken at once, or a sequence and two or more of its queries at a time."""
    if request.param == "in parts":
        cut_up(monkeypatch)
    return request.param


def cut_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attention, "_BLOCK_ELEMENTS", 1)
    patch.setattr(attention_reach, "_LEAST_QUERIES", 2)
    patch.setattr(attention_reach, "_LARGEST_TILE", 1)


def values_and_gradient(rows: Tensor, packed: Packed, reach: Reach, wanted: Tensor) -> tuple[Tensor, Tensor]:
    leaf = rows.detach().requires_grad_()
    found = packed.attend(leaf, reach)
    (gradient,) = torch.autograd.grad(found, leaf, wanted)
    return found.detach(), gradient


def exact_values_and_gradient(rows: Tensor, packed: Packed, reach: Reach, wanted: Tensor) -> tuple[Tensor, Tensor]:
    leaf = rows.detach().double().requires_grad_()
    found = dense_attention(leaf, packed, reach)
    (gradient,) = torch.autograd.grad(found, leaf, wanted.double())
    return found.detach(), gradient


def assert_near(given: Tensor, exact: Tensor) -> None:
    assert given.isfinite().all()
    if given.dtype == torch.float32:
        torch.testing.assert_close(given.double(), exact, atol=1e-5, rtol=0)
    else:
        assert relative_error(given, exact) < 2e-2


def test_the_parts_of_these_tests_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_up(monkeypatch)
    for reach in REACHES:
        assert len(reach.tile_bounds(max(LENGTHS), 1)) > 2
    packed = made_packed(1, 2)
    assert len(list(attention._parts(packed.blocks, 1))) == len(LENGTHS)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("reach", REACHES, ids=str)
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize(("heads", "head_size", "rotated"), SIZES)
def test_values_and_gradients_are_those_of_dense_attention(
    dtype: torch.dtype, reach: Reach, groups: str, heads: int, head_size: int, rotated: bool
) -> None:
    packed = made_packed(heads, head_size, groups=GROUPS[groups], rotated=rotated)
    rows = packed.rows.to(dtype)
    wanted = random(len(rows), heads, head_size, seed=9).to(dtype)
    found, gradient = values_and_gradient(rows, packed, reach, wanted)
    exact, exact_gradient = exact_values_and_gradient(rows, packed, reach, wanted)
    assert found.dtype == gradient.dtype == dtype
    assert_near(found, exact)
    for number in range(3):
        assert_near(gradient[:, number], exact_gradient[:, number])


@pytest.mark.parametrize(("dtype", "head_size"), WAYS, ids=str)
@pytest.mark.parametrize("reach", LONG_REACHES, ids=str)
def test_long_sequences_take_several_tiles_and_threads_as_they_are(
    dtype: torch.dtype, head_size: int, reach: Reach
) -> None:
    packed = made_packed(2, head_size, lengths=[300, 131, 7, 32, 33], groups=[[0, 1, 2], [3, 4]], rotated=True)
    rows = packed.rows.to(dtype)
    wanted = random(len(rows), 2, head_size, seed=9).to(dtype)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        found, gradient = values_and_gradient(rows, packed, reach, wanted)
    finally:
        torch.set_num_threads(threads)
    exact, exact_gradient = exact_values_and_gradient(rows, packed, reach, wanted)
    assert_near(found, exact)
    assert_near(gradient, exact_gradient)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(("dtype", "head_size"), WAYS, ids=str)
@pytest.mark.parametrize("reach", REACHES, ids=str)
@pytest.mark.parametrize("garbage", [torch.nan, torch.inf], ids=str)
def test_garbage_in_other_sequences_changes_nothing_to_the_bit(
    dtype: torch.dtype, head_size: int, reach: Reach, garbage: float
) -> None:
    packed = made_packed(2, head_size, rotated=True)
    rows, wanted = packed.rows.to(dtype), random(sum(LENGTHS), 2, head_size, seed=9).to(dtype)
    found, gradient = values_and_gradient(rows, packed, reach, wanted)
    for place in packed.places[::3]:
        spoilt, spoilt_wanted = torch.full_like(rows, garbage), torch.full_like(wanted, garbage)
        spoilt[place], spoilt_wanted[place] = rows[place], wanted[place]
        found_beside, gradient_beside = values_and_gradient(spoilt, packed, reach, spoilt_wanted)
        assert torch.equal(found_beside[place], found[place])
        assert torch.equal(gradient_beside[place], gradient[place])


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(("dtype", "head_size"), WAYS, ids=str)
@pytest.mark.parametrize("reach", REACHES[1:], ids=str)
def test_a_key_out_of_reach_changes_nothing_to_the_bit(dtype: torch.dtype, head_size: int, reach: Reach) -> None:
    packed = made_packed(2, head_size, lengths=[12], groups=[[0]])
    rows = packed.rows.to(dtype)
    found = packed.attend(rows, reach)
    for query in range(12):
        spoilt = rows.clone()
        out_of_reach = torch.tensor([
            (reach.causal and key > query) or (reach.half_window is not None and abs(key - query) > reach.half_window)
            for key in range(12)
        ])  # fmt: skip
        spoilt[out_of_reach, 1:] = 1e30
        assert torch.equal(packed.attend(spoilt, reach)[query], found[query])


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(("dtype", "head_size"), WAYS, ids=str)
def test_what_is_no_number_shows_where_it_is_read(dtype: torch.dtype, head_size: int) -> None:
    packed = made_packed(2, head_size, lengths=[12], groups=[[0]])
    rows = packed.rows.to(dtype)
    found = packed.attend(rows, Reach(causal=True))
    others = torch.arange(12) != 5
    spoilt = rows.clone()
    spoilt[5, 0] = torch.nan
    given = packed.attend(spoilt, Reach(causal=True))
    assert given[5].isnan().all()
    assert torch.equal(given[others], found[others])
    for part in (1, 2):
        spoilt = rows.clone()
        spoilt[5, part] = torch.nan
        assert packed.attend(spoilt, Reach(causal=True))[5:].isnan().all()


@pytest.mark.parametrize(("dtype", "head_size"), WAYS, ids=str)
def test_scores_of_any_size_give_finite_weights(dtype: torch.dtype, head_size: int) -> None:
    packed = made_packed(2, head_size)
    rows = packed.rows.clone()
    rows[:, :2] *= 300
    rows = rows.to(dtype)
    wanted = random(sum(LENGTHS), 2, head_size).to(dtype)
    found, gradient = values_and_gradient(rows, packed, Reach(), wanted)
    assert found.isfinite().all()
    assert gradient.isfinite().all()
    # Almost every query sees one key alone, and the closest second ones decide little.
    assert relative_error(found, dense_attention(rows.double(), packed, Reach())) < 0.05


def test_tokens_in_no_order_of_their_sequences_and_gradients_of_a_sum_are_taken_as_they_lie() -> None:
    packed = made_packed(2, 4, groups=[[6, 0, 3], [5, 1, 4, 2]])
    turned = packed.rows.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0).requires_grad_()
    assert not turned.is_contiguous()
    found = packed.attend(turned, Reach())
    exact, exact_gradient = exact_values_and_gradient(packed.rows, packed, Reach(), torch.ones_like(found))
    assert_near(found.detach(), exact)
    found.sum().backward()
    assert turned.grad is not None
    assert_near(turned.grad, exact_gradient)


@pytest.mark.parametrize(("dtype", "head_size"), WAYS, ids=str)
def test_autocast_around_both_passes_changes_nothing(
    dtype: torch.dtype, head_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = made_packed(2, head_size, rotated=True)
    rows, wanted = packed.rows.to(dtype), random(sum(LENGTHS), 2, head_size, seed=9).to(dtype)
    expected = values_and_gradient(rows, packed, Reach(), wanted)
    real_call = attention.call

    def checked_call(name: str, *arguments: Any) -> None:
        # A kernel trusts what it is told: a tensor of half the size would be read and written beyond its end.
        trusted = {"rearrange_heads": slice(2, 4), "attention_softmax": slice(1, 3), "tiled_attention": slice(0, 3)}
        assert all(tensor is None or tensor.dtype == dtype for tensor in arguments[trusted[name]])
        real_call(name, *arguments)

    monkeypatch.setattr(attention, "call", checked_call)
    with torch.autocast("cpu", torch.bfloat16):
        given = values_and_gradient(rows, packed, Reach(), wanted)
    for one, other in zip(given, expected, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(("dtype", "head_size"), WAYS, ids=str)
def test_no_tokens_give_nothing(dtype: torch.dtype, head_size: int) -> None:
    packed = Packed(torch.empty(0, 3, 2, head_size, dtype=dtype), [], [])
    assert packed.attend(packed.rows, Reach()).shape == (0, 2, head_size)
