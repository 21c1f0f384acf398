"""SQLite's errors in our words: each says what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linkwatch_pipeline.adapters.store.table import Undecodable
from linkwatch_pipeline.domain.errors import DamagedRecord, NotFound, StoreError, StoreUnavailable, StoreUnusable


def primary_code(error: sqlite3.Error) -> int | None:
    """SQLite's result code without its details; None if the error is sqlite3's own."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


@contextmanager
def in_our_words(path: Path) -> Iterator[None]:
    """Raise what SQLite says as a StoreError that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(error, path) from error
    except Undecodable as error:
        key = ", ".join(map(str, error.key))
        raise DamagedRecord(
            f"{path}: the row {key} of {error.table} is damaged ({error}). "
            "Put a backup in its place, or mend the row with an SQLite tool.",
            record=f"{error.table}: {key}",
            url=error.url,
            key=":".join(map(str, error.key)) if all(isinstance(part, str | int) for part in error.key) else None,
        ) from error


def _translated(error: sqlite3.Error, path: Path) -> Exception:
    match primary_code(error):
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
