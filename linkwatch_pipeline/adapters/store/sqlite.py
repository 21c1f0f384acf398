"""The embedded system of record: one SQLite file that keeps every promise of `ports.Store` on one laptop.

WAL and synchronous=FULL: what a method returned from survives a power cut. Any number of processes may open the file;
in one process the threads share one connection, and the caller writes from one of them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path

from linkwatch_pipeline.adapters.store.sqlite_database import BUSY_TIMEOUT, Database
from linkwatch_pipeline.adapters.store.sqlite_history import SqliteHistory
from linkwatch_pipeline.adapters.store.sqlite_hosts import SqliteHosts
from linkwatch_pipeline.adapters.store.sqlite_outbox import SqliteOutbox
from linkwatch_pipeline.adapters.store.sqlite_registry import SqliteRegistry
from linkwatch_pipeline.adapters.store.sqlite_restore import SqliteRestore
from linkwatch_pipeline.adapters.store.sqlite_runs import SqliteRuns


class SqliteStore(SqliteRegistry, SqliteRuns, SqliteHosts, SqliteHistory, SqliteOutbox, SqliteRestore):
    """`ports.Store` on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, path: Path, *, busy_timeout: timedelta = BUSY_TIMEOUT) -> SqliteStore:
        """Open the store in a file, creating and migrating it where needed.

        Args: busy_timeout: how long a write waits for another process.
        Raises: StoreUnusable (not ours, damaged, or newer than this linkwatch), StoreUnavailable.
        """
        return cls(Database.open(path, busy_timeout=busy_timeout))

    def grouped(self) -> AbstractContextManager[None]:
        """Commit what is written inside together, when the block ends: one trip to the disk for all of it.

        A method that raises still writes nothing. Nothing is kept before the block has ended, and nothing at all if
        its end raises (StoreError).
        """
        return self._database.grouped()

    def verify(self) -> None:
        """Read and write for trial; nothing stays of it. Raises StoreError."""
        with self._database.transaction() as write:
            write.execute("DELETE FROM links WHERE id = ''")

    def close(self) -> None:
        """Release the file. The store cannot be used afterwards."""
        self._database.close()
