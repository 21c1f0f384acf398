"""The database connection over real TLS, after a change of password, and after the server cut it off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from linkwatch_pipeline.adapters.status_store.connection import Connection
from linkwatch_pipeline.adapters.status_store.database_url import parse_database_url
from linkwatch_pipeline.domain.errors import StoreUnavailable, StoreUnusable
from linkwatch_pipeline_tests.services.postgresql import Postgres, connected, running_postgres
from linkwatch_pipeline_tests.services.team import Team

USES_TLS = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


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
    with pytest.raises(StoreUnavailable):
        uses_tls(f"{team.database_url}?sslmode=require")


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
