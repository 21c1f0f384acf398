"""One SQLite file: opening and migrating it, transactions, streams, and its errors in our words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib import resources
from pathlib import Path
from threading import RLock, get_ident
from typing import Any

from linkwatch_pipeline.adapters.store.rows import R, Row, Table, Undecodable
from linkwatch_pipeline.domain.errors import NotFound, StoreError, StoreUnavailable, StoreUnusable

BUSY_TIMEOUT = timedelta(seconds=5)
APPLICATION_ID = int.from_bytes(b"lkwt", "big")
# A stream reads so many rows at a time and holds neither a lock nor a snapshot in between.
STREAM_ROWS = 500
_MIGRATIONS = "linkwatch_pipeline.adapters.store.migrations"
_WAL_ATTEMPTS = 20
_IN_MEMORY = ":memory:"


@dataclass(slots=True)
class _Group:
    """Transactions that are committed together. `is_lost`: what was written in it is gone already."""

    has_begun: bool = False
    is_lost: bool = False


class Database:
    """One connection, shared by the threads of a process. Several processes may have the file open."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._lock = RLock()
        self._group: _Group | None = None

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
        with _in_our_words(path):
            connection = sqlite3.connect(
                path, timeout=busy_timeout.total_seconds(), isolation_level=None, check_same_thread=False
            )
        database = cls(connection, path)
        try:
            with _in_our_words(path):
                database._prepare()
        except BaseException:
            connection.close()
            raise
        return database

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Everything inside is committed together when the block ends, or nothing if it raises."""
        with self._lock, _in_our_words(self._path):
            with self._alone() if self._group is None else self._within(self._group):
                yield Transaction(self._connection)

    @contextmanager
    def grouped(self) -> Iterator[None]:
        """Commit the transactions inside together, when the block ends: one trip to the disk for all of them.

        Each of them is still undone alone if it raises. None is kept before the block has ended, and none at all if
        its end raises.
        """
        with self._lock, _in_our_words(self._path):
            self._group = group = _Group()
            try:
                yield
                if group.is_lost:
                    raise StoreUnavailable(f"{self._path} lost a transaction. Nothing of it was written. Repeat it.")
                if group.has_begun:
                    self._connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
            finally:
                self._group = None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            # IMMEDIATE: nobody else writes between what is read in the block and what is written.
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    @contextmanager
    def _within(self, group: _Group) -> Iterator[None]:
        if group.is_lost:
            raise StoreUnavailable(
                f"{self._path} lost the transaction before this one. Nothing was written. Repeat it."
            )
        try:
            if not group.has_begun:
                self._connection.execute("BEGIN IMMEDIATE")
                group.has_begun = True
            self._connection.execute("SAVEPOINT one")
            yield
            self._connection.execute("RELEASE one")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO one")
                self._connection.execute("RELEASE one")
            else:  # it never began, or SQLite undid all of it by itself, as on a full disk
                group.is_lost = True
            raise

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def get(self, table: Table[R], *key: Any) -> R | None:
        """The record with this key."""
        with self._lock, _in_our_words(self._path):
            return Transaction(self._connection).get(table, *key)

    def stream(
        self, table: Table[R], *conditions: str, values: Sequence[Any] = (), order: tuple[str, ...], after: Row = ()
    ) -> Iterator[R]:
        """The records that satisfy all conditions, sorted by `order`, which has to identify a row.

        Args: after: begin behind the row with these values of `order`.
        Rows written meanwhile may or may not be seen; no row is seen twice.
        """
        columns = ", ".join(order)
        behind = f"({columns}) > ({', '.join('?' * len(order))})"
        positions = [table.columns.index(column) for column in order]
        while True:
            wanted = " AND ".join([*conditions, behind] if after else conditions) or "TRUE"
            sql = f"{table.select} WHERE {wanted} ORDER BY {columns} LIMIT {STREAM_ROWS}"
            with self._lock, _in_our_words(self._path):
                rows = self._connection.execute(sql, (*values, *after)).fetchall()
            for row in rows:
                with _in_our_words(self._path):
                    record = table.decode(row)
                yield record
            if len(rows) < STREAM_ROWS:
                return
            after = tuple(rows[-1][position] for position in positions)

    def _prepare(self) -> None:
        self._refuse_foreign_file()
        self._switch_to_wal()
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._migrate()

    def _refuse_foreign_file(self) -> None:
        tables = self._number("SELECT count(*) FROM sqlite_master")
        if tables and self._number("PRAGMA application_id") != APPLICATION_ID:
            raise StoreUnusable(
                f"{self._path} is a database of another program; nothing was changed. Name another file or home."
            )

    def _switch_to_wal(self) -> None:
        """WAL is a property of the file. The switch needs the file alone and does not always wait for it by itself:
        of 600 first openings, four at a time, 5 failed without these attempts."""
        for _ in range(_WAL_ATTEMPTS):
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as busy:
                if _primary_code(busy) != sqlite3.SQLITE_BUSY:
                    raise
                self._connection.execute("BEGIN IMMEDIATE")  # waits for whoever has it, at most the busy timeout
                self._connection.execute("ROLLBACK")
        self._connection.execute("PRAGMA journal_mode = WAL")

    def _migrate(self) -> None:
        """Bring the schema up to date, each step in a transaction of its own."""
        scripts = _migration_scripts()
        while (version := self._number("PRAGMA user_version")) != len(scripts):
            if version > len(scripts):
                raise StoreUnusable(
                    f"{self._path} has schema version {version}, written by a newer linkwatch; "
                    f"this one knows version {len(scripts)}. Upgrade linkwatch or name another home."
                )
            with self.transaction() as write:
                # Another process may have done this step while we waited for the transaction.
                if self._number("PRAGMA user_version") == version:
                    for statement in _statements(scripts[version]):
                        write.execute(statement)
                    write.execute(f"PRAGMA user_version = {version + 1}")

    def _number(self, sql: str) -> int:
        (number,) = self._connection.execute(sql).fetchone()
        return int(number)


class Transaction:
    """What a block of `Database.transaction` reads and writes with."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run one statement; how many rows it changed."""
        return self._connection.execute(sql, values).rowcount

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def get(self, table: Table[R], *key: Any) -> R | None:
        """The record with this key."""
        row = self._connection.execute(table.select_one, key).fetchone()
        return None if row is None else table.decode(row)

    def insert(self, table: Table[R], record: R) -> None:
        self._connection.execute(table.insert, table.encode(record))

    def insert_if_absent(self, table: Table[R], record: R) -> bool:
        """Put the record unless its key is taken; whether it was put."""
        return self.execute(table.insert_if_absent, table.encode(record)) == 1

    def update(self, table: Table[R], record: R, *columns: str) -> None:
        """Write the named columns (all beside the key if none is named) of the record's row."""
        self._connection.execute(*table.update(record, columns))


