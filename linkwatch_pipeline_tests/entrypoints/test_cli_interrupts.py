"""Long work in a thread of its own, and what Ctrl-C does to it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from linkwatch_pipeline.entrypoints.cli.interrupts import call_interruptibly

SECONDS = 60.0
MAIN = threading.main_thread()


class Work:
    """Interrupts the main thread as it begins, and ends when it is stopped."""

    def __init__(self, number: signal.Signals, *, again: bool = False) -> None:
        self._number = number
        self._again = again
        self.is_stopped = threading.Event()
        self.may_end = threading.Event()
        self.ended = threading.Event()

    def __call__(self) -> None:
        self._interrupt()
        assert self.is_stopped.wait(SECONDS)
        if self._again:
            self._interrupt()
            assert self.may_end.wait(SECONDS)
        self.ended.set()

    def _interrupt(self) -> None:
        assert MAIN.ident is not None
        signal.pthread_kill(MAIN.ident, self._number)


def _never() -> None:
    raise AssertionError("nobody asked for a stop")


def test_what_the_call_returns_or_raises_comes_back() -> None:
    def fails() -> None:
        raise ValueError("as it is")

    assert call_interruptibly(threading.current_thread, stop=_never) is not MAIN
    with pytest.raises(ValueError, match="as it is"):
        call_interruptibly(fails, stop=_never)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_work_and_waits_for_its_end(number: signal.Signals) -> None:
    work, former = Work(number), signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        call_interruptibly(work, stop=work.is_stopped.set)
    assert work.ended.is_set()
    assert signal.getsignal(signal.SIGTERM) == former


def test_a_second_signal_does_not_wait() -> None:
    work = Work(signal.SIGINT, again=True)
    with pytest.raises(KeyboardInterrupt):
        call_interruptibly(work, stop=work.is_stopped.set)
    assert not work.ended.is_set()
    work.may_end.set()
    assert work.ended.wait(SECONDS)


def test_a_failure_that_stopping_led_to_is_not_what_is_told() -> None:
    work = Work(signal.SIGINT)

    def fails() -> None:
        work()
        raise ValueError("cannot tidy up")

    with pytest.raises(KeyboardInterrupt):
        call_interruptibly(fails, stop=work.is_stopped.set)


def test_another_thread_makes_the_call_itself() -> None:
    def call(asked: Callable[[], threading.Thread]) -> threading.Thread:
        return call_interruptibly(asked, stop=_never)

    with ThreadPoolExecutor(1, thread_name_prefix="other") as pool:
        assert pool.submit(call, threading.current_thread).result(SECONDS).name.startswith("other")
