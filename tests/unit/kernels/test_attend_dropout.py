"""Which attention weights dropout drops, and that both passes drop the same ones."""

import pytest
import torch
from dense_attention import (
    ALL_TOGETHER,
    BY_LENGTH,
    LENGTHS,
    REACHES,
    Packed,
    dense_attention,
    made_packed,
    seen,
    softmax_weights,
)
from exact_results import is_a_share_of, random, relative_error
from torch import Tensor

from bertsmith.kernels import attention
from bertsmith.model import attention_reach
from bertsmith.model.attention_reach import Reach

pytestmark = pytest.mark.usefixtures("compiled")

RATE = 0.3
WAYS = [(torch.float32, 16), (torch.bfloat16, 16), (torch.bfloat16, 32)]
"""A type and a size of head for each way that attention goes."""
WIDE_WAYS = [(torch.float32, 40), (torch.bfloat16, 40), (torch.bfloat16, 64)]
"""With room for a weight of each of 40 keys."""


@pytest.fixture(params=["whole", "in parts"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether all is taken at once, or a sequence and two or more of its queries at a time."""
    if request.param == "in parts":
        monkeypatch.setattr(attention, "_BLOCK_ELEMENTS", 1)
        monkeypatch.setattr(attention_reach, "_LEAST_QUERIES", 2)
        monkeypatch.setattr(attention_reach, "_LARGEST_TILE", 1)
    return request.param


def used_weights(packed: Packed, rows: Tensor, reach: Reach, seed: int, rate: float = RATE) -> list[Tensor]:
    """The weights ``[heads, queries, keys]`` of each sequence after dropout: values are unit vectors."""
    rows = rows.clone()
    for place in packed.places:
        length = place.stop - place.start
        rows[place, 2] = torch.eye(length, rows.shape[-1], dtype=rows.dtype)[:, None]
    torch.manual_seed(seed)
    found = packed.attend(rows, reach, rate)
    return [
        found[place].transpose(0, 1)[..., :length] for place, length in zip(packed.places, packed.lengths, strict=True)
    ]


def kept_weights(packed: Packed, rows: Tensor, reach: Reach, seed: int, rate: float = RATE) -> list[Tensor]:
    return [weights != 0 for weights in used_weights(packed, rows, reach, seed, rate)]


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(("dtype", "head_size"), WAYS, ids=str)
@pytest.mark.parametrize("reach", REACHES, ids=str)
@pytest.mark.parametrize("groups", [ALL_TOGETHER, BY_LENGTH], ids=["one block", "blocks by length"])
def test_weights_are_dropped_or_raised_and_nothing_else(
    dtype: torch.dtype, head_size: int, reach: Reach, groups: list[list[int]]
) -> None:
    packed = made_packed(3, head_size, groups=groups)
    rows = packed.rows.to(dtype)
    exact = softmax_weights(rows.double(), packed, reach)
    tolerance = 1e-6 if dtype == torch.float32 else 2e-2
    for used, whole in zip(used_weights(packed, rows, reach, 0), exact, strict=True):
        kept = used != 0
        torch.testing.assert_close(used.double(), whole * kept / (1 - RATE), atol=tolerance, rtol=0)
        assert not (kept & (whole == 0)).any()


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(("dtype", "head_size"), WAYS, ids=str)
@pytest.mark.parametrize("reach", REACHES, ids=str)
@pytest.mark.parametrize("groups", [ALL_TOGETHER, BY_LENGTH], ids=["one block", "blocks by length"])
def test_values_and_gradients_are_those_of_the_weights_that_were_kept(
    dtype: torch.dtype, head_size: int, reach: Reach, groups: list[list[int]]
) -> None:
    packed = made_packed(3, head_size, groups=groups, rotated=True)
    rows, wanted = packed.rows.to(dtype), random(sum(LENGTHS), 3, head_size, seed=9).to(dtype)
    # What is dropped depends on the seed and the place, not on the values.
    factors = [kept / (1 - RATE) for kept in kept_weights(packed, rows, reach, 4)]
    leaf, exact_leaf = rows.clone().requires_grad_(), rows.double().requires_grad_()
    torch.manual_seed(4)
    found = packed.attend(leaf, reach, RATE)
    exact = dense_attention(exact_leaf, packed, reach, factors)
    (gradient,) = torch.autograd.grad(found, leaf, wanted)
    (exact_gradient,) = torch.autograd.grad(exact, exact_leaf, wanted.double())
    if dtype == torch.float32:
        torch.testing.assert_close(found.detach().double(), exact.detach(), atol=1e-5, rtol=0)
        torch.testing.assert_close(gradient.double(), exact_gradient, atol=1e-5, rtol=0)
    else:
        assert relative_error(found.detach(), exact.detach()) < 2e-2
        assert relative_error(gradient, exact_gradient) < 2e-2


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(("dtype", "head_size"), WIDE_WAYS, ids=str)
def test_no_two_rows_of_weights_lose_the_same_ones(dtype: torch.dtype, head_size: int) -> None:
    packed = made_packed(4, head_size, lengths=[40] * 5, groups=[[0, 2, 4], [1, 3]])
    kept = torch.cat([one.flatten(0, 1) for one in kept_weights(packed, packed.rows.to(dtype), Reach(), 0, rate=0.5)])
    assert len(kept.unique(dim=0)) == len(kept) == 5 * 4 * 40


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(("dtype", "head_size"), WIDE_WAYS, ids=str)
def test_weights_are_dropped_independently_of_their_neighbours(dtype: torch.dtype, head_size: int) -> None:
    packed = made_packed(4, head_size, lengths=[40] * 5, groups=[[0, 2, 4], [1, 3]])
    dropped = ~torch.stack(kept_weights(packed, packed.rows.to(dtype), Reach(), 1))
    assert is_a_share_of(int(dropped.sum()), dropped.numel(), RATE)
    for axis in range(4):
        for step in (1, 2):
            length = dropped.shape[axis] - step
            both = dropped.narrow(axis, step, length) & dropped.narrow(axis, 0, length)
            assert is_a_share_of(int(both.sum()), both.numel(), RATE * RATE)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("reach", REACHES, ids=str)
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("dtype", "head_size"), WIDE_WAYS, ids=str)
def test_its_share_of_the_weights_is_dropped_wherever_a_token_sees(
    dtype: torch.dtype, head_size: int, reach: Reach, rate: float
) -> None:
    packed = made_packed(4, head_size, lengths=[24, 17, 24, 9, 24], groups=[[0, 1, 2, 3, 4]])
    counts = [
        (int((~kept & seen(reach, kept.shape[-1])).sum()), int(seen(reach, kept.shape[-1]).sum()) * 4)
        for kept in kept_weights(packed, packed.rows.to(dtype), reach, 2, rate)
    ]
    assert is_a_share_of(sum(count for count, _ in counts), sum(total for _, total in counts), rate)


@pytest.mark.parametrize(("dtype", "head_size"), WAYS, ids=str)
def test_torchs_random_state_decides_which_weights_are_dropped(dtype: torch.dtype, head_size: int) -> None:
    packed = made_packed(2, head_size)
    rows = packed.rows.to(dtype)
    torch.manual_seed(5)
    first, second = (packed.attend(rows, Reach(), RATE) for _ in range(2))
    torch.manual_seed(5)
    again = packed.attend(rows, Reach(), RATE)
    torch.manual_seed(6)
    other = packed.attend(rows, Reach(), RATE)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(("dtype", "head_size"), WAYS, ids=str)
def test_without_dropout_nothing_is_drawn(dtype: torch.dtype, head_size: int) -> None:
    packed = made_packed(2, head_size)
    rows = packed.rows.to(dtype)
    state = torch.get_rng_state()
    first = packed.attend(rows, Reach())
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(1)
    assert torch.equal(packed.attend(rows, Reach()), first)
