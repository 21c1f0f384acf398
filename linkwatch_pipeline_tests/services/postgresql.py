"""A PostgreSQL of our own on loopback, in a folder that is gone when the tests are.

Debian's programs; as root they are run as the user that the package made, since `initdb` refuses root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline_tests.pages import ROOT
from linkwatch_pipeline_tests.ports import reserved_port

USER = "watcher"
PASSWORD = "p@ss:/word?&%"  # has to be percent-encoded in a URL
PASSWORD_IN_URL = "p%40ss%3A%2Fword%3F%26%25"
TABLES = ROOT / "deploy" / "status-tables.sql"
_BINARIES = Path("/usr/lib/postgresql")
_UNPRIVILEGED = "postgres"


class Postgres:
    """A cluster in a folder. `port` is its own; stopping and starting keeps it and the data."""

    def __init__(self, folder: Path, binaries: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.options = ""  # further ones of the server
        self._binaries = binaries
        self._databases = 0
        self._shared: str | None = None

    def create(self) -> None:
        """Make the cluster with one superuser."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if os.getuid() == 0:
            _give_to_unprivileged(self.folder, secret)
        arguments = ["-D", str(self._data), "-U", USER, "--pwfile", str(secret), "--auth", "scram-sha-256"]
        self._run("initdb", *arguments, "-E", "UTF8", "--locale", "C", "--no-sync")

    def start(self) -> None:
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off {self.options}"
        )
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", str(self._data), "-w", "-s", "-l", log, "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Drop every connection and end; `immediate` without writing down what nobody will read."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "-s", "-m", mode, "stop")

    def serve_tls(self, certificate: bytes, key: bytes) -> None:
        """From the next start on, offer TLS with this certificate (PEM)."""
        for name, content in (("server.crt", certificate), ("server.key", key)):
            file = self.folder / name
            file.write_bytes(content)
            file.chmod(0o600)
            if os.getuid() == 0:
                _give_to_unprivileged(file)
        self.options = f"-c ssl=on -c ssl_cert_file={self.folder}/server.crt -c ssl_key_file={self.folder}/server.key"

    def new_database(self) -> str:
        """The URL of an empty database."""
        self._databases += 1
        name = f"team_{self._databases}"
        with connected(self.url("postgres")) as db:
            db.run(f"CREATE DATABASE {name}")
        return self.url(name)

    def emptied_database(self) -> str:
        """The URL of the one database that tests use in turn, emptied: cheaper than a new one."""
        if self._shared is None:
            self._shared = self.new_database()
        with connected(self._shared) as db:
            db.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        return self._shared

    def url(self, name: str) -> str:
        return f"postgresql://{USER}:{PASSWORD_IN_URL}@127.0.0.1:{self.port}/{name}"

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), *arguments]
        if os.getuid() == 0:
            who = ["--reuid", _UNPRIVILEGED, "--regid", _UNPRIVILEGED, "--clear-groups"]
            command = ["setpriv", *who, *command]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/", text=True
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stderr}")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One cluster for all tests of a session. Skips where there is no PostgreSQL."""
    with running_postgres() as cluster:
        yield cluster


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A started cluster, gone afterwards. Skips the test where PostgreSQL is not installed."""
    binaries = _newest_binaries()
    if binaries is None:
        pytest.skip(f"no PostgreSQL under {_BINARIES}: apt-get install postgresql")
    # Not pytest's folder: nobody else may enter that one.
    folder = Path(tempfile.mkdtemp(prefix="linkwatch-postgresql-"))
    with reserved_port() as port:
        cluster = Postgres(folder, binaries, port)
        try:
            cluster.create()
            cluster.start()
            yield cluster
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                cluster.stop("immediate")
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """A plain connection beside the code under test."""
    from pg8000.native import Connection

    from linkwatch_pipeline.adapters.status_store.database_url import parse_database_url

    place = parse_database_url(url)
    db = Connection(
        place.user, host=place.host, port=place.port, database=place.name, password=place.password, ssl_context=False
    )
    try:
        yield db
    finally:
        db.close()


def _newest_binaries() -> Path | None:
    found = [folder / "bin" for folder in _BINARIES.glob("*") if (folder / "bin" / "initdb").exists()]
    usable = os.getuid() != 0 or (shutil.which("setpriv") is not None and _has_user())
    return max(found, key=lambda folder: float(folder.parent.name), default=None) if usable else None


def _has_user() -> bool:
    return any(entry.pw_name == _UNPRIVILEGED for entry in pwd.getpwall())


def _give_to_unprivileged(*paths: Path) -> None:
    for path in paths:
        shutil.chown(path, _UNPRIVILEGED, _UNPRIVILEGED)
