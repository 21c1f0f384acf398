"""When a service's state changes: at once, or after N checks in a row that saw it down (`confirm`), as links do.

Statuses are measurements and are written as they are; the state is what people are told of, once per change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from linkwatch_pipeline.domain.service_status import Status, StatusRecord

JOB_PREFIX = "service:"  # begins the job id of an observation that tells of a change


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceState:
    """Where a service stands. `status` is None before the first confirmed one; `version` counts changes of state.

    `streak` counts checks in a row that saw it down, `last_checked_at` (UTC) is the newest one that counted.
    """

    service_id: str
    status: Status | None = None
    version: int = 0
    streak: int = 0
    since: datetime | None = None
    last_checked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceChange:
    """A change worth telling. The first state a service gets is none, unless it is down."""

    service_id: str
    user_id: str
    version: int
    from_status: Status | None
    to_status: Status
    checked_at: datetime
    since: datetime | None

    @property
    def id(self) -> str:
        return f"service:{self.service_id}:{self.version}"


def advanced(state: ServiceState, record: StatusRecord, *, confirm: int) -> tuple[ServiceState, ServiceChange | None]:
    """The state after one more check, and the change it made. A check older than the newest one changes nothing.

    Nor does a refused one: it is no news of the service, but of its address in our books.
    """
    if record.refused:
        return state, None
    if state.last_checked_at is not None and record.checked_at < state.last_checked_at:
        return state, None
    streak = state.streak + 1 if record.status is Status.DOWN else 0
    seen = replace(state, streak=streak, last_checked_at=record.checked_at)
    if record.status is state.status or (record.status is Status.DOWN and streak < confirm):
        return seen, None
    after = replace(seen, status=record.status, version=state.version + 1, since=record.checked_at)
    if state.status is None and record.status is Status.UP:
        return after, None
    change = ServiceChange(
        service_id=state.service_id,
        user_id=record.user_id,
        version=after.version,
        from_status=state.status,
        to_status=record.status,
        checked_at=record.checked_at,
        since=state.since,
    )
    return after, change
