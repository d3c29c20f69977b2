"""What a comparison of models has found so far, and where it stands."""

import math
import statistics
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent.parent / "docs" / "experiments" / "quality"
ARMS = ("ours", "ours_same", "peer", "fresh")
Runs = dict[str, dict[str, float]]
"""Score and seconds of each arm and seed, such as ``ours 0``. Seconds belong to the machine that each ran on."""


def summary(runs: Runs) -> dict[str, Any]:
    """Mean of each arm, and its standard error where there are several seeds."""
    arms: dict[str, Any] = {}
    for arm in ARMS:
        scores = [run["score"] for name, run in runs.items() if name.rsplit(" ", 1)[0] == arm]
        if scores:
            error = statistics.stdev(scores) / math.sqrt(len(scores)) if len(scores) > 1 else None
            arms[arm] = {"seeds": len(scores), "mean": statistics.fmean(scores), "standard_error": error}
    return arms
