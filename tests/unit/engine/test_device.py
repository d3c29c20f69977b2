"""Where a run runs."""

import ctypes

import pytest
import torch

from bertsmith.engine import device as of_device
from bertsmith.engine.device import Device, choose_device, kernels_used
from bertsmith.foundation.errors import InputError
from bertsmith.kernels.library import Kernels


def test_what_was_said_is_taken() -> None:
    assert choose_device("cpu", "fp32") == Device("cpu", "fp32")
    assert choose_device("cpu", "bf16") == Device("cpu", "bf16")


def test_what_was_not_said_is_chosen() -> None:
    device = choose_device()
    assert device.name == ("cuda" if torch.cuda.is_available() else "cpu")
    assert device.precision in ("fp32", "bf16")


@pytest.mark.parametrize("name", ["cpuu", "cuda:99", "gpu", ""])
def test_a_device_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="--device must name a device of this machine"):
        choose_device(name, "fp32")


def test_an_unknown_precision_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"--precision must be one of.*Did you mean bf16\?"):
        choose_device("cpu", "bf6")


@pytest.mark.parametrize(("precision", "expected"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_matrix_products_run_in_the_precision_and_only_inside_the_block(precision: str, expected: torch.dtype) -> None:
    matrix = torch.ones(4, 4)
    with choose_device("cpu", precision).matrix_precision():
        assert (matrix @ matrix).dtype == expected
    assert (matrix @ matrix).dtype == torch.float32


def test_kernels_are_told_as_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_device, "kernels", lambda: Kernels(ctypes.CDLL(None)))
    for multiplies, expected in ((True, "all"), (False, "without_products")):
        monkeypatch.setattr(of_device, "multiplies", lambda multiplies=multiplies: multiplies)
        assert kernels_used(Device("cpu", "bf16")) == expected
        assert kernels_used(Device("cpu", "fp32")) == "without_products"
        assert kernels_used(Device("cuda", "bf16")) == "none"
    monkeypatch.setattr(of_device, "kernels", lambda: Kernels(None, "there is no compiler"))
    assert kernels_used(Device("cpu", "bf16")) == "none"
