"""Showing events and results: lines or a live bar on standard error, results on standard output."""

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import typer

from bertsmith.text.shown import counted

_LINE_EVERY_SECONDS, _LIVE_EVERY_SECONDS = 10.0, 0.2
_MOST_SCORES = 4


def note(message: str) -> None:
    """A line for people, on standard error."""
    with _vanished_terminal():
        typer.echo(message, err=True)


def result(values: Mapping[str, Any], *, as_json: bool) -> None:
    """A result on standard output: one JSON line, or an aligned list."""
    if as_json:
        typer.echo(json.dumps(values, ensure_ascii=False, default=str))
        return
    width = max((len(name) for name in values), default=0)
    for name, value in values.items():
        typer.echo(f"{name.replace('_', ' '):<{width}}  {_shown(value)}")


def _shown(value: Any) -> str:
    match value:
        case bool() | None:
            return {True: "yes", False: "no", None: "–"}[value]
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.4f}"
        case Mapping():
            return ", ".join(f"{key} {_shown(part)}" for key, part in value.items())
        case list() | tuple():
            return ", ".join(_shown(part) for part in value) if value else "–"
        case _:
            return str(value)


@contextlib.contextmanager
def _vanished_terminal() -> Iterator[None]:
    """A run must not end because nobody can see it any more."""
    with contextlib.suppress(OSError):
        yield


class TrainingDisplay:
    """An observer: a live line on a terminal, plain lines elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._line_due_at = 0.0
        self._line_is_open = False

    def __call__(self, event: Any) -> None:
        """Show an event."""
        from bertsmith.training.events import (
            CheckpointWritten,
            EndedEarly,
            Progress,
            RunStarted,
            Sampled,
            StepsDecided,
            Validated,
        )

        match event:
            case RunStarted():
                going = f"goes on at step {event.step}" if event.resumed else "begins"
                steps = counted(event.total_steps, "step")
                self._line(f"training {going}: {steps} on {event.device} in {event.precision}")
            case Progress():
                self._progress(event)
            case Validated():
                # Counts of what was predicted are whole numbers, and no scores; the loss is the sum of its terms.
                scores = [
                    (name, value)
                    for name, value in event.metrics.items()
                    if isinstance(value, float) and not name.endswith("_loss")
                ]
                parts = [_score(name, value) for name, value in scores[:_MOST_SCORES]]
                self._line(f"step {event.step:,}: validation {', '.join(parts)}")
            case Sampled():
                for line in event.lines:
                    self._line(f"    {line}")
            case StepsDecided():
                self._line(f"step {event.step:,}: {counted(event.total_steps, 'step fits', 'steps fit')} the time")
            case EndedEarly():
                self._line(f"step {event.step:,}: no better than at step {event.best_step:,}, and ends here")
            case CheckpointWritten():
                pass
            case _:
                pass

    def _progress(self, event: Any) -> None:
        text = (
            f"step {event.step:,}/{event.total_steps:,}  epoch {event.epoch:.2f}  loss {event.loss:.3f}  "
            f"{event.tokens_per_second:,.0f} tokens/s  {_duration(event.seconds_left)} left"
        )
        now = time.monotonic()
        if self._live:
            with _vanished_terminal():
                sys.stderr.write(f"\r\x1b[K{_bar(event.step, event.total_steps)} {text}")
                sys.stderr.flush()
            self._line_is_open = event.step < event.total_steps
            if not self._line_is_open:
                note("")
        elif now >= self._line_due_at or event.step == event.total_steps:
            self._line_due_at = now + _LINE_EVERY_SECONDS
            note(text)

    def _line(self, text: str) -> None:
        if self._line_is_open:
            with _vanished_terminal():
                sys.stderr.write("\r\x1b[K")
            self._line_is_open = False
        note(text)


class CountDisplay:
    """Shows how much is done and how long the rest takes: a live line on a terminal, plain lines elsewhere.

    Args:
        total: how many there are; None where that is not known.
        counted: what is counted.
        is_exact: whether `total` is no guess.
    """

    def __init__(self, total: int | None, *, counted: str = "rows", is_exact: bool = False) -> None:
        self._total = total
        self._counted = counted
        self._of = "of" if is_exact else "of about"
        self._live = sys.stderr.isatty()
        self._started_at = time.monotonic()
        self._due_at = self._started_at + (0.0 if self._live else _LINE_EVERY_SECONDS)

    def __call__(self, done: int) -> None:
        """Show it, if it is time to."""
        now = time.monotonic()
        if now < self._due_at:
            return
        self._due_at = now + (_LIVE_EVERY_SECONDS if self._live else _LINE_EVERY_SECONDS)
        rate = done / max(now - self._started_at, 1e-9)
        speed = f"{rate:,.0f} {self._counted}/s" if rate >= 10 else f"{rate:.1f} {self._counted}/s"
        text = f"{done:,} {self._counted}  {speed}"
        if self._total is not None and rate > 0:
            total = max(self._total, done)
            left = _duration((total - done) / rate)
            text = f"{done:,} {self._of} {total:,} {self._counted}  {speed}  {left} left"
        if not self._live:
            note(text)
            return
        bar = "" if self._total is None else f"{_bar(min(done, self._total), self._total)} "
        with _vanished_terminal():
            sys.stderr.write(f"\r\x1b[K{bar}{text}")
            sys.stderr.flush()

    def close(self) -> None:
        """Remove the live line."""
        if self._live:
            with _vanished_terminal():
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()


def _score(name: str, value: float) -> str:
    from bertsmith.reports.scores import score_text, score_title

    return f"{score_title(name)} {score_text(name, value)}"


def _bar(done: int, total: int, width: int = 20) -> str:
    filled = width * done // max(total, 1)
    return "━" * filled + "╌" * (width - filled)


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
