"""`python -m benchmarks`: all benchmarks, one after the other, each in a process of its own."""

import subprocess
import sys
from pathlib import Path

_NOT_QUESTIONS = {"__init__", "__main__", "measuring", "prepare_memory", "large_step", "adapting", "time_to_loss"}
"""What the others share, what `make soak` runs at full size, and what needs text to be named."""


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
