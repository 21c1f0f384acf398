"""One SQLite file: opening it, whole or not at all, and what the parts of the store do with it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import RLock, get_ident
from typing import Any

from linkwatch_pipeline.adapters.store.readable import readable
from linkwatch_pipeline.adapters.store.sqlite_errors import in_our_words
from linkwatch_pipeline.adapters.store.sqlite_schema import prepare
from linkwatch_pipeline.adapters.store.sqlite_transactions import Group, Transaction, alone, roll_back, within
from linkwatch_pipeline.adapters.store.table import R, Row, Table
from linkwatch_pipeline.domain.errors import StoreUnavailable, StoreUnusable
from linkwatch_pipeline.ports import Damaged

BUSY_TIMEOUT = timedelta(seconds=5)
# A stream reads so many rows at a time and holds neither a lock nor a snapshot in between.
STREAM_ROWS = 500
_IN_MEMORY = ":memory:"


class Database:
    """One connection, shared by the threads of a process. Several processes may have the file open."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._lock = RLock()
        self._group: Group | None = None

    @classmethod
    def open(cls, path: Path, *, busy_timeout: timedelta = BUSY_TIMEOUT) -> Database:
        """Open a database, creating and migrating it where needed.

        Raises: StoreUnusable (not ours, damaged, or newer than this linkwatch), StoreUnavailable.
        """
        if str(path) != _IN_MEMORY and not path.exists():
            cls._create(path, busy_timeout)
        if str(path) != _IN_MEMORY and path.stat().st_size == 0:
            # Never taken as new: a new one appears whole, so something has emptied this one.
            raise StoreUnusable(
                f"{path} is empty: a database that was there is lost, or never came to be. "
                "Put a backup in its place, or delete the empty file to begin anew."
            )
        return cls._connect(path, busy_timeout)

    @classmethod
    def _create(cls, path: Path, busy_timeout: timedelta) -> None:
        """Make a database beside and give it its name when it is whole. Whoever is slower takes what is there."""
        fresh = path.with_name(f"{path.name}.new-{os.getpid()}-{get_ident()}")
        try:
            cls._connect(fresh, busy_timeout).close()
            with suppress(FileExistsError):
                os.link(fresh, path)
            _keep_name(path.parent)
        except OSError as error:
            raise StoreUnavailable(f"{path} cannot be made: {error.strerror}. Nothing was written.") from error
        finally:
            for leftover in ("", "-wal", "-shm"):
                with suppress(OSError):
                    fresh.with_name(fresh.name + leftover).unlink()

    @classmethod
    def _connect(cls, path: Path, busy_timeout: timedelta) -> Database:
        with in_our_words(path):
            connection = sqlite3.connect(
                path, timeout=busy_timeout.total_seconds(), isolation_level=None, check_same_thread=False
            )
        try:
            with in_our_words(path):
                prepare(connection, path)
        except BaseException:
            connection.close()
            raise
        return cls(connection, path)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Everything inside is committed together when the block ends, or nothing if it raises."""
        with self._lock, in_our_words(self._path):
            with alone(self._connection) if self._group is None else within(self._group, self._connection, self._path):
                yield Transaction(self._connection)

    @contextmanager
    def grouped(self) -> Iterator[None]:
        """Commit the transactions inside together, when the block ends: one trip to the disk for all of them.

        Each of them is still undone alone if it raises. None is kept before the block has ended, and none at all if
        its end raises.
        """
        with self._lock, in_our_words(self._path):
            self._group = group = Group()
            try:
                yield
                if group.is_lost:
                    raise StoreUnavailable(f"{self._path} lost a transaction. Nothing of it was written. Repeat it.")
                if group.has_begun:
                    self._connection.execute("COMMIT")
            except BaseException:
                roll_back(self._connection)
                raise
            finally:
                self._group = None

    def get(self, table: Table[R], *key: Any) -> R | None:
        """The record with this key."""
        with self._lock, in_our_words(self._path):
            return Transaction(self._connection).get(table, *key)

    def rows(self, table: Table[R], which: str, values: Sequence[Any]) -> list[R]:
        """The records that satisfy `which`: a condition, which an order and a limit may follow."""
        with self._lock, in_our_words(self._path):
            found = self._connection.execute(f"{table.select} WHERE {which}", values).fetchall()
            return [table.decode(row) for row in found]

    def stream(
        self,
        table: Table[R],
        *conditions: str,
        values: Sequence[Any] = (),
        order: tuple[str, ...],
        after: Row = (),
        damaged: Damaged | None = None,
    ) -> Iterator[R]:
        """The records that satisfy all conditions, sorted by `order`, which has to identify a row.

        Args:
            after: begin behind the row with these values of `order`.
            damaged: as in `ports.damaged`.
        Rows written meanwhile may or may not be seen; no row is seen twice.
        """
        columns = ", ".join(order)
        behind = f"({columns}) > ({', '.join('?' * len(order))})"
        positions = [table.columns.index(column) for column in order]
        while True:
            wanted = " AND ".join([*conditions, behind] if after else conditions) or "TRUE"
            sql = f"{table.select} WHERE {wanted} ORDER BY {columns} LIMIT {STREAM_ROWS}"
            with self._lock, in_our_words(self._path):
                rows = self._connection.execute(sql, (*values, *after)).fetchall()
            yield from readable(rows, partial(self._decoded, table), damaged)
            if len(rows) < STREAM_ROWS:
                return
            after = tuple(rows[-1][position] for position in positions)

    def _decoded(self, table: Table[R], row: Row) -> R:
        with in_our_words(self._path):
            return table.decode(row)


def _keep_name(folder: Path) -> None:
    """Let the name of a new file outlive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
