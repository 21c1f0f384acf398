"""Services, statuses and changes in PostgreSQL (`ports.ServiceDirectory`, `StatusHistory`, `ChangeLog`).

The tables are the original's. Ids go in as plain text and the server reads them as their columns' type, so that it may
be uuid, a number or text; times go in as RFC 3339 and come out as UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from linkwatch_pipeline.adapters.status_store.changes import write_changes
from linkwatch_pipeline.adapters.status_store.connection import Connection, sqlstate
from linkwatch_pipeline.adapters.status_store.database_url import FindPlace
from linkwatch_pipeline.adapters.status_store.rest import Rest
from linkwatch_pipeline.domain.service_changes import ServiceChange
from linkwatch_pipeline.domain.service_status import SeenStatus, Service, ServiceDay, Status, StatusRecord
from linkwatch_pipeline.domain.timestamps import format_seconds, parse_utc
from linkwatch_pipeline.ports import RowEnd

_NO_SUCH_SERVICE = "23503"  # the foreign key to services
_BAD_VALUES = ("22", "23")

_SERVICES = "SELECT id::text, user_id::text, name::text, url::text FROM services WHERE is_active"
_INSERT = "INSERT INTO service_status (id, service_id, status, response_time, checked_at) VALUES "
_LATEST = """
SELECT s.id::text, newest.status::text, newest.response_time::double precision, newest.checked_at
FROM services s CROSS JOIN LATERAL (
    SELECT status, response_time, checked_at FROM service_status
    WHERE service_id = s.id ORDER BY checked_at DESC LIMIT 1
) newest
WHERE s.id::text = ANY(CAST(:ids AS text[]))
"""
_SINCE = """
SELECT status::text, response_time::double precision, checked_at FROM service_status
WHERE service_id = :service_id AND checked_at >= :since ORDER BY checked_at DESC
"""
_DAY = """
SELECT s.id::text, s.user_id::text, s.name::text, s.url::text,
    count(r.id), count(r.id) FILTER (WHERE r.status::text = 'UP'),
    percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY r.response_time::double precision)
        FILTER (WHERE r.status::text = 'UP'),
    max(r.checked_at)
