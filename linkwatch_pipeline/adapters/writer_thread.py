"""Blocking calls from a coroutine on one thread, so that an embedded store has one writer (`ports.RunBlocking`).

Calls that wait while others are made are then made together, and share one commit: a disk confirms some hundred
commits a second, however small. Nobody gets a result before it is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")

MOST_TOGETHER = 64

Grouped = Callable[[], AbstractContextManager[None]]


class _Call:
    """One waiting call: what it returned, or why it failed, and who is to be told."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self.loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None

    def make(self) -> None:
        try:
            self.result = self._call()
        except BaseException as error:  # carried to whoever waits
            self.error = error

    def tell(self) -> None:
        """Hand the outcome over. Called on the loop."""
        if self.answer.done():  # nobody waits any more
            return
        if self.error is not None:
            self.answer.set_exception(self.error)
        else:
            self.answer.set_result(self.result)


class WriterThread:
    """One thread for all blocking calls of a process; use it as a context manager.

    Args: grouped: surrounds calls that are made together, and commits what they wrote when it ends; an exception from
        its end means that nothing of any of them was kept.
    """

    def __init__(self, grouped: Grouped = nullcontext) -> None:
        self._grouped = grouped
        self._waiting: SimpleQueue[_Call | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name="linkwatch-store")

    async def __call__(self, call: Callable[[], T], /) -> T:
        waiting = _Call(call)
        self._waiting.put(waiting)
        answer: T = await waiting.answer
        return answer

    def __enter__(self) -> WriterThread:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            calls, is_last = self._with_others(first)
            self._make([call for call in calls if not call.answer.cancelled()])
            _tell(calls)
            if is_last:
                return

    def _with_others(self, first: _Call) -> tuple[list[_Call], bool]:
        """The call and those that wait behind it; whether the thread is to end after them."""
        calls = [first]
        while len(calls) < MOST_TOGETHER:
            try:
                following = self._waiting.get_nowait()
            except Empty:
                break
            if following is None:
                return calls, True
            calls.append(following)
        return calls, False

    def _make(self, calls: list[_Call]) -> None:
        try:
            with self._grouped():
                for call in calls:
                    call.make()
        except BaseException as error:  # carried to all whose work it undid
            for call in calls:
                call.error = call.error or error


def _tell(calls: list[_Call]) -> None:
    """Wake the loop once for all calls."""

    def tell_all() -> None:
        for call in calls:
            call.tell()

    try:
        calls[0].loop.call_soon_threadsafe(tell_all)
    except RuntimeError:  # the loop is closed: nobody waits any more
        return
