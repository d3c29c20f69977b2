"""The blocked cross-entropy against torch's own over whole logits."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from bertsmith.examples.targets import IGNORED
from bertsmith.objectives import vocabulary_scores
from bertsmith.objectives.vocabulary_loss import vocabulary_loss

WIDTH = 12


def _parts(rows: int, vocabulary: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(rows * 1000 + vocabulary)
    features = torch.randn(rows, WIDTH, dtype=dtype, generator=generator).requires_grad_()
    projection = torch.randn(vocabulary, WIDTH, dtype=dtype, generator=generator).requires_grad_()
    bias = torch.randn(vocabulary, dtype=dtype, generator=generator).requires_grad_()
    targets = torch.randint(vocabulary, (rows,), generator=generator)
    return features, projection, bias, targets


@pytest.mark.parametrize("rows", [0, 1, 37])
@pytest.mark.parametrize("block_width", [1, 7, 64, 101, 1000])
def test_loss_and_gradients_are_those_of_cross_entropy(
    rows: int, block_width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary_scores, "LEAST_BLOCK_WIDTH", 1)
    features, projection, bias, targets = _parts(rows, 101)
    block_elements = block_width * max(1, rows)
    ours = vocabulary_loss(features, projection, bias, targets, with_hits=True, block_elements=block_elements)
    logits = features @ projection.T + bias
    reference = functional.cross_entropy(logits, targets, reduction="sum")
    assert ours.total.dtype == torch.float64
    assert float(ours.total.detach()) == pytest.approx(float(reference.detach()), abs=1e-12, rel=1e-13)
    assert ours.hits is not None
    assert int(ours.hits) == int((logits.argmax(1) == targets).sum())
    # Scaled, as a mean would do it.
    found = torch.autograd.grad(ours.total / 3, (features, projection, bias))
    expected = torch.autograd.grad(reference / 3, (features, projection, bias))
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-12, rtol=0)


def test_gradients_pass_a_numerical_check() -> None:
    features, projection, bias, targets = _parts(4, 300)

    def loss(features: Tensor, bias: Tensor) -> Tensor:
        return vocabulary_loss(features, projection, bias, targets, with_hits=False, block_elements=1).total

    assert torch.autograd.gradcheck(loss, (features, bias))


def test_a_target_that_is_ignored_adds_no_loss_no_hit_and_no_gradient() -> None:
    features, projection, bias, targets = _parts(20, 300)
    with torch.no_grad():
        # Every row is right, so that an ignored one that counted would be a hit.
        targets = (features @ projection.T + bias).argmax(1)
    kept = torch.arange(20) % 3 != 0
    ours = vocabulary_loss(
        features, projection, bias, torch.where(kept, targets, IGNORED), with_hits=True, block_elements=1
    )
    alone = vocabulary_loss(features[kept], projection, bias, targets[kept], with_hits=True, block_elements=1)
    assert float(ours.total.detach()) == pytest.approx(float(alone.total.detach()), abs=1e-12)
    assert ours.hits is not None
    assert int(ours.hits) == int(kept.sum())
    found = torch.autograd.grad(ours.total, (features, projection, bias))
    expected = torch.autograd.grad(alone.total, (features, projection, bias))
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-12, rtol=0)
    assert (found[0][~kept] == 0).all()


def test_hits_are_left_out_where_not_asked_for() -> None:
    assert vocabulary_loss(*_parts(3, 50), with_hits=False).hits is None


@pytest.mark.parametrize("scale", [1e4, 1e18, 1e-30])
def test_huge_and_tiny_logits_give_finite_losses_and_gradients(scale: float) -> None:
    features, projection, bias, targets = (
        part.detach().float().requires_grad_() if part.is_floating_point() else part for part in _parts(16, 700)
    )
    ours = vocabulary_loss(features, projection, bias * scale, targets, with_hits=True, block_elements=1)
    found = torch.autograd.grad(ours.total, (features, projection, bias))
    assert torch.isfinite(ours.total)
    for gradient in found:
        assert torch.isfinite(gradient).all()
    reference = functional.cross_entropy(features @ projection.T + bias * scale, targets, reduction="sum")
    assert float(ours.total.detach()) == pytest.approx(float(reference.detach()), rel=1e-5)


class _LargestTensor(TorchDispatchMode):
    """Notes the number of elements of the largest tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else [result]:
            if isinstance(value, Tensor):
                self.elements = max(self.elements, value.numel())
        return result


def test_no_tensor_ever_holds_all_logits() -> None:
    rows, vocabulary = 400, 5000
    features, projection, bias, targets = _parts(rows, vocabulary, torch.float32)
    with _LargestTensor() as largest:
        total = vocabulary_loss(features, projection, bias, targets, with_hits=True, block_elements=rows * 300).total
        total.backward()
    # The gradient of the projection is as large as the projection; logits are never larger than a block.
    assert largest.elements == max(vocabulary * WIDTH, rows * 300)
    with _LargestTensor() as largest:
        functional.cross_entropy(features @ projection.T + bias, targets).backward()
    assert largest.elements == rows * vocabulary


def test_bf16_products_are_near_the_exact_ones() -> None:
    features, projection, bias, targets = _parts(200, 600, torch.float32)
    exact = vocabulary_loss(features, projection, bias, targets, with_hits=False)
    with torch.autocast("cpu", torch.bfloat16):
        rough = vocabulary_loss(features, projection, bias, targets, with_hits=False)
    assert rough.total.dtype == torch.float32
    assert float(rough.total.detach()) == pytest.approx(float(exact.total.detach()), rel=5e-3)
    assert float(rough.total.detach()) != float(exact.total.detach())
    found = torch.autograd.grad(rough.total, (features, projection, bias))
    expected = torch.autograd.grad(exact.total, (features, projection, bias))
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == torch.float32
        assert float((one - other).norm() / other.norm()) < 0.02
