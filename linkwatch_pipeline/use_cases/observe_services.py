"""The last day of all services, for people who look at the whole: uptime, latencies, and who was not checked lately."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.service_status import HISTORY_WINDOW, ServiceDay
from linkwatch_pipeline.ports import StatusHistory

# Two cycles and what a redelivery takes.
FRESH_FOR = timedelta(minutes=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicesDay:
    """Every active service's last 24 hours, the least reliable first. `stale` are those without a fresh row."""

    until: datetime
    days: tuple[ServiceDay, ...]

    @property
    def checks(self) -> int:
        return sum(day.checks for day in self.days)

    @property
    def uptime(self) -> float | None:
        """UP checks over all checks of all services; None if there are none."""
        return sum(day.up for day in self.days) / self.checks if self.checks else None

    @property
    def stale(self) -> tuple[ServiceDay, ...]:
        oldest = self.until - FRESH_FOR
        return tuple(day for day in self.days if day.last_checked_at is None or day.last_checked_at < oldest)


def observe_services(history: StatusHistory, *, now: datetime) -> ServicesDay:
    """What the rows of the last 24 hours say. Raises StoreUnavailable."""
    days = history.day(now - HISTORY_WINDOW, now + timedelta(seconds=1))
    return ServicesDay(until=now, days=tuple(sorted(days, key=_reliability)))


def _reliability(day: ServiceDay) -> tuple[float, str]:
    return (day.uptime if day.uptime is not None else -1.0, day.service.id)
