"""A Hub on this machine, and a folder from elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from made_foreign import write_foreign

from hub_server import HubServer, serving, stand_in_for_the_hub


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with serving() as server:
        stand_in_for_the_hub(server, monkeypatch, tmp_path / "home")
        yield server


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A BERT with all pre-training heads, as other programs leave it."""
    return write_foreign(tmp_path / "foreign")
