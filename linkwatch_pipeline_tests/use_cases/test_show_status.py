"""A reader finds the freshest word there is: Redis, else the newest row, else UNKNOWN."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from linkwatch_pipeline.adapters.status_store.postgres import PostgresStatusStore
from linkwatch_pipeline.domain.service_status import SeenStatus, Status, StatusRecord
from linkwatch_pipeline.use_cases.show_status import Source, show_history, show_statuses
from linkwatch_pipeline_tests.services.team import USER, Team

NOW = datetime(2026, 11, 29, 9, 0, 30, tzinfo=UTC)
OTHER_USER = "0b0e7c1a-1f0e-4a51-9a52-6f1de0c0a002"


@pytest.fixture
def store(team: Team) -> Iterator[PostgresStatusStore]:
    opened = team.store()
    yield opened
    opened.close()


def record(service_id: str, status: Status, *, ago: timedelta) -> StatusRecord:
    return StatusRecord(
        id=uuid4(), service_id=service_id, user_id=USER, status=status, response_time=7.25, checked_at=NOW - ago
    )


def test_redis_comes_first_then_the_newest_row_then_unknown(team: Team, store: PostgresStatusStore) -> None:
    cached, stored, new = (team.add_service(f"https://{name}.example", name=name) for name in "abc")
    team.add_service("https://d.example", is_active=False)
    store.add([record(cached, Status.UP, ago=timedelta(minutes=1))])
    store.add([record(stored, Status.UP, ago=timedelta(hours=2)), record(stored, Status.DOWN, ago=timedelta(hours=1))])
    team.cache().put([record(cached, Status.DOWN, ago=timedelta(seconds=20))])
    view = show_statuses(store, team.cache(), store)
    shown = {status.service.id: status for status in view.statuses}
    assert {name: (shown[name].status, shown[name].source, shown[name].age(NOW)) for name in (cached, stored, new)} == {
        cached: ("DOWN", Source.REDIS, timedelta(seconds=20)),
        stored: ("DOWN", Source.POSTGRESQL, timedelta(hours=1)),
        new: ("UNKNOWN", None, None),
    }
    assert len(shown) == 3
    assert view.problem is None


def test_a_user_sees_only_their_own_services(team: Team, store: PostgresStatusStore) -> None:
    mine, _ = team.add_service("https://a.example"), team.add_service("https://b.example", user_id=OTHER_USER)
    view = show_statuses(store, team.cache(), store, user_id=USER)
    assert [status.service.id for status in view.statuses] == [mine]
    assert show_statuses(store, team.cache(), store, user_id="nobody").statuses == ()


def test_without_redis_the_newest_rows_are_shown_and_the_problem_is_told(
    team: Team, store: PostgresStatusStore
) -> None:
    service = team.add_service("https://a.example")
    store.add([record(service, Status.UP, ago=timedelta(seconds=20))])
    team.valkey.stop()
    try:
        view = show_statuses(store, team.cache(), store)
    finally:
        team.valkey.start()
    assert [(status.status, status.source) for status in view.statuses] == [("UP", Source.POSTGRESQL)]
    assert view.problem is not None


def test_history_is_the_last_day_the_newest_first(team: Team, store: PostgresStatusStore) -> None:
    service = team.add_service("https://a.example")
    hours = (25, 24, 3, 1)
    store.add([record(service, Status.UP, ago=timedelta(hours=ago)) for ago in hours])
    assert show_history(store, service, now=NOW) == [
        SeenStatus(status="UP", response_time=7.25, checked_at=NOW - timedelta(hours=ago)) for ago in (1, 3, 24)
    ]
    assert show_history(store, "no-such-id", now=NOW) == []


@pytest.mark.parametrize(
    ("ids", "response_time", "checked_at"),
    [("bigint", "integer", "timestamp"), ("text", "numeric", "text"), ("varchar(80)", "real", "timestamptz")],
)
def test_tables_with_other_column_types_serve_as_well(
    team: Team, store: PostgresStatusStore, ids: str, response_time: str, checked_at: str
) -> None:
    """The original's tables are known by their columns' names, not by all of their types."""
    with team.database() as db:
        db.run("DROP TABLE service_status; DROP TABLE services")
        db.run(f"CREATE TABLE services (id {ids} PRIMARY KEY, user_id {ids}, name text, url text, is_active boolean)")
        db.run(
            f"CREATE TABLE service_status (id uuid PRIMARY KEY, service_id {ids}, status varchar(10), "
            f"response_time {response_time}, checked_at {checked_at})"
        )
        db.run("INSERT INTO services VALUES ('7', '8', NULL, 'https://a.example', true)")
    (service,) = store.services(user_id="8")
    assert (service.id, service.user_id, service.name) == ("7", "8", "")
    store.add([record("7", Status.DOWN, ago=timedelta(hours=1))])
    assert store.latest(["7"])["7"].checked_at == NOW - timedelta(hours=1)
    assert [seen.status for seen in show_history(store, "7", now=NOW)] == ["DOWN"]
    (day,) = store.day(NOW - timedelta(days=1), NOW)
    assert (day.checks, day.up, day.uptime, day.latency_p50) == (1, 0, 0.0, None)
    assert day.last_checked_at == NOW - timedelta(hours=1)


def test_a_day_counts_uptime_and_the_latencies_of_what_was_up(team: Team, store: PostgresStatusStore) -> None:
    service, idle = team.add_service("https://a.example", name="a"), team.add_service("https://b.example", name="b")
    for minute in range(100):
        seen = record(service, Status.DOWN if minute < 5 else Status.UP, ago=timedelta(minutes=minute + 1))
        store.add([seen])
    store.add([record(service, Status.DOWN, ago=timedelta(hours=30))])
    days = {day.service.id: day for day in store.day(NOW - timedelta(days=1), NOW)}
    assert (days[service].checks, days[service].uptime) == (100, 0.95)
    assert (days[service].latency_p50, days[service].latency_p99) == (7.25, 7.25)
    assert (days[idle].checks, days[idle].uptime, days[idle].latency_p50) == (0, None, None)
