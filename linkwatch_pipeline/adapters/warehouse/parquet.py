"""The history as one Parquet file per week: `observations/week=2026-09-28.parquet`, readable by any analyst's tools.

One row per observation, sorted by link and sequence, with the fields of `domain.observations.Observation` under their
own names (times are instants, `redirects` a list of {url, status}) and the constant column `week`. The file's metadata
says `linkwatch_schema`; it is raised when a column changes its meaning.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkwatch_pipeline.domain.errors import MissingExtra, StoreUnavailable, StoreUnusable
from linkwatch_pipeline.domain.observations import Observation, RedirectHop
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.timestamps import week_key
from linkwatch_pipeline.ports import ExportedWeek

if TYPE_CHECKING:
    import duckdb

SCHEMA_VERSION = 1
_INSTANT = "TIMESTAMPTZ"
COLUMNS = {
    "job_id": "VARCHAR",
    "run_id": "VARCHAR",
    "link_id": "VARCHAR",
    "url": "VARCHAR",
    "sequence": "BIGINT",
    "config_version": "BIGINT",
    "rules_version": "BIGINT",
    "retry_of": "VARCHAR",
    "started_at": _INSTANT,
    "observed_at": _INSTANT,
    "status": "INTEGER",
    "outcome": "VARCHAR",
    "reason": "VARCHAR",
    "content_hash": "VARCHAR",
    "content_complete": "BOOLEAN",
    "marker_found": "BOOLEAN",
    "bytes_read": "BIGINT",
    "latency_ms": "BIGINT",
    "content_type": "VARCHAR",
    "final_url": "VARCHAR",
    "redirects": "STRUCT(url VARCHAR, status INTEGER)[]",
    "tls_not_after": _INSTANT,
    "page_hints": "VARCHAR[]",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ROWS_AT_ONCE = 2_000


class ParquetWarehouse:
    """Weeks as files under `folder`/observations. Needs DuckDB (the extra `reports`) when it reads or writes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "observations"

    def path_of(self, week: datetime) -> Path:
        """Where a week's file is, or would be."""
        return self._folder / f"week={week_key(week)}.parquet"

    def write_week(self, week: datetime, observations: Iterable[Observation]) -> ExportedWeek:
        """Write (or replace) one week's file, atomically; `exported_at` is the file's own time.

        Raises: StoreUnavailable when the folder cannot be written; MissingExtra without DuckDB.
        """
        path = self.path_of(week)
        with _connection() as connection, _unwritable(path):
            self._folder.mkdir(parents=True, exist_ok=True)
            # Beside the target, so that the rename stays within one file system.
            with tempfile.TemporaryDirectory(dir=self._folder, prefix=".tmp-") as scratch:
                lines, parquet = Path(scratch, "rows.ndjson"), Path(scratch, "week.parquet")
                rows = _write_lines(lines, observations)
                connection.execute(_copy_statement(parquet, week), [_literal(lines)])
                exported = ExportedWeek(
                    week=week, rows=rows, sha256=_sha256(parquet, sync=True), exported_at=_modified_at(parquet)
                )
                os.replace(parquet, path)
            _sync_folder(self._folder)
        return exported

    def verify_week(self, exported: ExportedWeek) -> bool:
        """Whether the week's file is there, byte for byte as it was exported."""
        try:
            return _sha256(self.path_of(exported.week), sync=False) == exported.sha256
        except OSError:
            return False

    def read_week(self, week: datetime) -> Iterator[Observation]:
        """The observations of a week's file, in (link, sequence) order; nothing if there is no file.

        Raises: StoreUnusable when the file is damaged or was written by a newer linkwatch.
        """
        path = self.path_of(week)
        if not path.exists():
            return
        with _connection() as connection, _unreadable(path):
            _check_schema(connection, path)
            # epoch_us: DuckDB hands out instants as Python objects only with a further package.
            columns = ", ".join(f"epoch_us({c})" if kind == _INSTANT else c for c, kind in COLUMNS.items())
            result = connection.execute(
                f"SELECT {columns} FROM read_parquet(?) ORDER BY link_id, sequence", [_literal(path)]
            )
            while rows := result.fetchmany(_ROWS_AT_ONCE):
                for row in rows:
                    yield _observation(dict(zip(COLUMNS, row, strict=True)))


