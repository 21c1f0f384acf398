"""Makes a SQLite file ours when it is opened: whose it is, how it is written, and its schema brought up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from linkwatch_pipeline.adapters.store.sqlite_errors import primary_code
from linkwatch_pipeline.adapters.store.sqlite_transactions import alone
from linkwatch_pipeline.domain.errors import StoreUnusable

APPLICATION_ID = int.from_bytes(b"lkwt", "big")
_MIGRATIONS = "linkwatch_pipeline.adapters.store.migrations"
_WAL_ATTEMPTS = 20


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Ready a connection that nobody uses yet. Raises StoreUnusable, sqlite3.Error."""
    _refuse_foreign_file(connection, path)
    _switch_to_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    _migrate(connection, path)


def _refuse_foreign_file(connection: sqlite3.Connection, path: Path) -> None:
    tables = _number(connection, "SELECT count(*) FROM sqlite_master")
    if tables and _number(connection, "PRAGMA application_id") != APPLICATION_ID:
        raise StoreUnusable(f"{path} is a database of another program; nothing was changed. Name another file or home.")


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """WAL is a property of the file. The switch needs the file alone and does not always wait for it by itself:
    of 600 first openings, four at a time, 5 failed without these attempts."""
    for _ in range(_WAL_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as busy:
            if primary_code(busy) != sqlite3.SQLITE_BUSY:
                raise
            connection.execute("BEGIN IMMEDIATE")  # waits for whoever has it, at most the busy timeout
            connection.execute("ROLLBACK")
    connection.execute("PRAGMA journal_mode = WAL")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the schema up to date, each step in a transaction of its own."""
    scripts = _migration_scripts()
    while (version := _number(connection, "PRAGMA user_version")) != len(scripts):
        if version > len(scripts):
            raise StoreUnusable(
                f"{path} has schema version {version}, written by a newer linkwatch; "
                f"this one knows version {len(scripts)}. Upgrade linkwatch or name another home."
            )
        with alone(connection):
            # Another process may have done this step while we waited for the transaction.
            if _number(connection, "PRAGMA user_version") == version:
                for statement in _statements(scripts[version]):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version + 1}")


def _number(connection: sqlite3.Connection, sql: str) -> int:
    (number,) = connection.execute(sql).fetchone()
    return int(number)


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
