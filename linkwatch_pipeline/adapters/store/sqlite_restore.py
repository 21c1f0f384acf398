"""The records of another store into an empty SQLite file (`ports.Store.restore`)."""

from __future__ import annotations

from collections.abc import Iterable

from linkwatch_pipeline.adapters.store.rows import TABLES, table_of
from linkwatch_pipeline.adapters.store.sqlite_database import Database
from linkwatch_pipeline.domain.errors import StaleWrite
from linkwatch_pipeline.ports import StoredRecord


class SqliteRestore:
    """Everything in one transaction: an interrupted restore leaves nothing."""

    _database: Database

    def restore(self, records: Iterable[StoredRecord], *, source: str) -> int:
        restored = 0
        with self._database.transaction() as write:
            if any(write.rows(f"SELECT 1 FROM {table.name} LIMIT 1") for table in TABLES.values()):
                raise StaleWrite("the store is not empty, so nothing was imported. Name a new home.")
            for record in records:
                write.insert(table_of(record), record)
                restored += 1
        return restored

    def is_import_unfinished(self) -> bool:
        return False
