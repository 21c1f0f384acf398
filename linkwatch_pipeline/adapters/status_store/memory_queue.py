"""The queue between monitor and processor in one process (`ports.StatusQueue`), for a laptop without SQS."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.service_status import ServiceCheck, StatusMessage, encode_check
from linkwatch_pipeline.ports import Clock

logger = logging.getLogger(__name__)

VISIBILITY = timedelta(seconds=60)
MOST_RECEIVES = 3
RECEIVED_TOGETHER = 10


@dataclass(slots=True)
class _Hidden:
    """A message that somebody received, and when it comes back."""

    message: StatusMessage
    visible_at: datetime


class MemoryStatusQueue:
    """Messages in memory: they end with the process. Safe to use from several threads.

    Args:
        new_id: makes message ids that no other process has, since rows are named after them.
        dead_letters: at most so many are kept for looking at.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        new_id: Callable[[], str],
        visibility: timedelta = VISIBILITY,
        most_receives: int = MOST_RECEIVES,
        dead_letters: int = 1000,
    ) -> None:
        self._clock = clock
        self._new_id = new_id
        self._visibility = visibility
        self._most_receives = most_receives
        self._ready: deque[StatusMessage] = deque()
        self._hidden: dict[str, _Hidden] = {}
        self._dead: deque[StatusMessage] = deque(maxlen=dead_letters)
        self._lock = threading.Lock()

    def send(self, checks: Sequence[ServiceCheck]) -> list[ServiceCheck]:
        for check in checks:
            self.send_body(encode_check(check), refused=check.refused)
        return []

    def send_body(self, body: str, *, refused: bool = False) -> None:
        """Add a message as it is."""
        sent_at = self._clock.now()
        with self._lock:
            message = StatusMessage(
                message_id=self._new_id(), sent_at=sent_at, body=body, refused=refused, receive_count=0
            )
            self._ready.append(message)

    def receive(self) -> list[StatusMessage]:
        now = self._clock.now()
        with self._lock:
            self._bring_back(now)
            taken = [self._ready.popleft() for _ in range(min(RECEIVED_TOGETHER, len(self._ready)))]
            return [self._hide(message, now) for message in taken]

    def acknowledge(self, messages: Sequence[StatusMessage]) -> None:
        with self._lock:
            for message in messages:
                hidden = self._hidden.get(message.message_id)
                if hidden is not None and hidden.message.handle == message.handle:
                    del self._hidden[message.message_id]

    def dead_letters(self) -> list[StatusMessage]:
        """What was given up, oldest first."""
        with self._lock:
            self._bring_back(self._clock.now())
            return list(self._dead)

    def close(self) -> None:
        """Nothing to end."""

    def __len__(self) -> int:
        with self._lock:
            return len(self._ready) + len(self._hidden)

    def _hide(self, message: StatusMessage, now: datetime) -> StatusMessage:
        count = message.receive_count + 1
        received = replace(message, receive_count=count, handle=f"{message.message_id}#{count}")
        self._hidden[message.message_id] = _Hidden(received, now + self._visibility)
        return received

    def _bring_back(self, now: datetime) -> None:
        for name in [name for name, hidden in self._hidden.items() if hidden.visible_at <= now]:
            message = self._hidden.pop(name).message
            if message.receive_count < self._most_receives:
                self._ready.append(message)
                continue
            self._dead.append(message)
            logger.error("message given up", extra={"action": "dead_letter", "message_id": name})
