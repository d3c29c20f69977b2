"""When the command began. A time that a person gives counts from there, and loading torch takes seconds of it."""

import time


class _Command:
    started_at = 0.0


def command_begins() -> None:
    """Note that a command begins now."""
    _Command.started_at = time.monotonic()


def started_at() -> float:
    """When the command began, on the monotonic clock."""
    return _Command.started_at
