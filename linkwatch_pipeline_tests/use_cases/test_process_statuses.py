"""Each message becomes one status and one row on real servers, whatever is redelivered, malformed or restarted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from linkwatch_pipeline.adapters.status_store.database_url import parse_database_url
from linkwatch_pipeline.adapters.status_store.postgres import PostgresStatusStore
from linkwatch_pipeline.adapters.status_store.redis_cache import RedisStatusCache
from linkwatch_pipeline.domain.service_status import StatusMessage, row_id
from linkwatch_pipeline.use_cases.process_statuses import ProcessReport, process_statuses, prune_history
from linkwatch_pipeline_tests.services.postgresql import Postgres
from linkwatch_pipeline_tests.services.team import Team

SENT = datetime(2026, 11, 29, 9, 0, 7, 500_000, tzinfo=UTC)


def message(
    service_id: str, name: str = "m1", *, minute: int = 0, refused: bool = False, **changes: Any
) -> StatusMessage:
    content = {
        "service_id": service_id,
        "user_id": "u1",
        "url": "https://a.example",
        "status": "UP",
        "latency_ms": 12.35,
    }
    return StatusMessage(
        message_id=name,
        sent_at=SENT + timedelta(minutes=minute),
        body=json.dumps(content | changes),
        refused=refused,
    )


class Processor:
    """The processor's parts, kept over its batches as an environment keeps them."""

    def __init__(self, team: Team, *, confirm: int | None = None) -> None:
        self.cache: RedisStatusCache = team.cache()
        self.history: PostgresStatusStore = team.store(confirm=confirm)

    def take(self, *messages: StatusMessage) -> ProcessReport:
        return process_statuses(messages, cache=self.cache, history=self.history)

    def changes(self) -> list[str]:
        return [f"{change.id} {change.to_status}" for change in self.history.untold(limit=100)]


@contextmanager
def processor_of(team: Team, *, confirm: int | None = None) -> Iterator[Processor]:
    parts = Processor(team, confirm=confirm)
    try:
        yield parts
    finally:
        parts.cache.close()
        parts.history.close()


@pytest.fixture
def processor(team: Team) -> Iterator[Processor]:
    with processor_of(team) as parts:
        yield parts


def test_a_message_becomes_the_status_and_the_row_that_the_originals_reader_reads(
    team: Team, processor: Processor
) -> None:
    service = team.add_service("https://a.example")
    assert team.read_as_the_original(service)["status"] == "UNKNOWN"
    assert processor.take(message(service)) == ProcessReport(written=1, gone=0, malformed=0, failed=frozenset())
    checked_at = SENT.replace(microsecond=0)
    assert team.cached(service) == {"status": "UP", "response_time": 12.35, "checked_at": "2026-11-29T09:00:07Z"}
    assert team.rows(service) == [(str(row_id("m1")), "UP", 12.35, checked_at)]
    with team.valkey.client() as client:
        assert 85 <= client.ttl(f"status:{service}") <= 90
        from_redis = team.read_as_the_original(service)
        client.delete(f"status:{service}")
    from_row = team.read_as_the_original(service)
    assert from_redis == from_row == {"status": "UP", "response_time": 12.35, "checked_at": checked_at}


def test_everything_redelivered_twice_changes_nothing(team: Team) -> None:
    services = [team.add_service(f"https://{number}.example") for number in range(12)]
    messages = [message(service, f"m-{service}", status="DOWN") for service in services]
    with processor_of(team, confirm=1) as processor:
        processor.take(*messages[:10])
        processor.take(*messages[10:])
        before = (team.rows(), [team.cached(service) for service in services], sorted(processor.changes()))
        for _ in range(2):
            assert processor.take(*messages).failed == frozenset()
        processor.take(messages[0], messages[0], messages[0])
        after = (team.rows(), [team.cached(service) for service in services], sorted(processor.changes()))
    assert before == after
    assert len(after[0]) == len(after[2]) == 12


