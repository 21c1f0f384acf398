"""Time, and how a call that takes its time is made."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Time as an argument. Only an adapter reads the machine's clock."""

    def now(self) -> datetime:
        """The current moment, aware UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        ...

    async def sleep(self, duration: timedelta) -> None:
        """Return when `duration` has passed on this clock."""
        ...


class RunBlocking(Protocol):
    """How a blocking call is made from a coroutine: on one writer thread, or directly in a simulation."""

    async def __call__(self, call: Callable[[], T], /) -> T: ...
