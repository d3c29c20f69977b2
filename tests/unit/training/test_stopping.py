"""Asking a run to stop."""

import os
import signal
import threading

import pytest

from bertsmith.training.stopping import stop_requests


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_noted_and_old_handlers_come_back(number: signal.Signals) -> None:
    before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}
    with stop_requests() as stop:
        assert not stop.requested
        os.kill(os.getpid(), number)
        assert stop.requested
        assert signal.getsignal(number) is stop
    assert {name: signal.getsignal(name) for name in before} == before


def test_old_handlers_come_back_after_an_error() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(OSError, match="inside"), stop_requests():
        raise OSError("inside")
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_interrupt_ends_at_once_and_a_second_polite_kill_does_not() -> None:
    with stop_requests() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_outside_the_main_thread_nothing_is_touched() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[object] = []

    def ask() -> None:
        with stop_requests() as stop:
            seen.append((stop.requested, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert seen == [(False, before)]