def test_one_bad_message_fails_alone(team: Team, processor: Processor) -> None:
    service = team.add_service("https://a.example")
    bad = [
        StatusMessage(message_id="not-json", sent_at=SENT, body="{"),
        message(service, "no-status", status="PERHAPS"),
        message("not-a-uuid", "not-of-this-database"),
    ]
    report = processor.take(bad[0], message(service, "good"), *bad[1:])
    assert report.failed == {"not-json", "no-status", "not-of-this-database"}
    assert (report.written, report.malformed) == (1, 2)
    assert [row[0] for row in team.rows()] == [str(row_id("good"))]
    assert team.cached(service) is not None


def test_a_status_without_a_latency_is_written_and_read_without_one(team: Team, processor: Processor) -> None:
    service = team.add_service("https://a.example")
    assert processor.take(message(service, status="DOWN", latency_ms=None)).failed == frozenset()
    with team.valkey.client() as client:
        from_redis = team.read_as_the_original(service)
        client.delete(f"status:{service}")
    assert from_redis == team.read_as_the_original(service)
    assert from_redis["response_time"] is None


def test_a_service_that_was_removed_meanwhile_is_no_failure(team: Team, processor: Processor) -> None:
    kept, removed = team.add_service("https://a.example"), team.add_service("https://b.example")
    team.remove_service(removed)
    report = processor.take(message(removed, "m1"), message(kept, "m2"))
    assert (report.gone, report.written, report.failed) == (1, 1, frozenset())
    assert [row[0] for row in team.rows()] == [str(row_id("m2"))]


def test_an_older_message_gets_its_row_and_leaves_the_newer_status(team: Team, processor: Processor) -> None:
    service = team.add_service("https://a.example")
    processor.take(message(service, "newer", minute=1))
    processor.take(message(service, "older", status="DOWN"))
    assert [row[1] for row in team.rows(service)] == ["DOWN", "UP"]
    assert team.read_as_the_original(service)["status"] == "UP"
    processor.take(message(service, "same-second", minute=1, status="DOWN"), message(service, "newest", minute=2))
    assert team.read_as_the_original(service)["checked_at"] == SENT.replace(microsecond=0) + timedelta(minutes=2)


@pytest.mark.parametrize("there", ["nonsense", "[]", '{"checked_at": 5}', '{"checked_at": "2020-01-01T00:00:00Z"}'])
def test_what_is_no_newer_status_of_ours_is_replaced(team: Team, processor: Processor, there: str) -> None:
    service = team.add_service("https://a.example")
    with team.valkey.client() as client:
        client.set(f"status:{service}", there)
    processor.take(message(service))
    assert team.read_as_the_original(service)["status"] == "UP"


def test_a_key_of_another_type_is_replaced_and_no_other_message_suffers(team: Team, processor: Processor) -> None:
    first, second = (team.add_service("https://a.example") for _ in range(2))
    with team.valkey.client() as client:
        client.hset(f"status:{first}", "status", "UP")
    assert processor.take(message(first, "m1"), message(second, "m2")).failed == frozenset()
    assert [team.read_as_the_original(name)["status"] for name in (first, second)] == ["UP", "UP"]


def test_without_redis_rows_are_written_and_the_messages_come_back(team: Team, processor: Processor) -> None:
    service = team.add_service("https://a.example")
    processor.take(message(service, "m0"))
    team.valkey.stop()
    try:
        assert processor.take(message(service, "m1", minute=1)).failed == {"m1"}
        assert len(team.rows(service)) == 2
    finally:
        team.valkey.start()
    assert team.cached(service) is None
    assert processor.take(message(service, "m1", minute=1)).failed == frozenset()
    assert len(team.rows(service)) == 2
    assert team.cached(service) is not None


