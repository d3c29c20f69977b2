"""Which way the tests of the kernels go: by the compiled library, or by torch alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from stand_in_compilers import forget_kernels

from bertsmith.kernels import library
from bertsmith.kernels.library import SWITCH, Kernels, kernels


def _skip_without_a_library() -> None:
    if kernels().library is None:
        pytest.skip(f"there are no kernels on this machine: {kernels().why_not}")


@pytest.fixture
def compiled() -> None:
    """The library, which what is tested cannot do without."""
    _skip_without_a_library()


@pytest.fixture(params=["kernels", "torch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Either way, for what both must give."""
    if request.param == "kernels":
        _skip_without_a_library()
        yield "kernels"
        return
    monkeypatch.setattr(library, "kernels", lambda: Kernels(None, "this test goes by torch alone"))
    forget_kernels()
    yield "torch"
    forget_kernels()


@pytest.fixture
def library_file() -> Path:
    """The compiled file of this machine."""
    _skip_without_a_library()
    loaded = kernels().library
    assert loaded is not None
    return Path(loaded._name)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where kernels are kept, empty; the kernels of this process are looked for anew, and once more afterwards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in (SWITCH, "CXX"):
        monkeypatch.delenv(name, raising=False)
    forget_kernels()
    yield tmp_path / "cache" / "bertsmith" / "kernels"
    forget_kernels()


@pytest.fixture
def two_threads() -> Iterator[None]:
    """As many threads, however many the machine has."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
