"""Parquet files with DuckDB: written whole or not at all, read with the file's name in every complaint."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkwatch_pipeline.adapters.warehouse.schema import INSTANT, SCHEMA_VERSION
from linkwatch_pipeline.domain.errors import MissingExtra, StoreUnavailable, StoreUnusable
from linkwatch_pipeline.domain.timestamps import week_key

if TYPE_CHECKING:
    import duckdb

MEMORY_LIMIT = "1GiB"  # of DuckDB alone; the process as a whole stays below 2 GB
_ROWS_AT_ONCE = 2_000


@contextmanager
def connection(spill: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB of its own in memory, closed at the end; `spill` is where it may put what does not fit there."""
    opened = open_duckdb(spill)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def small_reader() -> Iterator[duckdb.DuckDBPyConnection]:
    """For a glance at a file: shares one DuckDB with all other glances, since opening one takes longer than they do."""
    cursor = _for_glances().cursor()
    try:
        yield cursor
    finally:
        cursor.close()


def open_duckdb(spill: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A DuckDB of its own in memory. Raises MissingExtra without the library."""
    try:
        import duckdb
    except ImportError as exc:
        raise MissingExtra("reports", "the warehouse") from exc
    # Nothing is ever fetched: what DuckDB cannot do by itself has to fail.
    config: dict[str, Any] = {"autoinstall_known_extensions": False, "memory_limit": MEMORY_LIMIT}
    if spill is not None:
        config["temp_directory"] = str(spill / ".spill")
    return duckdb.connect(config=config)


@cache
def _for_glances() -> duckdb.DuckDBPyConnection:
    return open_duckdb()


def load_rows(
    to: duckdb.DuckDBPyConnection,
    table: str,
    rows: Iterable[Mapping[str, Any]],
    columns: Mapping[str, str],
    scratch: Path,
) -> int:
    """Make a temporary table of the rows, whose moments are microseconds; how many there are."""
    lines, count = scratch / f"{table}.ndjson", 0
    with lines.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
            count += 1
    read_as = ", ".join(f"\"{name}\": '{'BIGINT' if kind == INSTANT else kind}'" for name, kind in columns.items())
    selected = ", ".join(
        f'make_timestamptz("{n}") AS "{n}"' if kind == INSTANT else f'"{n}"' for n, kind in columns.items()
    )
    to.execute(
        f"CREATE TEMP TABLE {table} AS SELECT {selected} "
        f"FROM read_json(?, format = 'newline_delimited', columns = {{{read_as}}})",
        [literal(lines)],
    )
    return count


def fetch_rows(
    source: duckdb.DuckDBPyConnection,
    relation: str,
    columns: Mapping[str, str],
    selected: Mapping[str, str],
    order: str,
) -> Iterator[dict[str, Any]]:
    """The rows of a relation, some at a time; moments as microseconds."""
    # epoch_us: DuckDB hands out instants as Python objects only with a further package.
    shown = ", ".join(
        f'epoch_us({selected[name]}) AS "{name}"' if kind == INSTANT else f'{selected[name]} AS "{name}"'
        for name, kind in columns.items()
    )
    result = source.execute(f"SELECT {shown} FROM {relation} ORDER BY {order}")
    while rows := result.fetchmany(_ROWS_AT_ONCE):
        for row in rows:
            yield dict(zip(columns, row, strict=True))


def copy_out(source: duckdb.DuckDBPyConnection, query: str, target: Path, **metadata: str) -> None:
    """Write a query's rows to a Parquet file and onto the disk; the file's metadata names the schema."""
    told = {"linkwatch_schema": str(SCHEMA_VERSION), **{f"linkwatch_{name}": text for name, text in metadata.items()}}
    pairs = ", ".join(f"{name}: {quoted(text)}" for name, text in told.items())
    # The second version of Parquet packs numbers by their differences.
    source.execute(
        f"COPY ({query}) TO {quoted(str(target))} "
        f"(FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, KV_METADATA {{{pairs}}})"
    )
    with target.open("rb") as file:
        os.fsync(file.fileno())


def metadata_of(source: duckdb.DuckDBPyConnection, paths: Sequence[Path]) -> list[dict[str, str]]:
    """What linkwatch wrote into each file's metadata, by name. Raises StoreUnusable naming one that is none of ours."""
    asked = "SELECT file_name, decode(key), decode(value) FROM parquet_kv_metadata(?)"
    try:
        rows = source.execute(asked, [[literal(path) for path in paths]]).fetchall()
    except Exception:
        for path in paths:  # one by one, to say which
            with naming(path):
                source.execute(asked, [literal(path)]).fetchall()
        raise
    told: dict[str, dict[str, str]] = {str(path): {} for path in paths}
    for file, name, text in rows:
        told[file][name.removeprefix("linkwatch_")] = text
    for name, found in told.items():
        if found.get("schema") != str(SCHEMA_VERSION):
            raise StoreUnusable(
                f"the warehouse file {name} has the schema {found.get('schema')!r}; "
                f"this linkwatch reads {SCHEMA_VERSION}."
            )
    return list(told.values())


def check_week(source: duckdb.DuckDBPyConnection, path: Path, week: datetime) -> None:
    """Raise StoreUnusable if a file has rows of another week than its name says: somebody put it there."""
    asked = f"SELECT count(*) FROM read_parquet(?) WHERE week IS DISTINCT FROM DATE '{week_key(week)}'"
    strange = source.execute(asked, [literal(path)]).fetchall()[0][0]
    if strange:
        raise StoreUnusable(
            f"the warehouse file {path} holds {strange} rows of another week; restore it from a backup."
        )


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A scratch folder beside `path`, in which the body writes `new.parquet`; it then takes the place of `path`.

    Raises: StoreUnavailable when the folder cannot be written. The earlier file stays then.
    """
    with _unwritable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Beside the target, so that the rename stays within one file system.
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".tmp-") as scratch:
            yield Path(scratch)
            os.replace(Path(scratch, "new.parquet"), path)
        sync_folder(path.parent)


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Let one process at a time write into the warehouse. The kernel frees the lock when its holder ends."""
    with _unwritable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the file's name and the mend into what DuckDB complains about. Raises StoreUnusable."""
    try:
        yield
    except Exception as exc:
        if not is_duckdb_error(exc):
            raise
        week = path.stem.removeprefix("week=")
        mend = f"'linkwatch report --week {week}'" if path.stem != week else "'linkwatch report'"
        raise StoreUnusable(
            f"the warehouse file {path} cannot be read: {exc}. While the store holds what it had, {mend} writes it "
            "again; else restore it from a backup."
        ) from exc


def is_duckdb_error(exc: Exception) -> bool:
    duckdb = sys.modules.get("duckdb")  # only it can have raised one
    return duckdb is not None and isinstance(exc, duckdb.Error)


def literal(path: Path) -> str:
    """A path that DuckDB takes as it is: it reads `*`, `?` and `[` as wildcards."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def week_file(folder: Path, kind: str, week: datetime) -> Path:
    return folder / kind / f"week={week_key(week)}.parquet"


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _unwritable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StoreUnavailable(f"the warehouse file {path} cannot be written: {exc.strerror or exc}") from exc
    except Exception as exc:
        if isinstance(exc, StoreUnusable | StoreUnavailable | MissingExtra) or not is_duckdb_error(exc):
            raise
        raise StoreUnavailable(f"the warehouse file {path} cannot be written: {exc}") from exc
