"""A clock for telling a story: real speed, but beginning at a chosen moment. Only a fixture home may have one."""

from __future__ import annotations

from datetime import datetime, timedelta

from linkwatch_pipeline.domain.timestamps import require_utc
from linkwatch_pipeline.ports import Clock


class StoryClock:
    """`ports.Clock` that shows `start` when it is made and then runs as fast as `base`."""

    def __init__(self, base: Clock, start: datetime) -> None:
        require_utc("start", start)
        self._base = base
        self._start = start
        self._began = base.monotonic()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._base.monotonic() - self._began)

    def monotonic(self) -> float:
        return self._base.monotonic()

    async def sleep(self, duration: timedelta) -> None:
        await self._base.sleep(duration)
