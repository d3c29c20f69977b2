"""What a given time makes: does a run end inside it, and is the loss lower for more of it?

    python -m benchmarks.minutes TEXT [TEXT …] --work DIR [--minutes 1 4 15 60] [--held-out LINES.txt] [--set KEY=VALUE]

Each time is one command, `bertsmith pretrain TEXT --minutes M`, in a process of its own, measured from its start to its
end: start of Python, tokenizer, corpus, training with its decay, final validation and the folder too. What the command
chose (size, vocabulary, batch) is taken from its run. A run that is there is not run again, so that an hour need not be
spent twice: its time is the one that was written beside it.

The vocabulary depends on the text alone, and the held-out part of the corpus too, so losses of one text compare; with
LINES that no run has seen, the cost of a hidden character is told as well (`benchmarks/hidden_words.py`).
"""

import argparse
import json
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import bertsmith
from benchmarks.hidden_words import hidden_words, nats_a_character
from benchmarks.measuring import write_part

MINUTES = (1.0, 4.0, 15.0, 60.0)


def train(sources: list[Path], out: Path, minutes: float, settings: list[str]) -> float:
    """Seconds that the command takes; those of the one that made `out`, where that is finished."""
    noted = out.parent / f"{out.name}.seconds.json"
    if noted.is_file():
        return float(json.loads(noted.read_text(encoding="utf-8")))
    command = [sys.executable, "-m", "bertsmith", "pretrain", *map(str, sources), "--out", str(out), "--restart"]
    assigned = [part for setting in settings for part in ("--set", setting)]
    started_at = time.monotonic()
    subprocess.run([*command, "--minutes", f"{minutes:g}", *assigned], check=True)
    seconds = time.monotonic() - started_at
    noted.write_text(json.dumps(seconds), encoding="utf-8")
    return seconds


def told(out: Path, minutes: float, seconds: float) -> dict[str, Any]:
    """What came of a run."""
    record = tomllib.loads((out / "run.toml").read_text(encoding="utf-8"))["record"]
    info = bertsmith.info(out / "model")
    return {
        "minutes": minutes,
        "minutes_taken": round(seconds / 60, 3),
        "share_of_time": round(seconds / 60 / minutes, 4),
        "parameters": info["parameters"],
        "chosen": record.get("chosen"),
        "steps": record["steps"],
        "tokens": record["tokens"],
        "validation_loss": record["metrics"]["loss"],
    }


def main() -> None:
    """Run what is missing, shortest first, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--name", help="Of the text, in the JSON; that of the first source where not given.")
    parser.add_argument("--minutes", nargs="+", type=float, default=MINUTES)
    parser.add_argument("--held-out", type=Path)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    words = None
    if args.held_out:
        words = hidden_words(args.held_out.read_text(encoding="utf-8").splitlines())
    runs: list[dict[str, Any]] = []
    for minutes in sorted(args.minutes):
        out = args.work / f"{minutes:g}-minutes"
        values = told(out, minutes, train(args.sources, out, minutes, args.settings))
        if words:
            values["nats_a_hidden_character"] = round(nats_a_character(out / "model", words), 4)
        runs.append(values)
    write_part("minutes", args.name or args.sources[0].stem, {"settings": args.settings, "runs": runs})


if __name__ == "__main__":
    main()
