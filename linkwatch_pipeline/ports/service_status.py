"""Service status: whose is watched, and its own queue, cache, history and changes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from linkwatch_pipeline.domain.service_changes import ServiceChange
from linkwatch_pipeline.domain.service_status import (
    SeenStatus,
    Service,
    ServiceCheck,
    ServiceDay,
    StatusMessage,
    StatusRecord,
)


class ServiceDirectory(Protocol):
    """Whose status is watched. Kept by somebody else: it is only read."""

    def services(self, *, user_id: str | None = None) -> list[Service]:
        """The active services, or a user's, in id order. Raises StoreUnavailable."""
        ...


class StatusQueue(Protocol):
    """Checks on their way from the monitor to the processor. Delivery is at least once, in any order.

    A message not acknowledged comes back after 60 s; after 3 deliveries it becomes a dead letter.
    """

    def send(self, checks: Sequence[ServiceCheck]) -> list[ServiceCheck]:
        """Hand over each check at most once; those that were not accepted, or may not have been."""
        ...

    def receive(self) -> list[StatusMessage]:
        """Up to ten messages, hidden from now on for the visibility timeout; [] when there are none."""
        ...

    def acknowledge(self, messages: Sequence[StatusMessage]) -> None:
        """Delete these deliveries. Outdated ones are ignored."""
        ...


class StatusCache(Protocol):
    """The latest status of each service, for 90 s."""

    def put(self, records: Sequence[StatusRecord]) -> None:
        """Write each, unless a newer one is there. Repeating it changes nothing but the time it lives on.

        Raises: StoreUnavailable; some may then be written.
        """
        ...

    def get(self, service_ids: Sequence[str]) -> dict[str, SeenStatus]:
        """What is there, by service id. Raises StoreUnavailable."""
        ...


class RowEnd(StrEnum):
    """What became of a row: written (now or before), of a service that is gone, or refused by the database for good."""

    WRITTEN = "written"
    GONE = "gone"
    REFUSED = "refused"


class StatusHistory(Protocol):
    """Every status, one row per message."""

    def add(self, records: Sequence[StatusRecord]) -> list[RowEnd]:
        """Write those that are absent; the end of each, in order. One bad row never stops the others.

        Raises: StoreUnavailable; repeating it is safe.
        """
        ...

    def latest(self, service_ids: Sequence[str]) -> dict[str, SeenStatus]:
        """The newest row of each service that has one. Raises StoreUnavailable."""
        ...

    def since(self, service_id: str, moment: datetime) -> list[SeenStatus]:
        """A service's rows from then on, the newest first. Raises StoreUnavailable."""
        ...

    def day(self, since: datetime, until: datetime) -> list[ServiceDay]:
        """What each active service was seen doing in since <= checked_at < until, in id order."""
        ...

    def prune(self, *, before: datetime, most: int) -> int:
        """Delete rows older than that, at most so many; how many. Only called when pruning is switched on."""
        ...


class ChangeLog(Protocol):
    """Changes of services' states, written with the row that made them; told once each."""

    def untold(self, *, limit: int) -> list[ServiceChange]:
        """The oldest changes that are not marked as told."""
        ...

    def mark_told(self, changes: Sequence[ServiceChange]) -> None:
        """Remember that these are in the outbox. Repeating it changes nothing."""
        ...
