"""What the benchmarks share: runs in turn, medians, and the JSON that is committed."""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(__file__).parent.parent / "docs" / "benchmarks"


def in_turn(runs: Mapping[str, Callable[[], object]], *, rounds: int, warmup: int = 2) -> dict[str, list[float]]:
    """Seconds of each run, A B A B …, after some rounds that are not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(warmup + rounds):
        for name, run in runs.items():
            started_at = time.perf_counter()
            run()
            if number >= warmup:
                seconds[name].append(time.perf_counter() - started_at)
    return seconds


def contest(module: str, names: Sequence[str], *, rounds: int, warmup: int = 2) -> dict[str, list[float]]:
    """Seconds of each contestant, A B A B …, each in a process of its own.

    So what one does to its process, such as how memory is handed out, does nothing to another. A contestant is
    ``python -m benchmarks.<module> --contestant NAME``, whose `main` calls `serve`.
    """
    processes = {
        name: subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.{module}", "--contestant", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    }
    try:
        return in_turn(
            {name: lambda at=at: _one_round(at) for name, at in processes.items()}, rounds=rounds, warmup=warmup
        )
    finally:
        for process in processes.values():
            process.communicate()


def _one_round(process: "subprocess.Popen[str]") -> None:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a contestant needs pipes")
    process.stdin.write("go\n")
    process.stdin.flush()
    if process.stdout.readline() != "done\n":
        raise RuntimeError(f"a contestant ended: {process.args}")


@dataclass(frozen=True)
class Turn:
    """What a command took."""

    seconds: float
    processor_seconds: float
    """Of all of its processes."""


def commands_in_turn(
    commands: Mapping[str, Callable[[Path], Sequence[str]]],
    *,
    rounds: int,
    warmup: int = 1,
    seen: Callable[[str, Path], object] = lambda name, folder: None,
) -> dict[str, list[Turn]]:
    """What each command takes, A B A B …, started anew each time, in an empty folder that is removed afterwards.

    Args:
        commands: by name, what makes a command out of the folder that it may write into.
        rounds: how often each one is counted.
        warmup: rounds before that: they read the programs from disk.
        seen: is shown what each counted command left in its folder.
    """
    turns: dict[str, list[Turn]] = {name: [] for name in commands}
    for number in range(warmup + rounds):
        for name, command in commands.items():
            with tempfile.TemporaryDirectory() as folder:
                # What the peers' libraries keep between runs goes the same way.
                kept = {"HF_HOME": f"{folder}/kept", "HF_HUB_OFFLINE": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
                environment = {**os.environ, **kept}
                arguments = command(Path(folder))
                before, started_at = _processor_seconds(), time.perf_counter()
                subprocess.run(arguments, check=True, env=environment, stdout=subprocess.DEVNULL)
                turn = Turn(time.perf_counter() - started_at, _processor_seconds() - before)
                if number >= warmup:
                    turns[name].append(turn)
                    seen(name, Path(folder))
    return turns


def _processor_seconds() -> float:
    """What all processes took that were waited for so far."""
    used = os.times()
    return used.children_user + used.children_system


def serve(run: Callable[[], object]) -> None:
    """Run once for each line of standard input, until it ends."""
    for _ in sys.stdin:
        run()
        print("done", flush=True)


def machine() -> dict[str, Any]:
    """What a reader must know of where this was measured."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").is_file():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        model = names[0] if names else model
    return {
        "processor": model,
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "date": date.today().isoformat(),
        "commit": _commit(),
    }


def write_part(name: str, part: str, values: dict[str, Any]) -> Path:
    """Write one part of a benchmark's JSON, with the machine that it was measured on; the other parts stay."""
    path = RESULTS / f"{name}.json"
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    text = json.dumps({**before, part: {"machine": machine(), **values}}, indent=2, ensure_ascii=False)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    print(json.dumps({part: values}, indent=2, ensure_ascii=False), flush=True)
    return path


def summary(seconds: list[float]) -> dict[str, float]:
    """Median, fastest and slowest, in milliseconds."""
    return {
        "median_ms": round(1e3 * statistics.median(seconds), 2),
        "min_ms": round(1e3 * min(seconds), 2),
        "max_ms": round(1e3 * max(seconds), 2),
    }


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"