FROM services s
LEFT JOIN service_status r ON r.service_id = s.id AND r.checked_at >= :since AND r.checked_at < :until
WHERE s.is_active GROUP BY s.id ORDER BY s.id
"""
_PRUNE = """
DELETE FROM service_status WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM service_status WHERE checked_at < :before LIMIT :most))
"""
_UNTOLD = """
SELECT service_id, version, user_id, from_status, to_status, checked_at, since FROM linkwatch_service_changes
WHERE told_at IS NULL ORDER BY checked_at, service_id, version LIMIT :most
"""
_TOLD = """
UPDATE linkwatch_service_changes SET told_at = now() WHERE service_id = :service_id AND version = :version
"""


class PostgresStatusStore:
    """The tables of one database. For one thread at a time.

    Args:
        find: where the database is.
        confirm: after how many failures in a row a change is written for telling; None writes none, and then the
            tables of linkwatch's own need not exist.
        rest: leaves a server alone that does not answer.
    """

    def __init__(self, find: FindPlace, *, confirm: int | None = None, rest: Rest | None = None) -> None:
        self._connection = Connection(find, rest=rest)
        self._confirm = confirm

    def services(self, *, user_id: str | None = None) -> list[Service]:
        sql = _SERVICES + (" AND user_id::text = :user_id" if user_id is not None else "") + " ORDER BY id"
        values = {"user_id": user_id} if user_id is not None else {}
        rows = self._connection.run(lambda db: db.run(sql, **values))
        return [Service(id=row[0], user_id=row[1] or "", name=row[2] or "", url=row[3] or "") for row in rows]

    def add(self, records: Sequence[StatusRecord]) -> list[RowEnd]:
        """All in one transaction; if one of them is refused, each in its own."""
        from pg8000.exceptions import DatabaseError

        if not records:
            return []
        try:
            self._connection.run(lambda db: self._insert(db, records))
        except DatabaseError:
            if len(records) > 1:
                return [end for record in records for end in self._add_alone(record)]
            return self._add_alone(records[0])
        return [RowEnd.WRITTEN] * len(records)

    def latest(self, service_ids: Sequence[str]) -> dict[str, SeenStatus]:
        if not service_ids:
            return {}
        rows = self._connection.run(lambda db: db.run(_LATEST, ids=list(service_ids)))
        return {row[0]: _seen(row[1:]) for row in rows}

    def since(self, service_id: str, moment: datetime) -> list[SeenStatus]:
        from pg8000.exceptions import DatabaseError

        values = {"service_id": service_id, "since": format_seconds(moment)}
        try:
            return [_seen(row) for row in self._connection.run(lambda db: db.run(_SINCE, **values))]
        except DatabaseError:  # an id that cannot be one of this database's
            return []

    def day(self, since: datetime, until: datetime) -> list[ServiceDay]:
        values = {"since": format_seconds(since), "until": format_seconds(until)}
        return [_day(row) for row in self._connection.run(lambda db: db.run(_DAY, **values))]

    def prune(self, *, before: datetime, most: int) -> int:
        def delete(db: Any) -> int:
            db.run(_PRUNE, before=format_seconds(before), most=most)
            return int(db.row_count)

        return self._connection.run(delete)

    def untold(self, *, limit: int) -> list[ServiceChange]:
        return [_change(row) for row in self._connection.run(lambda db: db.run(_UNTOLD, most=limit))]

    def mark_told(self, changes: Sequence[ServiceChange]) -> None:
        def mark(db: Any) -> None:
            for change in changes:
                db.run(_TOLD, service_id=change.service_id, version=change.version)

        self._connection.run(mark)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _add_alone(self, record: StatusRecord) -> list[RowEnd]:
        from pg8000.exceptions import DatabaseError

        try:
            self._connection.run(lambda db: self._insert(db, [record]))
        except DatabaseError as error:
            if sqlstate(error) == _NO_SUCH_SERVICE:
                return [RowEnd.GONE]
            return [RowEnd.REFUSED]
        return [RowEnd.WRITTEN]

    def _insert(self, db: Any, records: Sequence[StatusRecord]) -> None:
        marks: list[str] = []
        values: dict[str, object] = {}
        for number, record in enumerate(records):
            marks.append(f"(:i{number}, :s{number}, :t{number}, CAST(:r{number} AS double precision), :c{number})")
            values |= {
                f"i{number}": str(record.id),
                f"s{number}": record.service_id,
                f"t{number}": record.status.value,
                f"r{number}": record.response_time,
                f"c{number}": format_seconds(record.checked_at),
            }
        rows = db.run(f"{_INSERT}{', '.join(marks)} ON CONFLICT DO NOTHING RETURNING id::text", **values)
        if self._confirm is not None:
            new = {row[0] for row in rows}
            write_changes(db, [record for record in records if str(record.id) in new], confirm=self._confirm)


def _seen(row: Sequence[Any]) -> SeenStatus:
    status, response_time, checked_at = row
    if response_time is not None:
        response_time = round(response_time, 2)  # a column of type real adds digits that nobody measured
    return SeenStatus(status=status, response_time=response_time, checked_at=_utc(checked_at))


def _day(row: Sequence[Any]) -> ServiceDay:
    service = Service(id=row[0], user_id=row[1] or "", name=row[2] or "", url=row[3] or "")
    p50, p95, p99 = row[6] or (None, None, None)
    return ServiceDay(
        service=service,
        checks=row[4],
        up=row[5],
        latency_p50=p50,
        latency_p95=p95,
        latency_p99=p99,
        last_checked_at=_utc(row[7]) if row[7] is not None else None,
    )


def _change(row: Sequence[Any]) -> ServiceChange:
    service_id, version, user_id, before, after, checked_at, since = row
    return ServiceChange(
        service_id=service_id,
        user_id=user_id,
        version=version,
        from_status=Status(before) if before is not None else None,
        to_status=Status(after),
        checked_at=_utc(checked_at),
        since=_utc(since) if since is not None else None,
    )


def _utc(value: datetime | str) -> datetime:
    """A moment from whatever type the column has: with a zone, without one (then UTC was written), or text."""
    if isinstance(value, str):
        return parse_utc(value)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