def _keep_name(folder: Path) -> None:
    """Let the name of a new file outlive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _migration_scripts() -> list[str]:
    """The migrations in order; the first leads to version 1."""
    files = [file for file in resources.files(_MIGRATIONS).iterdir() if file.name.endswith(".sql")]
    return [file.read_text(encoding="utf-8") for file in sorted(files, key=lambda file: file.name)]


def _statements(script: str) -> Iterator[str]:
    """One statement at a time: sqlite3's own `executescript` would commit first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _primary_code(error: sqlite3.Error) -> int | None:
    """SQLite's result code without its details; None if the error is sqlite3's own."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


@contextmanager
def _in_our_words(path: Path) -> Iterator[None]:
    """Raise what SQLite says as a StoreError that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(error, path) from error
    except Undecodable as error:
        raise StoreUnusable(
            f"{path}: the row {', '.join(map(str, error.key))} of {error.table} is damaged ({error}). "
            "Put a backup in its place, or mend the row with an SQLite tool."
        ) from error


def _translated(error: sqlite3.Error, path: Path) -> Exception:
    match _primary_code(error):
        case sqlite3.SQLITE_FULL:
            return StoreUnavailable(
                f"{path} cannot grow: the disk is full. Nothing was written. Free some space and repeat it."
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreUnavailable(
                f"{path} is locked by another process. Nothing was written. "
                "Repeat it; if it stays locked, look which other program has the file open."
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return StoreUnavailable(
                f"{path} cannot be written. Nothing was written. "
                "Give this user write permission to the file and its folder."
            )
        case sqlite3.SQLITE_CANTOPEN:
            return StoreUnavailable(
                f"{path} cannot be opened. "
                "See that its folder exists, that this user may write there, and that the disk has space."
            )
        case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_NOMEM:
            return StoreUnavailable(
                f"{path} could not be read or written ({error}). "
                "Look at the disk's space, quota and health, then repeat it."
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreUnusable(
                f"{path} is damaged or not a linkwatch database ({error}). "
                "Move it away with its -wal and -shm files and put a backup in its place, or name another home."
            )
        case sqlite3.SQLITE_CONSTRAINT if error.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
            return NotFound("what this belongs to (a link or a run) is not in the store; nothing was written.")
        case _:
            return StoreError(f"{path}: {error}")
