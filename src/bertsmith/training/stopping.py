"""Asking a run to stop between two steps: Ctrl-C, a closed terminal, a polite kill."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class StopRequest:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.requested = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """As a signal handler: the first request is noted, a second Ctrl-C ends at once."""
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = True


@contextlib.contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Inside the block, signals that ask to stop are noted; afterwards they do what they did before.

    In a thread other than the main one, where signals cannot be taken, nothing is noted.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    # SIGHUP, a closed terminal, is not there on Windows.
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, request) for number in numbers}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
