"""What dropout drops of what is added to the residual stream."""

from collections.abc import Callable

import pytest
import torch
from exact_results import TYPES, assert_rounded, is_a_share_of, random
from torch import Tensor, nn
from torch.nn import functional

from bertsmith.kernels.residual_norm import Stream, add_and_norm, add_then_norm

pytestmark = pytest.mark.usefixtures("way")

FUNCTIONS = {"add_then_norm": add_then_norm, "add_and_norm": add_and_norm}
RATES = [0.1, 0.5, 0.9]


def factors(rate: float, rows: int = 1000, width: int = 1000, dtype: torch.dtype = torch.float32) -> Tensor:
    """What dropout multiplies each number with; nothing stands in the stream, and ones are added."""
    norm = nn.LayerNorm(width)
    return add_and_norm(torch.zeros(rows, width), torch.ones(rows, width, dtype=dtype), norm, rate).exact.detach()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("rate", RATES)
def test_of_a_million_numbers_its_share_is_dropped_and_all_others_are_scaled_alike(
    rate: float, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    drawn = factors(rate, dtype=dtype)
    assert is_a_share_of(int((drawn == 0).sum()), drawn.numel(), rate)
    (scale,) = drawn[drawn != 0].unique().tolist()
    # Torch's own dropout of bf16 rounds what it scales.
    assert scale == pytest.approx(1 / (1 - rate), rel=3e-7 if dtype == torch.float32 else 2**-8)


@pytest.mark.parametrize("rate", RATES)
def test_neighbours_in_a_row_and_in_a_column_are_dropped_independently(rate: float) -> None:
    torch.manual_seed(1)
    dropped = factors(rate) == 0
    for step in (1, 2, 8, 16):
        across, down = dropped[:, step:] & dropped[:, :-step], dropped[step:] & dropped[:-step]
        assert is_a_share_of(int(across.sum()), across.numel(), rate * rate)
        assert is_a_share_of(int(down.sum()), down.numel(), rate * rate)


def test_every_row_and_every_column_has_its_share() -> None:
    torch.manual_seed(2)
    dropped = factors(0.3) == 0
    # Of 2,000 sums, none is further out than five standard deviations.
    for counts in (dropped.sum(0), dropped.sum(1)):
        assert all(is_a_share_of(count, 1000, 0.3) for count in counts.tolist())
    assert len(dropped.unique(dim=0)) == 1000


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("width", [1, 7, 128])
def test_values_and_gradients_are_those_of_the_numbers_that_were_kept(
    name: str, dtype: torch.dtype, width: int
) -> None:
    rows, rate = 60, 0.4
    norm = nn.LayerNorm(width)
    torch.manual_seed(3)
    drawn = factors(rate, rows, width).double()
    hidden, added = random(rows, width).requires_grad_(), random(rows, width, seed=1).to(dtype).requires_grad_()
    torch.manual_seed(3)
    stream = FUNCTIONS[name](hidden, added, norm, rate)
    wanted = random(rows, width, seed=2).bfloat16()
    (stream.exact * wanted.float()).sum().backward()

    exact_hidden, exact_added = (leaf.detach().double().requires_grad_() for leaf in (hidden, added))
    total = exact_hidden + exact_added * drawn
    normed = functional.layer_norm(total, (width,), eps=norm.eps)
    of_stream = normed if name == "add_then_norm" else total
    (of_stream * wanted.double()).sum().backward()
    # Torch's own dropout of bf16 rounds what it scales, before the sum.
    slack = 5e-6 if dtype == torch.float32 else 0.05
    torch.testing.assert_close(stream.exact.detach().double(), of_stream.detach(), atol=slack, rtol=0)
    assert hidden.grad is not None
    assert added.grad is not None
    assert exact_hidden.grad is not None
    assert exact_added.grad is not None
    torch.testing.assert_close(hidden.grad.double(), exact_hidden.grad, atol=10 * slack, rtol=0)
    torch.testing.assert_close(added.grad.double(), exact_added.grad, atol=10 * slack, rtol=0)
    assert not added.grad[drawn == 0].any()


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_the_backward_pass_drops_and_scales_exactly_what_the_forward_pass_did(dtype: torch.dtype) -> None:
    hidden = torch.zeros(300, 100)
    added = torch.ones(300, 100, dtype=dtype).requires_grad_()
    stream = add_and_norm(hidden, added, nn.LayerNorm(100), 0.25)
    stream.exact.sum().backward()
    assert added.grad is not None
    assert_rounded(added.grad, stream.exact.detach().double(), within=0.0)


def streams(draw: Callable[[float], Stream], rate: float, *seeds: int | None) -> list[Tensor]:
    """Streams that were drawn one after the other, with a seed set before where there is one."""
    drawn: list[Tensor] = []
    for seed in seeds:
        if seed is not None:
            torch.manual_seed(seed)
        drawn.append(draw(rate).exact.detach())
    return drawn


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_torchs_random_state_decides_what_is_dropped(name: str, dtype: torch.dtype) -> None:
    hidden, added, norm = random(20, 50), random(20, 50, seed=1).to(dtype), nn.LayerNorm(50)
    first, second, again, other = streams(lambda rate: FUNCTIONS[name](hidden, added, norm, rate), 0.2, 5, None, 5, 6)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert not torch.equal(first, other)
    state = torch.get_rng_state()
    follow = FUNCTIONS[name](hidden, added, norm, 0.2).exact
    assert not torch.equal(torch.get_rng_state(), state)
    torch.set_rng_state(state)
    assert torch.equal(FUNCTIONS[name](hidden, added, norm, 0.2).exact, follow)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_rate_of_zero_drops_nothing_to_the_bit(name: str, dtype: torch.dtype) -> None:
    hidden, added, norm = random(20, 50), random(20, 50, seed=1).to(dtype), nn.LayerNorm(50)
    total = hidden + added.float()
    torch.manual_seed(0)
    first, second = streams(lambda rate: FUNCTIONS[name](hidden, added, norm, rate), 0.0, None, 1)
    assert torch.equal(first, second)
    if name == "add_and_norm":
        assert torch.equal(first, total)
    # What is added may as well stand in the stream already, beside zeros of which half is dropped.
    assert torch.equal(FUNCTIONS[name](total, torch.zeros_like(added), norm, 0.5).exact, first)
