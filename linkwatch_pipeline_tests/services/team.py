"""A team that ran the original: its database, its Redis, and its reader, written as the original's is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from linkwatch_pipeline.adapters.status_store.database_url import parse_database_url
from linkwatch_pipeline.adapters.status_store.postgres import PostgresStatusStore
from linkwatch_pipeline.adapters.status_store.redis_cache import RedisStatusCache
from linkwatch_pipeline_tests.services.postgresql import TABLES, Postgres, connected
from linkwatch_pipeline_tests.services.valkey import Valkey

USER = "0b0e7c1a-1f0e-4a51-9a52-6f1de0c0a001"


class Team:
    """Its services and what is written about them."""

    def __init__(self, database_url: str, valkey: Valkey) -> None:
        self.database_url = database_url
        self.valkey = valkey
        with self.database() as db:
            db.run(TABLES.read_text(encoding="utf-8"))

    @property
    def env(self) -> dict[str, str]:
        return {"DATABASE_URL": self.database_url, "REDIS_URL": self.valkey.url}

    @contextmanager
    def database(self) -> Iterator[Any]:
        with connected(self.database_url) as db:
            yield db

    def add_service(self, url: str, *, name: str = "api", user_id: str = USER, is_active: bool = True) -> str:
        """A new service; its id."""
        service_id = str(uuid4())
        with self.database() as db:
            db.run(
                "INSERT INTO services (id, user_id, name, url, is_active) VALUES (:id, :user, :name, :url, :active)",
                id=service_id, user=user_id, name=name, url=url, active=is_active,
            )  # fmt: skip
        return service_id

    def remove_service(self, service_id: str) -> None:
        with self.database() as db:
            db.run("DELETE FROM services WHERE id = :id", id=service_id)

    def rows(self, service_id: str | None = None) -> list[tuple[str, str, float, datetime]]:
        """(id, status, response_time, checked_at) of every row, or of a service's, the oldest first."""
        where = "WHERE service_id = :service_id" if service_id is not None else ""
        values = {"service_id": service_id} if service_id is not None else {}
        with self.database() as db:
            columns = "id::text, status, response_time, checked_at"
            found = db.run(f"SELECT {columns} FROM service_status {where} ORDER BY checked_at, id", **values)
        return [(row[0], row[1], row[2], row[3].astimezone(UTC)) for row in found]

    def cached(self, service_id: str) -> dict[str, Any] | None:
        """What is in Redis."""
        with self.valkey.client() as client:
            value = client.get(f"status:{service_id}")
        return json.loads(value) if value is not None else None

    def read_as_the_original(self, service_id: str) -> dict[str, Any]:
        """The reader of the original's API: Redis first, then the newest row, else UNKNOWN."""
        with self.valkey.client() as client:
            cached = client.get(f"status:{service_id}")
        if cached:
            data = json.loads(cached)
            checked_at = datetime.strptime(data["checked_at"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
            return {"status": data["status"], "response_time": data["response_time"], "checked_at": checked_at}
        with self.database() as db:
            newest = db.run(
                "SELECT status, response_time, checked_at FROM service_status WHERE service_id = :id "
                "ORDER BY checked_at DESC LIMIT 1",
                id=service_id,
            )
        if newest:
            return {"status": newest[0][0], "response_time": newest[0][1], "checked_at": newest[0][2]}
        return {"status": "UNKNOWN", "response_time": None, "checked_at": None}

    def store(self, *, confirm: int | None = None) -> PostgresStatusStore:
        """The adapter on its database; who takes it closes it."""
        return PostgresStatusStore(lambda: parse_database_url(self.database_url), confirm=confirm)

    def cache(self) -> RedisStatusCache:
        return RedisStatusCache(self.valkey.url)


@pytest.fixture
def team(postgres: Postgres, valkey: Valkey) -> Team:
    """A team without services, on servers shared by the session."""
    return Team(postgres.emptied_database(), valkey)
