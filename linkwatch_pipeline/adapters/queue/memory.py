"""The queue of one process: durable truth is in the store, so what is lost here is sent again by the tick.

Two heaps: `_waiting` by the time a message becomes visible (again), `_ready` by urgency. A message that is received,
postponed or deleted leaves its old entries behind; they are recognised by their stamp and dropped when they surface.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from linkwatch_pipeline.domain.errors import QueueError
from linkwatch_pipeline.domain.runs import CheckJob
from linkwatch_pipeline.ports import Clock, Receipt, StrayLetter

LONGEST_DELAY = timedelta(seconds=900)


class WorkOrder(Protocol):
    """Which of several visible messages is received first."""

    def urgency(self, job: CheckJob) -> float:
        """Higher goes first. Asked once each time the message becomes visible, so it may be a little stale."""
        ...

    def admits(self, job: CheckJob) -> bool:
        """Whether the most urgent visible message may be received now; while it may not, none is."""
        ...


@dataclass(slots=True, eq=False)
class _Message:
    job: CheckJob
    visible_at: datetime
    stamp: int
    receive_count: int = 0
    handle: str | None = None


class MemoryQueue:
    """A queue in memory. Safe to use from several threads.

    Args:
        clock: tells when messages become visible.
        order: which visible message goes first; None: the one that has been visible longest.
        visibility: how long a received message stays hidden.
        max_receives: how often a message is delivered before it becomes a dead letter.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        order: WorkOrder | None = None,
        visibility: timedelta = timedelta(seconds=180),
        max_receives: int = 5,
    ) -> None:
        self._clock = clock
        self._order = order
        self._visibility = visibility
        self._max_receives = max_receives
        self._lock = threading.Lock()
        self._stamps = 0
        self._waiting: list[tuple[datetime, int, _Message]] = []
        self._ready: list[tuple[float, datetime, int, _Message]] = []
        self._by_handle: dict[str, _Message] = {}
        self._dead: dict[str, CheckJob] = {}

    def verify(self) -> None:
        """It is always there."""

    def send(self, jobs: Sequence[CheckJob], *, delay: timedelta = timedelta(0)) -> None:
        """Add messages that become visible after `delay`. Raises QueueError unless it is 0 to 900 s."""
        _check_delay(delay)
        with self._lock:
            visible_at = self._clock.now() + delay
            for job in jobs:
                self._hide(_Message(job=job, visible_at=visible_at, stamp=0), visible_at)

    def receive(self, *, limit: int = 1) -> list[Receipt]:
        """Visible messages, most urgent first, hidden from now on for the visibility timeout; [] without any."""
        with self._lock:
            self._surface()
            receipts: list[Receipt] = []
            while len(receipts) < limit and (message := self._pop_ready()) is not None:
                receipts.append(self._deliver(message))
            return receipts

    def acknowledge(self, receipt: Receipt) -> None:
        """Delete the message. A receipt from before its latest delivery is ignored."""
        with self._lock:
            message = self._by_handle.pop(receipt.handle, None)
            if message is not None:
                message.stamp = -1

    def change_visibility(self, receipt: Receipt, *, delay: timedelta) -> None:
        """Let the message come back after `delay`. Ignored when it is visible already or the receipt is outdated."""
        _check_delay(delay)
        with self._lock:
            self._surface()
            message = self._by_handle.get(receipt.handle)
            now = self._clock.now()
            if message is not None and message.visible_at > now:
                self._hide(message, now + delay)

    def next_visible_in(self) -> timedelta | None:
        """How long until a message may be received; zero when one may, None when nothing waits to become visible."""
        with self._lock:
            self._surface()
            while self._ready and _is_stale(*self._ready[0][2:]):
                heapq.heappop(self._ready)
            while self._waiting and _is_stale(*self._waiting[0][1:]):
                heapq.heappop(self._waiting)
            if self._ready and self._admits(self._ready[0][3]):
                return timedelta(0)
            return self._waiting[0][0] - self._clock.now() if self._waiting else None

    def visible(self) -> int:
        """How many messages could be received now, whatever the order admits."""
        with self._lock:
            self._surface()
            return sum(not _is_stale(stamp, message) for _, _, stamp, message in self._ready)

    def dead_letters(self) -> list[CheckJob]:
        """The messages that were given up, oldest first, one per job."""
        with self._lock:
            self._surface()
            return list(self._dead.values())

    def unreadable_letters(self) -> list[StrayLetter]:
        """[]: only messages get into it."""
        return []

    def remove_dead_letter(self, job_id: str) -> bool:
        """Take one out of the dead letters; whether it was there."""
        with self._lock:
            self._surface()
            return self._dead.pop(job_id, None) is not None

    def _hide(self, message: _Message, until: datetime) -> None:
        self._restamp(message)
        message.visible_at = until
        heapq.heappush(self._waiting, (until, message.stamp, message))

    def _surface(self) -> None:
        """Make visible what is due; what was delivered often enough becomes a dead letter instead."""
        now = self._clock.now()
        while self._waiting and self._waiting[0][0] <= now:
            visible_at, stamp, message = heapq.heappop(self._waiting)
            if _is_stale(stamp, message):
                continue
            if message.receive_count >= self._max_receives:
                self._bury(message)
                continue
            urgency = self._order.urgency(message.job) if self._order is not None else 0.0
            # The stamp is kept: it breaks ties in the order of sending.
            heapq.heappush(self._ready, (-urgency, visible_at, stamp, message))

    def _bury(self, message: _Message) -> None:
        if message.handle is not None:
            del self._by_handle[message.handle]
        message.stamp = -1
        self._dead.setdefault(message.job.job_id, message.job)

    def _pop_ready(self) -> _Message | None:
        while self._ready:
            _, _, stamp, message = self._ready[0]
            if not _is_stale(stamp, message) and not self._admits(message):
                return None
            heapq.heappop(self._ready)
            if not _is_stale(stamp, message):
                return message
        return None

    def _admits(self, message: _Message) -> bool:
        return self._order is None or self._order.admits(message.job)

    def _deliver(self, message: _Message) -> Receipt:
        if message.handle is not None:
            del self._by_handle[message.handle]
        message.receive_count += 1
        self._hide(message, self._clock.now() + self._visibility)
        message.handle = f"memory-{message.stamp}"
        self._by_handle[message.handle] = message
        return Receipt(job=message.job, handle=message.handle, receive_count=message.receive_count)

    def _restamp(self, message: _Message) -> None:
        self._stamps += 1
        message.stamp = self._stamps


def _is_stale(stamp: int, message: _Message) -> bool:
    return message.stamp != stamp


def _check_delay(delay: timedelta) -> None:
    if not timedelta(0) <= delay <= LONGEST_DELAY:
        raise QueueError(f"a message can be delayed by 0 to {LONGEST_DELAY.total_seconds():.0f} s, not by {delay}")
