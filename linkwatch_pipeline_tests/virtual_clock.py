"""A clock that jumps: when every task waits, time moves to the next due moment. Hours of waiting take no time at all.

    clock = VirtualClock(datetime(2026, 9, 28, 9, 0, tzinfo=UTC))
    result = run_virtual(use_case(clock=clock), clock)

Everything must run on the loop's own thread: while a worker thread is busy the clock would leap ahead of it.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")

MICROSECOND = timedelta(microseconds=1)
# Without any timer only another thread can wake the loop. After this long (real seconds) nothing will.
PATIENCE_SECONDS = 60.0


class Stuck(Exception):
    """Every task waits for something that never comes."""


class VirtualClock:
    """Time that passes only when told to (`advance`), or by waiting inside `run_virtual`; in whole microseconds."""

    def __init__(self, start: datetime = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)) -> None:
        self.start = start
        self._elapsed = 0

    def now(self) -> datetime:
        return self.start + self._elapsed * MICROSECOND

    def monotonic(self) -> float:
        return self._elapsed / 1_000_000

    def advance(self, duration: timedelta) -> None:
        """Let time pass. Inside `run_virtual`, timers that became due fire when the caller next waits."""
        if duration < timedelta(0):
            raise ValueError(f"time does not run backwards: {duration}")
        self._elapsed += duration // MICROSECOND

    async def sleep(self, duration: timedelta) -> None:
        """Wait for virtual time inside `run_virtual`; on any other loop, just advance."""
        loop = asyncio.get_running_loop()
        if isinstance(loop, VirtualLoop) and loop.clock is self:
            await asyncio.sleep(max(duration, timedelta(0)).total_seconds())
        else:
            self.advance(max(duration, timedelta(0)))
            await asyncio.sleep(0)


class _JumpingSelector(selectors.DefaultSelector):
    """Polls, and lets virtual time pass instead of blocking."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            events = super().select(PATIENCE_SECONDS)
            if not events:
                raise Stuck(f"no timer is set and nothing happened for {PATIENCE_SECONDS:.0f} real seconds")
            return events
        events = super().select(0)
        if not events and timeout > 0:
            self._clock.advance(max(round(timeout * 1_000_000), 1) * MICROSECOND)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is a VirtualClock's, so that asyncio.sleep, timeout and call_later are virtual too."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(_JumpingSelector(clock))
        self.clock = clock
        # Timers of one and the same microsecond fire together, whatever their float rounding.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self.clock.monotonic()


def run_virtual(main: Coroutine[Any, Any, T], clock: VirtualClock) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(main)
