"""A server that keeps its callers waiting is left alone for a while, so that the other one still gets its writes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from linkwatch_pipeline.domain.errors import StoreUnavailable
from linkwatch_pipeline.ports import Clock

T = TypeVar("T")

SLOW = timedelta(seconds=1)  # a refusal comes at once and costs nothing to ask for again
REST = timedelta(seconds=10)


class Rest:
    """Fails calls at once for a while after one that failed slowly. For one thread at a time.

    Args: slow: from how long on a failed call was a slow one. lasts: how long the server is left alone then.
    """

    def __init__(self, clock: Clock, *, slow: timedelta = SLOW, lasts: timedelta = REST) -> None:
        self._clock = clock
        self._slow = slow.total_seconds()
        self._lasts = lasts.total_seconds()
        self._ends_at: float | None = None

    def ask(self, call: Callable[[], T]) -> T:
        """Do the call, unless the server is left alone. Raises StoreUnavailable; whatever the call raises."""
        began = self._clock.monotonic()
        if self._ends_at is not None and began < self._ends_at:
            raise StoreUnavailable("the server kept us waiting a moment ago and is left alone for some seconds")
        try:
            result = call()
        except StoreUnavailable:
            now = self._clock.monotonic()
            self._ends_at = now + self._lasts if now - began >= self._slow else None
            raise
        self._ends_at = None
        return result
