"""The tables of all data sets that were compared so far, and what they come to.

python -m benchmarks.quality.table
"""

import argparse
import json
from typing import Any

from benchmarks.quality.results import RESULTS

_LEAST_MARGIN = 0.003
"""By which a mean may lie below the other's, where two standard errors are less."""

_BESIDE_TRAINER = {
    "peer": "Trainer, its defaults",
    "ours_same": "ours, the same settings",
    "ours": "ours, our defaults",
}
_BESIDE_FRESH = {"ours": "pre-trained here", "fresh": "the same from random weights"}
"""Columns of a table by the arm that each shows."""


def standard_error_of_difference(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Of the difference of two means; 0 where there are too few seeds to tell."""
    return ((one["standard_error"] or 0.0) ** 2 + (other["standard_error"] or 0.0) ** 2) ** 0.5


def is_no_worse(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether ours is below theirs by 0.3 points or two standard errors at most, whichever is larger."""
    margin = max(_LEAST_MARGIN, 2 * standard_error_of_difference(ours, theirs))
    return ours["mean"] >= theirs["mean"] - margin


def is_better(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether it is above by more than two standard errors."""
    return ours["mean"] - theirs["mean"] > 2 * standard_error_of_difference(ours, theirs)


def table(results: list[dict[str, Any]], columns: dict[str, str]) -> list[str]:
    """Lines of Markdown, one a data set."""
    lines = [["data (score)", *columns.values()], ["---"] * (1 + len(columns))]
    for result in results:
        means = [_mean(result["arms"].get(arm)) for arm in columns]
        lines.append([f"{result['name']} ({result['score']})", *means])
    return [f"| {' | '.join(line)} |" for line in lines]


def _mean(arm: dict[str, Any] | None) -> str:
    if arm is None:
        return "–"
    error = "" if arm["standard_error"] is None else f" ± {100 * arm['standard_error']:.2f}"
    return f"{100 * arm['mean']:.2f}{error} ({arm['seeds']})"


def verdicts(results: list[dict[str, Any]]) -> list[str]:
    """What the table comes to, in a sentence each."""
    asked: list[tuple[str, str, str, Any]] = [
        ("same settings: ours is not below", "ours_same", "peer", is_no_worse),
        ("defaults: ours has the higher mean", "ours", "peer", lambda one, other: one["mean"] > other["mean"]),
        ("pre-training beats random weights by more than two standard errors", "ours", "fresh", is_better),
    ]
    told: list[str] = []
    for words, first, second, holds in asked:
        both = [result["arms"] for result in results if {first, second} <= result["arms"].keys()]
        told.append(f"{words} on {sum(holds(arms[first], arms[second]) for arms in both)} of {len(both)}")
    return told


def main() -> None:
    """Print it as Markdown."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))]
    beside_fresh = [result for result in results if "fresh" in result["arms"]]
    beside_trainer = [result for result in results if result not in beside_fresh]
    print(*table(beside_trainer, _BESIDE_TRAINER), "", *table(beside_fresh, _BESIDE_FRESH), "", sep="\n")
    for verdict in verdicts(results):
        print(f"* {verdict}")


if __name__ == "__main__":
    main()
