"""The machine's clock: the only place that reads it or waits on it."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta


class SystemClock:
    """Real time (`ports.Clock`)."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, duration: timedelta) -> None:
        await asyncio.sleep(duration.total_seconds())


def wait(duration: timedelta) -> None:
    """Block this thread for a while."""
    time.sleep(duration.total_seconds())
