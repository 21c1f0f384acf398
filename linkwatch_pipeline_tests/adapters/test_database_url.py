"""Where the database is, read as libpq reads it; what is wrong is named, and nobody sees a password."""

from __future__ import annotations

import json
import ssl
from pathlib import Path

import pytest
import trustme

from linkwatch_pipeline.adapters.status_store.database_url import parse_database_url, parse_secret
from linkwatch_pipeline.domain.errors import ConfigurationError

URL = "postgresql://w%40tcher:p%2Fa%3As%25s@db.example.com/team%20one"


def test_credentials_and_name_are_percent_decoded_and_the_port_has_a_default() -> None:
    place = parse_database_url(URL)
    assert (place.user, place.password, place.name) == ("w@tcher", "p/a:s%s", "team one")
    assert (place.host, place.port) == ("db.example.com", 5432)
    assert parse_database_url("postgres://u@[::1]:6432/d").port == 6432
    assert parse_database_url("postgresql+psycopg2://u:p@db.example.com/d").name == "d"


def test_neither_user_nor_password_is_shown() -> None:
    place = parse_database_url(URL)
    assert "tcher" not in f"{place!r} {place}"
    assert "p/a" not in f"{place!r} {place}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mysql://u:secret@h/d", "postgresql://"),
        ("postgresql://u:secret@/d", "no host"),
        ("postgresql://h/d", "no user"),
        ("postgresql://u:secret@h", "no database name"),
        ("postgresql://u:secret@h:port/d", "no URL"),
        ("postgresql://u:secret@h/d?sslmode=yes", "sslmode"),
    ],
)
def test_a_url_that_cannot_be_one_is_refused_without_repeating_it(text: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) as refused:
        parse_database_url(text)
    assert "secret" not in str(refused.value)


def test_without_a_mode_another_machine_is_reached_over_verified_tls_and_this_one_plainly() -> None:
    context = parse_database_url(URL).ssl_context()
    assert isinstance(context, ssl.SSLContext)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    for host in ("127.0.0.1", "localhost", "[::1]"):
        assert parse_database_url(f"postgresql://u:p@{host}/d").ssl_context() is False


@pytest.mark.parametrize(
    ("mode", "with_root", "verifies", "checks_name"),
    [
        ("require", False, ssl.CERT_NONE, False),
        ("require", True, ssl.CERT_REQUIRED, False),
        ("verify-ca", True, ssl.CERT_REQUIRED, False),
        ("verify-full", True, ssl.CERT_REQUIRED, True),
    ],
)
def test_each_mode_verifies_what_it_says(
    mode: str, with_root: bool, verifies: ssl.VerifyMode, checks_name: bool, tmp_path: Path
) -> None:
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    root = f"&sslrootcert={tmp_path / 'ca.pem'}" if with_root else ""
    context = parse_database_url(f"{URL}?sslmode={mode}{root}").ssl_context()
    assert isinstance(context, ssl.SSLContext)
    assert (context.verify_mode, context.check_hostname) == (verifies, checks_name)


def test_plain_and_opportunistic_connections_have_to_be_asked_for() -> None:
    assert parse_database_url(f"{URL}?sslmode=disable").ssl_context() is False
    assert parse_database_url(f"{URL}?sslmode=prefer").ssl_context() is None


def test_root_certificates_that_cannot_be_read_are_named() -> None:
    with pytest.raises(ConfigurationError, match="nowhere"):
        parse_database_url(f"{URL}?sslmode=verify-full&sslrootcert=nowhere.pem").ssl_context()


@pytest.mark.parametrize(
    "secret",
    [
        "postgresql://w:p%40ss@db.example.com:5433/d",
        json.dumps({"DATABASE_URL": "postgresql://w:p%40ss@db.example.com:5433/d"}),
        json.dumps({"username": "w", "password": "p@ss", "host": "db.example.com", "port": 5433, "dbname": "d"}),
    ],
)
def test_a_secret_holds_a_url_or_what_rds_writes(secret: str) -> None:
    place = parse_secret(secret)
    assert (place.user, place.password, place.host, place.port, place.name) == (
        "w",
        "p@ss",
        "db.example.com",
        5433,
        "d",
    )
    assert place.sslmode == "verify-full"


@pytest.mark.parametrize("secret", ["{", "{}", '{"username": "hidden", "host": "h"}', "hidden", '{"hidden":' * 20_000])
def test_a_secret_that_holds_something_else_is_refused_without_repeating_it(secret: str) -> None:
    with pytest.raises(ConfigurationError, match="DATABASE_URL_SECRET_ARN") as refused:
        parse_secret(secret)
    assert "hidden" not in str(refused.value)
