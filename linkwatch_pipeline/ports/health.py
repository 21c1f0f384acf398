"""What watching linkwatch's own health needs: metrics, and the ways to on-call."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from linkwatch_pipeline.domain.alarms import Alarm, AlarmState


class Metrics(Protocol):
    """Numbers for machines."""

    def put(self, name: str, value: float, *, unit: str = "Count", at: datetime) -> None: ...


class AlarmDestination(Protocol):
    """Where on-call is told of linkwatch's own health, apart from owner mail."""

    def tell(self, alarm: Alarm) -> None:
        """Hand one alarm over. Raises AlarmNotTaken."""
        ...


class AlarmMemory(Protocol):
    """What on-call was told, kept over restarts."""

    def alone(self) -> AbstractContextManager[AlarmState | None]:
        """Be the only one who tells, during the block: what is remembered, or None if another one tells now."""
        ...

    def read(self) -> AlarmState:
        """What is remembered, without waiting for anybody."""
        ...

    def save(self, state: AlarmState) -> None:
        """Remember, durably. Raises OSError if that cannot be written."""
        ...
