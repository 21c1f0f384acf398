"""States of services and their changes, written in the transaction of the rows that made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwatch_pipeline.domain.service_changes import ServiceChange, ServiceState, advanced
from linkwatch_pipeline.domain.service_status import Status, StatusRecord
from linkwatch_pipeline.domain.timestamps import format_seconds

_BEGIN = "INSERT INTO linkwatch_service_states (service_id) VALUES (:service_id) ON CONFLICT DO NOTHING"
_READ = """
SELECT service_id, status, version, streak, since, last_checked_at FROM linkwatch_service_states
WHERE service_id = ANY(CAST(:ids AS text[])) ORDER BY service_id FOR UPDATE
"""
_SAVE = """
UPDATE linkwatch_service_states SET status = :status, version = :version, streak = :streak,
    since = CAST(:since AS timestamptz), last_checked_at = CAST(:last_checked_at AS timestamptz)
WHERE service_id = :service_id
"""
_CHANGE = """
INSERT INTO linkwatch_service_changes (service_id, version, user_id, from_status, to_status, checked_at, since)
VALUES (:service_id, :version, :user_id, :from_status, :to_status, CAST(:checked_at AS timestamptz),
    CAST(:since AS timestamptz))
"""


def write_changes(db: Any, records: Sequence[StatusRecord], *, confirm: int) -> None:
    """Advance the states of the services of new rows. Locks their states in id order, so that writers never cross."""
    ids = sorted({record.service_id for record in records})
    if not ids:
        return
    for service_id in ids:
        db.run(_BEGIN, service_id=service_id)
    states = {row[0]: _state(row) for row in db.run(_READ, ids=ids)}
    for record in sorted(records, key=lambda record: (record.checked_at, str(record.id))):
        state, change = advanced(states[record.service_id], record, confirm=confirm)
        states[record.service_id] = state
        if change is not None:
            db.run(_CHANGE, **_change_values(change))
    for state in states.values():
        db.run(_SAVE, **_state_values(state))


def _state(row: Sequence[Any]) -> ServiceState:
    service_id, status, version, streak, since, last_checked_at = row
    return ServiceState(
        service_id=service_id,
        status=Status(status) if status is not None else None,
        version=version,
        streak=streak,
        since=since,
        last_checked_at=last_checked_at,
    )


def _state_values(state: ServiceState) -> dict[str, object]:
    return {
        "service_id": state.service_id,
        "status": state.status.value if state.status is not None else None,
        "version": state.version,
        "streak": state.streak,
        "since": format_seconds(state.since) if state.since is not None else None,
        "last_checked_at": format_seconds(state.last_checked_at) if state.last_checked_at is not None else None,
    }


def _change_values(change: ServiceChange) -> dict[str, object]:
    return {
        "service_id": change.service_id,
        "version": change.version,
        "user_id": change.user_id,
        "from_status": change.from_status.value if change.from_status is not None else None,
        "to_status": change.to_status.value,
        "checked_at": format_seconds(change.checked_at),
        "since": format_seconds(change.since) if change.since is not None else None,
    }