def test_without_postgresql_statuses_are_written_and_the_messages_come_back(
    team: Team, processor: Processor, postgres: Postgres
) -> None:
    service = team.add_service("https://a.example")
    processor.take(message(service, "m0", status="DOWN"))
    postgres.stop()
    try:
        assert processor.take(message(service, "m1", minute=1)).failed == {"m1"}
        cached = team.cached(service)
        assert cached is not None
        assert cached["status"] == "UP"
    finally:
        postgres.start()
    assert processor.take(message(service, "m1", minute=1)).failed == frozenset()
    assert [row[1] for row in team.rows(service)] == ["DOWN", "UP"]


def test_connections_survive_a_restart_between_two_batches(
    team: Team, processor: Processor, postgres: Postgres
) -> None:
    service = team.add_service("https://a.example")
    processor.take(message(service, "m0"))
    postgres.stop()
    postgres.start()
    team.valkey.stop()
    team.valkey.start()
    assert processor.take(message(service, "m1", minute=1)).failed == frozenset()
    assert len(team.rows(service)) == 2
    assert team.cached(service) is not None


def test_a_connection_that_may_only_read_is_opened_anew(team: Team, processor: Processor) -> None:
    """As after a failover: whom we are connected to is a replica now, and the name leads to another machine."""
    service = team.add_service("https://a.example")
    name = parse_database_url(team.database_url).name
    with team.database() as db:
        db.run(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    try:
        assert processor.take(message(service, "m1")).failed == {"m1"}
    finally:
        with team.database() as db:
            db.run("SET default_transaction_read_only = off")
            db.run(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    assert processor.take(message(service, "m1")).failed == frozenset()
    assert len(team.rows(service)) == 1


def states(service: str, statuses: str, *, refused: str = "") -> Sequence[StatusMessage]:
    return [
        message(service, f"m{minute}", minute=minute, status="UP" if letter == "u" else "DOWN", refused=letter == "r")
        for minute, letter in enumerate(statuses)
    ]


@pytest.mark.parametrize(("confirm", "expected"), [(1, ["2 DOWN", "3 UP", "4 DOWN"]), (2, ["2 DOWN"])])
def test_changes_are_written_with_their_rows_and_only_once(team: Team, confirm: int, expected: list[str]) -> None:
    service = team.add_service("https://a.example")
    with processor_of(team, confirm=confirm) as processor:
        for one in states(service, "ududd"):
            processor.take(one)
        processor.take(*states(service, "ududd"))
        assert processor.changes() == [f"service:{service}:{change}" for change in expected]


def test_processors_side_by_side_lose_no_check_of_a_service(team: Team) -> None:
    service, workers, each = team.add_service("https://a.example"), 4, 10

    def work(worker: int) -> None:
        with processor_of(team, confirm=workers * each) as processor:
            for number in range(each):
                processor.take(message(service, f"w{worker}-{number}", status="DOWN"))

    with ThreadPoolExecutor(workers) as threads:
        list(threads.map(work, range(workers)))
    assert len(team.rows(service)) == workers * each
    with processor_of(team, confirm=1) as processor:
        assert processor.changes() == [f"service:{service}:1 DOWN"]


def test_a_refused_address_is_down_for_readers_and_no_change_to_tell(team: Team) -> None:
    service = team.add_service("http://10.0.0.1/")
    with processor_of(team, confirm=1) as processor:
        processor.take(*states(service, "rrr"))
        assert processor.changes() == []
    assert team.read_as_the_original(service)["status"] == "DOWN"


def test_without_notices_the_tables_of_our_own_need_not_exist(team: Team, processor: Processor) -> None:
    service = team.add_service("https://a.example")
    with team.database() as db:
        db.run("DROP TABLE linkwatch_service_states, linkwatch_service_changes")
    assert processor.take(message(service)).failed == frozenset()


def test_rows_are_deleted_only_beyond_what_is_to_be_kept(team: Team, processor: Processor) -> None:
    service = team.add_service("https://a.example")
    processor.take(*states(service, "udu"))
    now = SENT + timedelta(minutes=2, hours=24)
    assert prune_history(processor.history, now=now, keep=timedelta(hours=24)) == 2
    assert len(team.rows()) == 1
