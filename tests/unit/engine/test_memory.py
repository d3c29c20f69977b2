"""Memory that is freed is there for what follows."""

import resource
import subprocess
import sys

import numpy as np
import pytest

from bertsmith.engine.memory import peak_memory_bytes

_SCRIPT = """
import resource, torch
from bertsmith.engine.memory import keep_freed_memory
if {keeps}:
    keep_freed_memory()
def use():
    for _ in range(8):
        torch.ones(1 << 23)
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _faults(*, keeps: bool) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(keeps=keeps)], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc is told")
def test_memory_that_is_kept_is_not_faulted_in_anew() -> None:
    pages = 8 * (4 << 23) // resource.getpagesize()
    assert _faults(keeps=False) > pages / 20, "blocks of 32 MiB go back to the system by default, whatever its pages"
    assert _faults(keeps=True) < 100


def test_the_peak_stays_when_memory_is_given_back() -> None:
    before = peak_memory_bytes()
    assert before is not None
    assert before > 50 << 20
    held = np.ones((before >> 2) + (64 << 20) // 8)
    assert held.nbytes > before
    del held
    after = peak_memory_bytes()
    assert after is not None
    assert after >= before + (64 << 20)


def test_where_the_system_does_not_tell_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_memory_bytes() is None
