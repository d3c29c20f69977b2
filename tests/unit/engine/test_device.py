"""Where a run runs."""

import pytest
import torch

from bertsmith.engine.device import Device, choose_device
from bertsmith.foundation.errors import InputError


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
