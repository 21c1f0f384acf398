"""The history as Parquet files, one a week: `observations/week=2026-09-28.parquet`, beside transitions and notices.

What stands in the files is described in docs/reference/warehouse.md. Each is written whole or not at all; one process
writes at a time, and readers never wait.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from linkwatch_pipeline.adapters.warehouse import schema
from linkwatch_pipeline.adapters.warehouse.files import (
    check_week,
    connection,
    copy_out,
    fetch_rows,
    file_sha256,
    literal,
    load_rows,
    metadata_of,
    naming,
    quoted,
    replacing,
    small_reader,
    sole_writer,
    week_file,
)
from linkwatch_pipeline.adapters.warehouse.pages import Pages
from linkwatch_pipeline.adapters.warehouse.rows import (
    Row,
    link_row,
    notice_of,
    notice_row,
    observation_of,
    observation_row,
    transition_of,
    transition_row,
)
from linkwatch_pipeline.adapters.warehouse.summaries import Summaries
from linkwatch_pipeline.adapters.warehouse.views import Views
from linkwatch_pipeline.domain.errors import StoreUnusable
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.timestamps import week_key
from linkwatch_pipeline.domain.transitions import Transition
from linkwatch_pipeline.ports import ExportedWeek

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")


class ParquetWarehouse:
    """The warehouse in `folder`. Needs DuckDB (the extra `reports`) when it reads or writes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pages = Pages(folder)
        self.views = Views(folder, self._pages)
        self._summaries = Summaries(folder, self.views)

    def path_of(self, week: datetime) -> Path:
        """Where a week's observations are, or would be."""
        return week_file(self._folder, "observations", week)

    def write_week(self, week: datetime, observations: Iterable[Observation]) -> ExportedWeek:
        """Write (or replace) one week's file, atomically; `exported_at` is the file's own time.

        Raises: StoreUnavailable when the folder cannot be written; MissingExtra without DuckDB.
        """

        def load(into: duckdb.DuckDBPyConnection, scratch: Path) -> int:
            return load_rows(into, "incoming", map(observation_row, observations), schema.COLUMNS, scratch)

        return self.write_loaded(week, load)

    def write_loaded(self, week: datetime, load: Callable[[duckdb.DuckDBPyConnection, Path], int]) -> ExportedWeek:
        """Write a week whose rows `load` puts into the table `incoming` (with the columns of `schema.COLUMNS`).

        Args: load: given the connection and a scratch folder; returns how many rows there are.
        """
        path = self.path_of(week)
        with connection(self._folder) as database, sole_writer(self._folder), replacing(path) as scratch:
            rows, parquet = load(database, scratch), scratch / "new.parquet"
            stamp = self._pages.number(database, "incoming")
            columns = ", ".join(f"{expression} AS {name}" for name, (_, expression) in schema.STORED.items())
            copy_out(
                database,
                f"SELECT {columns}, DATE '{week_key(week)}' AS week FROM incoming JOIN pages USING (link_id, url) "
                "ORDER BY page, sequence",
                parquet,
                pages=stamp,
                content=_fingerprint(database),
            )
            exported_at = datetime.fromtimestamp(parquet.stat().st_mtime, tz=UTC)
            return ExportedWeek(week=week, rows=rows, sha256=file_sha256(parquet), exported_at=exported_at)

    def verify_week(self, exported: ExportedWeek) -> bool:
        """Whether the week's file is there, byte for byte as it was exported, and its pages with it."""
        path = self.path_of(exported.week)
        try:
            if file_sha256(path) != exported.sha256:
                return False
            with small_reader() as reader:
                return metadata_of(reader, [path])[0].get("pages") in self._pages.stamps()
        except (OSError, StoreUnusable):
            return False

    def read_week(self, week: datetime) -> Iterator[Observation]:
        """The observations of a week's file, in (link, sequence) order; nothing if there is no file.

        Raises: StoreUnusable when the file or its pages are damaged, it is another week's, or another linkwatch's.
        """
        path = self.path_of(week)
        if not path.exists():
            return
        self.views.check([week])
        if not self._pages.path.exists():  # nothing was ever looked at
            return
        with connection(self._folder) as reader:
            looks, pages = (f"read_parquet({quoted(literal(file))})" for file in (path, self._pages.path))
            relation = f"{looks} JOIN {pages} USING (page)"
            with naming(path):
                check_week(reader, path, week)
                yield from map(
                    observation_of, fetch_rows(reader, relation, schema.COLUMNS, schema.RESTORED, "link_id, sequence")
                )

    def write_transitions(self, week: datetime, transitions: Iterable[Transition]) -> None:
        """Write (or replace) one week's transitions, atomically."""
        self._write("transitions", week, map(transition_row, transitions), schema.TRANSITIONS, "link_id, version")

    def read_transitions(self, week: datetime) -> Iterator[Transition]:
        """A week's transitions in (link, version) order; nothing if there is no file. Raises StoreUnusable."""
        return self._read("transitions", week, schema.TRANSITIONS, "link_id, version", transition_of)

    def write_notices(self, week: datetime, notices: Iterable[Notice]) -> None:
        """Write (or replace) one week's notices, atomically."""
        self._write("notices", week, map(notice_row, notices), schema.NOTICES, "transition_id")

    def read_notices(self, week: datetime) -> Iterator[Notice]:
        """A week's notices in transition id order; nothing if there is no file. Raises StoreUnusable."""
        return self._read("notices", week, schema.NOTICES, "transition_id", notice_of)

    def write_links(self, links: Iterable[Link]) -> None:
        """Write (or replace) the registry as it is now: who owns a link and where it stands."""
        path = self._folder / "links.parquet"
        with connection(self._folder) as database, sole_writer(self._folder), replacing(path) as scratch:
            load_rows(database, "incoming", map(link_row, links), schema.LINKS, scratch)
            copy_out(database, "FROM incoming ORDER BY link_id", scratch / "new.parquet")

    def summarise_week(self, week: datetime) -> bool:
        """Bring a week's aggregates up to date with the files of it and the next; whether that took writing."""
        with sole_writer(self._folder):
            return self._summaries.bring_up_to_date(week)

    def set_aside(self, week: datetime) -> str:
        """Rename a week's damaged file, so that the other weeks can be read; its new name."""
        path = self.path_of(week)
        aside = path.with_name(f"{path.name}.damaged")
        os.replace(path, aside)
        return str(aside)

    def forget_weeks(self, *, before: datetime) -> list[datetime]:
        """Delete the observations of earlier weeks that have aggregates; these stay for good. The weeks deleted now."""
        forgotten = [week for week in self.views.weeks() if week < before and self.views.is_summarised(week)]
        for week in forgotten:
            self.path_of(week).unlink(missing_ok=True)
        return forgotten

    def write_views(self) -> None:
        """Write the DuckDB file with the views over the warehouse, for analysts."""
        with sole_writer(self._folder):
            self.views.write_database()

    def _write(self, kind: str, week: datetime, rows: Iterable[Row], columns: Mapping[str, str], order: str) -> None:
        path = week_file(self._folder, kind, week)
        with connection(self._folder) as database, sole_writer(self._folder), replacing(path) as scratch:
            load_rows(database, "incoming", rows, columns, scratch)
            copy_out(
                database,
                f"SELECT *, DATE '{week_key(week)}' AS week FROM incoming ORDER BY {order}",
                scratch / "new.parquet",
            )

    def _read(
        self, kind: str, week: datetime, columns: Mapping[str, str], order: str, make: Callable[[Row], T]
    ) -> Iterator[T]:
        path = week_file(self._folder, kind, week)
        if not path.exists():
            return
        with small_reader() as reader, naming(path):
            metadata_of(reader, [path])
            check_week(reader, path, week)
            relation = f"read_parquet({quoted(literal(path))})"
            yield from map(make, fetch_rows(reader, relation, columns, {name: f'"{name}"' for name in columns}, order))


def _fingerprint(database: duckdb.DuckDBPyConnection) -> str:
    """What tells one content of a week from another: the number of its rows and a mix of their hashes."""
    ((count, mixed),) = database.execute("SELECT count(*), bit_xor(hash(incoming)) FROM incoming").fetchall()
    return f"{count}:{mixed or 0:x}"
