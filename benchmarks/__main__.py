"""`python -m benchmarks`: all benchmarks, one after the other, each in a process of its own."""

import subprocess
import sys
from pathlib import Path

_SHARED = {"__init__", "__main__", "measuring", "embedding_peers"}
_AT_FULL_SIZE = {"prepare_memory", "large_step"}
"""What `make soak` runs."""
_OF_NAMED_TEXT = {"adapting", "cold_start", "time_to_loss", "hidden_words", "minutes", "fewer_tokens", "embedding"}
_NOT_QUESTIONS = _SHARED | _AT_FULL_SIZE | _OF_NAMED_TEXT


def main() -> int:
    """Run each; the exit code is that of the last one that failed."""
    failed = 0
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem not in _NOT_QUESTIONS:
            print(f"== {path.stem}", flush=True)
            failed = subprocess.run([sys.executable, "-m", f"benchmarks.{path.stem}"], check=False).returncode or failed
    return failed


if __name__ == "__main__":
    sys.exit(main())
