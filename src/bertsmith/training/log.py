"""`log.jsonl`: one JSON object a line, each step once, also after a resume."""

import json
import math
from pathlib import Path
from typing import Any

from bertsmith.foundation.files import disk_room, write_file
from bertsmith.training.events import EndedEarly, Event, Progress, Sampled, StepsDecided, Validated


class LogWriter:
    """An observer that appends to a run's log.

    Args:
        path: the log.
        resumed_at: steps of the checkpoint that the run goes on from; what the log says of later ones is dropped.
    """

    def __init__(self, path: Path, *, resumed_at: int) -> None:
        self._path = path
        kept = [entry for entry in read_log(path) if entry["step"] <= resumed_at] if resumed_at else []
        write_file(path, "".join(_line(entry) for entry in kept))

    def __call__(self, event: Event) -> None:
        """Write the events that belong into the log."""
        match event:
            case Progress():
                entry = {
                    "kind": "train",
                    "step": event.step,
                    "epoch": round(event.epoch, 4),
                    "tokens": event.tokens,
                    "loss": event.loss,
                    **{f"{term}_loss": loss for term, loss in event.losses.items() if len(event.losses) > 1},
                    "learning_rate": event.learning_rate,
                    "tokens_per_second": round(event.tokens_per_second, 1),
                    "seconds_left": round(event.seconds_left, 1),
                }
            case Validated():
                entry = {"kind": "validation", "step": event.step, **event.metrics}
            case Sampled():
                entry = {"kind": "samples", "step": event.step, "lines": list(event.lines)}
            case StepsDecided():
                entry = {"kind": "decision", "step": event.step, "total_steps": event.total_steps}
            case EndedEarly():
                entry = {"kind": "ended early", "step": event.step, "best_step": event.best_step}
            case _:
                return
        with disk_room(self._path.parent), open(self._path, "a", encoding="utf-8", newline="\n") as file:
            file.write(_line(entry))


def read_log(path: Path) -> list[dict[str, Any]]:
    """The entries of a log. A last line that a power cut left unfinished is passed over."""
    if not path.is_file():
        return []
    entries: list[dict[str, Any]] = []
    # The cut may have gone through a letter, so bytes are parted into lines and not text.
    for line in path.read_bytes().split(b"\n"):
        try:
            entries.append(json.loads(line))
        except ValueError:
            continue
    return [{name: math.nan if value is None else value for name, value in entry.items()} for entry in entries]


def _line(entry: dict[str, Any]) -> str:
    told = {name: None if _is_no_number(value) else value for name, value in entry.items()}
    return json.dumps(told, ensure_ascii=False) + "\n"


def _is_no_number(value: Any) -> bool:
    """Whether JSON has no word for a value."""
    return isinstance(value, float) and not math.isfinite(value)
