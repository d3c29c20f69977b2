"""How far a token sees, and the tiles in which that is computed."""

import pytest
import torch

from bertsmith.model import attention_reach as module
from bertsmith.model.attention_reach import Reach

CPU = torch.device("cpu")
REACHES = [
    Reach(),
    Reach(causal=True),
    Reach(half_window=1),
    Reach(half_window=3),
    Reach(half_window=64),
    Reach(causal=True, half_window=3),
]


def allowed(reach: Reach, longest: int) -> torch.Tensor:
    """Pair by pair, as the fields say."""
    seen = [
        [
            (not reach.causal or key <= query) and (reach.half_window is None or abs(key - query) <= reach.half_window)
            for key in range(longest)
        ]
        for query in range(longest)
    ]
    return torch.tensor(seen)


def covered(reach: Reach, longest: int, heads: int) -> torch.Tensor:
    """How often each pair of query and key is computed."""
    counts = torch.zeros(longest, longest, dtype=torch.long)
    for queries, keys, mask in reach.tiles(longest, heads):
        counts[queries, keys] += 1 if mask is None else mask.long()
    return counts


@pytest.mark.parametrize("reach", REACHES, ids=str)
@pytest.mark.parametrize("longest", [1, 2, 5, 17, 65, 66, 130])
def test_a_mask_allows_what_the_fields_say_and_is_none_where_it_hides_nothing(reach: Reach, longest: int) -> None:
    expected, mask = allowed(reach, longest), reach.mask(longest, CPU)
    if longest > 1 or not reach.causal:
        assert reach.restricts(longest) == (not expected.all())
    assert torch.equal(torch.ones_like(expected) if mask is None else mask, expected)


@pytest.mark.parametrize("reach", REACHES, ids=str)
@pytest.mark.parametrize("longest", [1, 2, 5, 17, 65, 130, 300])
def test_tiles_cover_every_allowed_pair_once_and_no_other(reach: Reach, longest: int) -> None:
    assert torch.equal(covered(reach, longest, heads=4), allowed(reach, longest).long())


@pytest.mark.parametrize("reach", REACHES, ids=str)
@pytest.mark.parametrize("least", [1, 2, 3])
@pytest.mark.parametrize("longest", [1, 2, 7, 16, 31])
def test_small_tiles_cover_them_too(reach: Reach, least: int, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST_TILE", 1)
    monkeypatch.setattr(module, "_LEAST_QUERIES", least)
    assert torch.equal(covered(reach, longest, heads=2), allowed(reach, longest).long())
    tiles = list(reach.tiles(longest, heads=2))
    assert len(tiles) >= min(-(-longest // max(least, 2 * (reach.half_window or 0))), longest)


def test_a_window_makes_few_scores_that_nobody_reads() -> None:
    reach, longest = Reach(half_window=64), 2048
    made = sum(
        (queries.stop - queries.start) * (keys.stop - keys.start) for queries, keys, _ in reach.tiles(longest, 12)
    )
    assert made < 2.1 * longest * 129


def test_a_long_sequence_never_has_all_its_scores_at_once() -> None:
    for queries, keys, _ in Reach().tiles(8192, heads=12):
        assert 12 * (queries.stop - queries.start) * (keys.stop - keys.start) <= 1 << 23
