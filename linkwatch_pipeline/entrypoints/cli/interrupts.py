"""Long work that Ctrl-C ends tidily, whatever library it is in the middle of.

A handler that raises in the middle of a library's work is swallowed by some (a callback of a weak reference), turned
into something else by others (DuckDB), and may leave any of them half-way. So the work has a thread of its own, where
no signal arrives, and this one only waits.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread
from typing import TypeVar

T = TypeVar("T")


def call_interruptibly(call: Callable[[], T], *, stop: Callable[[], None]) -> T:
    """Make the call. At SIGINT or SIGTERM `stop` has to make it end soon; a second one does not wait for that.

    Raises: what the call raises; KeyboardInterrupt for a signal.
    """
    if current_thread() is not main_thread():
        return call()  # no signal arrives here either
    outcome = Future[T]()
    working = Thread(target=_make, args=(call, outcome), name="linkwatch-work", daemon=True)
    with sigterm_as_interrupt():
        try:
            working.start()
            return outcome.result()
        except KeyboardInterrupt:
            stop()
            working.join()
            raise


def _make(call: Callable[[], T], outcome: Future[T]) -> None:
    # Its processes inherit this: Ctrl-C in a terminal reaches them too, and they would tell of it in tracebacks.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        outcome.set_result(call())
    except BaseException as error:  # carried to whoever waits
        outcome.set_exception(error)


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt in the main thread, as Ctrl-C does, so that what is begun is tidied up."""
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