@contextmanager
def _connection() -> Iterator[duckdb.DuckDBPyConnection]:
    try:
        import duckdb
    except ImportError as exc:
        raise MissingExtra("reports", "the weekly export") from exc
    # Nothing is ever fetched: what DuckDB cannot do by itself has to fail.
    connection = duckdb.connect(config={"autoinstall_known_extensions": False})
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def _unwritable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StoreUnavailable(f"the week's file {path} cannot be written: {exc.strerror or exc}") from exc
    except Exception as exc:
        if not _is_duckdb_error(exc):
            raise
        raise StoreUnavailable(f"the week's file {path} cannot be written: {exc}") from exc


@contextmanager
def _unreadable(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as exc:
        if not _is_duckdb_error(exc):
            raise
        raise StoreUnusable(f"the week's file {path} cannot be read: {exc}. Restore it from a backup.") from exc


def _is_duckdb_error(exc: Exception) -> bool:
    import duckdb  # loaded already: only it can have raised one

    return isinstance(exc, duckdb.Error)


def _copy_statement(parquet: Path, week: datetime) -> str:
    read_as = ", ".join(f"{c}: '{'BIGINT' if kind == _INSTANT else kind}'" for c, kind in COLUMNS.items())
    columns = ", ".join(f"make_timestamptz({c}) AS {c}" if kind == _INSTANT else c for c, kind in COLUMNS.items())
    target = str(parquet).replace("'", "''")
    return (
        f"COPY (SELECT {columns}, DATE '{week_key(week)}' AS week "
        f"FROM read_json(?, format = 'newline_delimited', columns = {{{read_as}}}) ORDER BY link_id, sequence) "
        f"TO '{target}' (FORMAT parquet, COMPRESSION zstd, KV_METADATA {{linkwatch_schema: '{SCHEMA_VERSION}'}})"
    )


def _literal(path: Path) -> str:
    """A path that DuckDB takes as it is: it reads `*`, `?` and `[` as wildcards."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))


def _check_schema(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    metadata = dict(connection.execute("SELECT key, value FROM parquet_kv_metadata(?)", [_literal(path)]).fetchall())
    found = metadata.get(b"linkwatch_schema", metadata.get("linkwatch_schema"))
    if found not in (str(SCHEMA_VERSION), str(SCHEMA_VERSION).encode()):
        raise StoreUnusable(f"the week's file {path} has the schema {found!r}; this linkwatch reads {SCHEMA_VERSION}.")


def _write_lines(path: Path, observations: Iterable[Observation]) -> int:
    rows = 0
    with path.open("w", encoding="utf-8") as file:
        for observation in observations:
            file.write(json.dumps(_row(observation)) + "\n")
            rows += 1
    return rows


def _row(observation: Observation) -> dict[str, object]:
    row = {field.name: getattr(observation, field.name) for field in fields(observation)}
    row["redirects"] = [{"url": hop.url, "status": hop.status} for hop in observation.redirects]
    for column, kind in COLUMNS.items():
        if kind == _INSTANT and row[column] is not None:
            row[column] = (row[column] - _EPOCH) // _MICROSECOND
    return row


def _observation(row: dict[str, Any]) -> Observation:
    for column, kind in COLUMNS.items():
        if kind == _INSTANT and row[column] is not None:
            row[column] = _EPOCH + row[column] * _MICROSECOND
    row["outcome"] = Outcome(row["outcome"])
    row["reason"] = Reason(row["reason"]) if row["reason"] is not None else None
    row["redirects"] = tuple(RedirectHop(url=hop["url"], status=hop["status"]) for hop in row["redirects"])
    row["page_hints"] = tuple(row["page_hints"])
    return Observation(**row)


def _sha256(path: Path, *, sync: bool) -> str:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        if sync:
            os.fsync(file.fileno())
    return digest


def _modified_at(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
