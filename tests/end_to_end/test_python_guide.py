"""The guide to Python runs from its first line to its last."""

import re
from pathlib import Path
from typing import Any

import pytest

from made_tasks import made_encoder, made_rows, write_rows

ROOT = Path(__file__).parents[2]
_BLOCKS = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), re.M | re.S)


def test_the_guide_to_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-bert").mkdir()
    made_encoder(tmp_path / "my-bert" / "model")
    write_rows(tmp_path / "train.csv", made_rows({"wet": 30, "dry": 30}))
    names: dict[str, Any] = {}
    assert len(_BLOCKS) >= 5
    for block in _BLOCKS:
        exec(compile(block, "docs/python.md", "exec"), names)
    assert (names["same"][0, : len(names["texts"][0])] - names["hidden"][: len(names["texts"][0])]).abs().max() < 1e-5
    assert (tmp_path / "head.svg").is_file()
    assert (tmp_path / "my-own-classifier" / "config.json").is_file()
