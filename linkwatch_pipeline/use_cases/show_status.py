"""What a reader sees: Redis first, then the newest row, `UNKNOWN` when there is neither (SPEC 13)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from linkwatch_pipeline.domain.errors import StoreUnavailable
from linkwatch_pipeline.domain.service_status import HISTORY_WINDOW, UNKNOWN, SeenStatus, Service
from linkwatch_pipeline.ports import ServiceDirectory, StatusCache, StatusHistory


class Source(StrEnum):
    """Where a status was found."""

    REDIS = "redis"
    POSTGRESQL = "postgresql"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStatus:
    """One service as a reader sees it. `seen` and `source` are None when nothing is known of it."""

    service: Service
    seen: SeenStatus | None
    source: Source | None

    @property
    def status(self) -> str:
        return self.seen.status if self.seen is not None else UNKNOWN

    def age(self, now: datetime) -> timedelta | None:
        """How long ago it was checked."""
        return max(now - self.seen.checked_at, timedelta(0)) if self.seen is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView:
    """All services of a reader in id order. `problem` says why Redis could not be asked."""

    statuses: tuple[ShownStatus, ...]
    problem: str | None = None


def show_statuses(
    directory: ServiceDirectory, cache: StatusCache, history: StatusHistory, *, user_id: str | None = None
) -> StatusView:
    """The status of every active service, or of a user's. Raises StoreUnavailable if PostgreSQL cannot be asked."""
    services = directory.services(user_id=user_id)
    ids = [service.id for service in services]
    cached, problem = _cached(cache, ids)
    rows = history.latest([name for name in ids if name not in cached])
    return StatusView(
        statuses=tuple(_shown(service, cached.get(service.id), rows.get(service.id)) for service in services),
        problem=problem,
    )


def show_history(history: StatusHistory, service_id: str, *, now: datetime) -> list[SeenStatus]:
    """A service's statuses of the last 24 hours, the newest first. Raises StoreUnavailable."""
    return history.since(service_id, now - HISTORY_WINDOW)


def _cached(cache: StatusCache, ids: list[str]) -> tuple[dict[str, SeenStatus], str | None]:
    try:
        return cache.get(ids), None
    except StoreUnavailable as error:
        return {}, str(error)


def _shown(service: Service, cached: SeenStatus | None, row: SeenStatus | None) -> ShownStatus:
    if cached is not None:
        return ShownStatus(service=service, seen=cached, source=Source.REDIS)
    return ShownStatus(service=service, seen=row, source=Source.POSTGRESQL if row is not None else None)
