"""The database connection over real TLS, after a change of password, and after the server cut it off."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme

from linkwatch_pipeline.adapters.status_store.connection import Connection
from linkwatch_pipeline.adapters.status_store.database_url import DatabasePlace, parse_database_url
from linkwatch_pipeline.adapters.status_store.postgres import PostgresStatusStore
from linkwatch_pipeline.adapters.status_store.redis_cache import RedisStatusCache
from linkwatch_pipeline.adapters.status_store.rest import Rest
from linkwatch_pipeline.domain.errors import ConfigurationError, StoreUnavailable, StoreUnusable
from linkwatch_pipeline.domain.service_status import Status, StatusRecord, row_id
from linkwatch_pipeline_tests.services.postgresql import Postgres, connected, running_postgres
from linkwatch_pipeline_tests.services.team import Team
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

USES_TLS = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"

RECORD = StatusRecord(
    id=row_id("m1"),
    service_id="s1",
    user_id="u1",
    status=Status.UP,
    response_time=1.0,
    checked_at=datetime(2026, 11, 29, 9, 0, tzinfo=UTC),
)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def root(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("authority") / "root.pem"
    authority.cert_pem.write_to_path(str(file))
    return file


@pytest.fixture(scope="module")
def tls_postgres(authority: trustme.CA) -> Iterator[Postgres]:
    """A server whose certificate is for localhost only."""
    with running_postgres() as cluster:
        certificate = authority.issue_cert("localhost")
        cluster.stop()
        cluster.serve_tls(certificate.cert_chain_pems[0].bytes(), certificate.private_key_pem.bytes())
        cluster.start()
        yield cluster


def uses_tls(url: str) -> bool:
    connection = Connection(lambda: parse_database_url(url))
    try:
        return bool(connection.run(lambda db: db.run(USES_TLS))[0][0])
    finally:
        connection.close()


def test_the_certificate_and_its_name_are_verified_where_that_is_asked_for(tls_postgres: Postgres, root: Path) -> None:
    by_name = tls_postgres.url("postgres").replace("127.0.0.1", "localhost")
    by_address = tls_postgres.url("postgres")
    assert uses_tls(f"{by_name}?sslmode=verify-full&sslrootcert={root}")
    assert uses_tls(f"{by_address}?sslmode=verify-ca&sslrootcert={root}")
    assert uses_tls(f"{by_address}?sslmode=require")
    assert uses_tls(f"{by_address}?sslmode=prefer")
    assert not uses_tls(f"{by_address}?sslmode=disable")
    with pytest.raises(StoreUnusable, match="not trusted"):
        uses_tls(f"{by_address}?sslmode=verify-full&sslrootcert={root}")
    with pytest.raises(StoreUnusable, match="sslrootcert"):
        uses_tls(f"{by_name}?sslmode=verify-full")


def test_a_server_without_tls_is_refused_unless_it_is_only_preferred(team: Team) -> None:
    assert not uses_tls(f"{team.database_url}?sslmode=prefer")
    with pytest.raises(StoreUnusable, match="sslmode=disable"):
        uses_tls(f"{team.database_url}?sslmode=require")


def test_a_login_without_a_password_is_refused_in_the_servers_words(team: Team) -> None:
    place = parse_database_url(team.database_url)
    with pytest.raises(StoreUnusable, match="password authentication failed"):
        uses_tls(f"postgresql://{place.user}@{place.host}:{place.port}/{place.name}")


def test_a_host_that_no_name_can_have_is_not_reached() -> None:
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        uses_tls(f"postgresql://u:p@{'a' * 70}.example/team")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@ss:/hidden?&%@127.0.0.1/team",
        "postgresql://u:hidden@%2Fvar%2Frun%2Fpostgresql/team",
        "postgresql://u:hidden@/team?host=/var/run/postgresql",
    ],
)
def test_a_url_that_means_something_else_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigurationError, match="percent-encoded") as refused:
        parse_database_url(url)
    assert "hidden" not in str(refused.value)


def test_an_option_that_is_not_used_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        parse_database_url("postgresql://u:p@127.0.0.1/team?target_session_attrs=any")
    assert caplog.text.count("target_session_attrs") == 1


def test_a_database_that_keeps_us_waiting_is_left_alone_for_a_while() -> None:
    clock, tries = VirtualClock(), []

    def find() -> DatabasePlace:
        tries.append(clock.now())
        clock.advance(timedelta(seconds=8))
        raise StoreUnavailable("no answer")

    store = PostgresStatusStore(find, rest=Rest(clock))
    for expected in (1, 1):
        with pytest.raises(StoreUnavailable):
            store.services()
        assert len(tries) == expected
    clock.advance(timedelta(seconds=10))
    with pytest.raises(StoreUnavailable, match="no answer"):
        store.services()


def test_an_answer_that_does_not_come_is_waited_for_once(team: Team) -> None:
    connection = Connection(lambda: parse_database_url(team.database_url), patience_seconds=60)
    connection.run(lambda db: db.run("SELECT 1"))
    asked = []

    def hang(db: Any) -> None:
        asked.append(db)
        assert db._usock.gettimeout() == 60
        db._usock.settimeout(0.2)  # the patience is over sooner for this answer alone
        db.run("SELECT pg_sleep(100)")

    with pytest.raises(StoreUnavailable, match="does not answer"):
        connection.run(hang)
    assert len(asked) == 1
    assert connection.run(lambda db: db.run("SELECT 1")) == [[1]]  # on a new connection
    connection.close()


def test_a_redis_that_refuses_at_once_is_asked_each_time_and_a_slow_one_is_not() -> None:
    clock = VirtualClock()
    words = []
    for slow in (timedelta(seconds=1), timedelta(0)):
        cache = RedisStatusCache("redis://127.0.0.1:9/0", rest=Rest(clock, slow=slow))
        for _ in range(2):
            with pytest.raises(StoreUnavailable) as failed:
                cache.put([RECORD])
            words.append("left alone" in str(failed.value))
        cache.close()
    assert words == [False, False, False, True]


def test_a_rotated_secret_is_read_again_when_the_login_is_refused(team: Team, postgres: Postgres) -> None:
    with team.database() as db:
        db.run("DROP ROLE IF EXISTS rotated")
        db.run("CREATE ROLE rotated LOGIN PASSWORD 'first'")
    place = parse_database_url(team.database_url)
    secret = ["first"]

    def url() -> str:
        return f"postgresql://rotated:{secret[0]}@127.0.0.1:{postgres.port}/{place.name}"

    connection = Connection(lambda: parse_database_url(url()))
    assert connection.run(lambda db: db.run("SELECT 1")) == [[1]]
    with team.database() as db:
        db.run("ALTER ROLE rotated PASSWORD 'second'")
        db.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'rotated'")
    secret[0] = "second"
    assert connection.run(lambda db: db.run("SELECT 2")) == [[2]]
    secret[0] = "wrong"
    connection.close()
    with team.database() as db:
        db.run("ALTER ROLE rotated PASSWORD 'third'")
    with pytest.raises(StoreUnusable) as refused:
        connection.run(lambda db: db.run("SELECT 3"))
    assert "wrong" not in str(refused.value)


def test_work_that_fails_leaves_nothing_behind(team: Team) -> None:
    connection = Connection(lambda: parse_database_url(team.database_url))

    def half_done(db: object) -> None:
        db.run("INSERT INTO linkwatch_service_states (service_id) VALUES ('s')")  # type: ignore[attr-defined]
        raise KeyError("in the middle")

    with pytest.raises(KeyError):
        connection.run(half_done)
    assert connection.run(lambda db: db.run("SELECT count(*) FROM linkwatch_service_states")) == [[0]]
    connection.close()
    with connected(team.database_url) as db:
        assert db.run("SELECT 1") == [[1]]
