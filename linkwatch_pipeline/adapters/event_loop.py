"""Coroutines that can be stopped: by another thread, or by an interrupt under somebody else's handler.

Dagster's handler of SIGINT and SIGTERM raises at once, wherever the main thread is. Inside an event loop that is either
swallowed (in a callback: asyncio reports what is no KeyboardInterrupt and goes on) or it loses a step of a task, which
then never ends. asyncio cancels instead of raising, but only where nobody else has put up a handler.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
Handler = Callable[[int, FrameType | None], object]

INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


class CoroutineRunner:
    """`asyncio.run` for a process that may be asked to stop: what runs is cancelled, and tidies up."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._cancel: Callable[[], object] | None = None

    def stop(self) -> None:
        """Cancel what runs, and let nothing run any more. For another thread; returns at once."""
        self._stopped.set()
        if (cancel := self._cancel) is not None:
            with suppress(RuntimeError):  # its loop has ended just now
                cancel()

    def raise_if_stopped(self) -> None:
        """For work between two coroutines. Raises KeyboardInterrupt."""
        self.wait(timedelta(0))

    def wait(self, duration: timedelta) -> None:
        """Block so long, or until it is stopped. Raises KeyboardInterrupt."""
        if self._stopped.wait(duration.total_seconds()):
            raise KeyboardInterrupt

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run it to its end. Handlers of interrupts that somebody put up are called afterwards, if one came.

        Raises: KeyboardInterrupt if it is stopped, or what the handler raises for the interrupt. A second interrupt
            does not wait for `main` to end.
        """
        handlers = _handlers()
        received = list[int]()

        def cancel(number: int, _: FrameType | None) -> None:
            received.append(number)
            if len(received) > 1:
                raise KeyboardInterrupt
            self.stop()

        async def stoppable() -> T:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None
            self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
            with _instead_of(handlers, cancel):
                if self._stopped.is_set():
                    task.cancel()
                return await main

        try:
            return asyncio.run(stoppable())
        finally:
            self._cancel = None
            # In place of what cancelling led to; to be stopped too late for cancelling anything counts, too.
            if received:
                handlers[received[0]](received[0], None)
            self.raise_if_stopped()


def _handlers() -> dict[int, Handler]:
    """Those that somebody put up; the defaults of the system are left alone. Only the main thread is interrupted."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    found = {number: signal.getsignal(number) for number in INTERRUPTS}
    return {number: handler for number, handler in found.items() if callable(handler)}


@contextmanager
def _instead_of(handlers: dict[int, Handler], handler: Handler) -> Iterator[None]:
    try:
        for number in handlers:
            signal.signal(number, handler)
        yield
    finally:
        for number, former in handlers.items():
            signal.signal(number, former)
