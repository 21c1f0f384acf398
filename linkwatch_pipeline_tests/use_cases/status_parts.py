"""Parts of service status for tests of its use cases: a list of services, a history that only forgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from linkwatch_pipeline.domain.service_status import SeenStatus, Service, ServiceDay, StatusRecord
from linkwatch_pipeline.ports import RowEnd

T = TypeVar("T")


async def at_once(call: Callable[[], T], /) -> T:
    """`ports.RunBlocking` on the loop's own thread, for virtual time."""
    return call()


class ListDirectory:
    """`ports.ServiceDirectory` from a list; raises `trouble` while there is some.

    `mended_after` is how many times it is raised; None for as long as it stays.
    """

    def __init__(self, listed: list[Service]) -> None:
        self.listed = listed
        self.trouble: Exception | None = None
        self.mended_after: int | None = None

    def services(self, *, user_id: str | None = None) -> list[Service]:
        if self.trouble is not None and self.mended_after != 0:
            self.mended_after = self.mended_after - 1 if self.mended_after is not None else None
            raise self.trouble
        return [service for service in self.listed if user_id in (None, service.user_id)]


class NoHistory:
    """`ports.StatusHistory` without a row; remembers what it was asked to forget."""

    def __init__(self) -> None:
        self.pruned: list[datetime] = []

    def add(self, records: Sequence[StatusRecord]) -> list[RowEnd]:
        return [RowEnd.WRITTEN] * len(records)

    def latest(self, service_ids: Sequence[str]) -> dict[str, SeenStatus]:
        return {}

    def since(self, service_id: str, moment: datetime) -> list[SeenStatus]:
        return []

    def day(self, since: datetime, until: datetime) -> list[ServiceDay]:
        return []

    def prune(self, *, before: datetime, most: int) -> int:
        self.pruned.append(before)
        return 0
