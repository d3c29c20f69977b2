"""What a benchmark says of how it is called is how it is called."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_CALL = re.compile(r"^ +python (-m benchmarks\.\w+|benchmarks/\w+\.py)", re.MULTILINE)


def _calls() -> list[str]:
    texts = [
        ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")), clean=False) or ""
        for path in sorted((ROOT / "benchmarks").rglob("*.py"))
    ]
    return sorted({call for text in texts for call in _CALL.findall(text)})


def test_calls_are_found() -> None:
    assert len(_calls()) >= 3


@pytest.mark.parametrize("call", _calls())
def test_a_call_begins(call: str) -> None:
    # The path of this process would find the package wherever a person's own does not.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    found = subprocess.run(
        [sys.executable, *call.split(), "--help"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert found.returncode == 0, found.stderr
    assert "usage:" in found.stdout
