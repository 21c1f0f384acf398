"""Transactions on one SQLite connection: one by one, or several that share a trip to the disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkwatch_pipeline.adapters.store.table import R, Row, Table
from linkwatch_pipeline.domain.errors import StoreUnavailable


@dataclass(slots=True)
class Group:
    """Transactions that are committed together. `is_lost`: what was written in it is gone already."""

    has_begun: bool = False
    is_lost: bool = False


@contextmanager
def alone(connection: sqlite3.Connection) -> Iterator[None]:
    """What the block writes is committed when it ends, or undone if it raises."""
    try:
        # IMMEDIATE: nobody else writes between what is read in the block and what is written.
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


@contextmanager
def within(group: Group, connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """What the block writes is kept with its group, or undone alone if it raises."""
    if group.is_lost:
        raise StoreUnavailable(f"{path} lost the transaction before this one. Nothing was written. Repeat it.")
    try:
        if not group.has_begun:
            connection.execute("BEGIN IMMEDIATE")
            group.has_begun = True
        connection.execute("SAVEPOINT one")
        yield
        connection.execute("RELEASE one")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO one")
            connection.execute("RELEASE one")
        else:  # it never began, or SQLite undid all of it by itself, as on a full disk
            group.is_lost = True
        raise


def roll_back(connection: sqlite3.Connection) -> None:
    """Undo what is not committed."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


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
