"""Preparing a corpus takes what it needs and no more."""

import subprocess
import sys


def test_preparing_a_corpus_loads_no_torch() -> None:
    script = "import sys, bertsmith.recipes.prepare, bertsmith.corpus.workers; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
