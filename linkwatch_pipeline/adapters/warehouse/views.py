"""The warehouse as DuckDB sees it: the views that every report section and every analyst reads.

A view reads only the files and columns that are asked for. Their words are in `views.sql`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from linkwatch_pipeline.adapters.warehouse import schema
from linkwatch_pipeline.adapters.warehouse.files import (
    is_duckdb_error,
    literal,
    metadata_of,
    naming,
    open_duckdb,
    quoted,
    small_reader,
    sync_folder,
    week_file,
)
from linkwatch_pipeline.adapters.warehouse.pages import Pages
from linkwatch_pipeline.domain.errors import StoreUnusable
from linkwatch_pipeline.domain.timestamps import WEEK, parse_week, week_key

if TYPE_CHECKING:
    import duckdb

DATABASE = "linkwatch.duckdb"
ABSENT = "none"
_FILE = re.compile(r"week=(\d{4}-\d\d-\d\d)\.parquet")
_WEEKLY: Mapping[str, Mapping[str, str]] = {
    "observations": {**{name: kind for name, (kind, _) in schema.STORED.items()}, "week": "DATE"},
    "transitions": {**schema.TRANSITIONS, "week": "DATE"},
    "notices": {**schema.NOTICES, "week": "DATE"},
    "summaries": schema.SUMMARY,
}


class Views:
    """Opens connections with the views over the warehouse in `folder`."""

    def __init__(self, folder: Path, pages: Pages) -> None:
        self._folder = folder
        self._pages = pages
        self._made: tuple[object, duckdb.DuckDBPyConnection] | None = None

    def weeks(self, kind: str = "observations") -> list[datetime]:
        """The weeks that have a file of that kind, in order."""
        folder = self._folder / kind
        names = (path.name for path in folder.iterdir()) if folder.is_dir() else ()
        return sorted(parse_week(found[1]) for name in names if (found := _FILE.fullmatch(name)))

    @contextmanager
    def opened(
        self, *, since: datetime | None = None, through: datetime | None = None
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection with the views over some weeks' files, all without bounds.

        A run that began very late goes on in the file of the following week, so that one is read too.
        Raises: MissingExtra, StoreUnusable naming the file that is damaged.
        """
        try:
            cursor = self._kept(since, through + WEEK if through is not None else None).cursor()
            try:
                yield cursor
            finally:
                cursor.close()
        except Exception as exc:
            if not is_duckdb_error(exc):
                raise
            self._name_damaged()
            raise StoreUnusable(f"the warehouse in {self._folder} cannot be read: {exc}") from exc

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A connection of the caller's own with the views over all weeks. Moments are shown in UTC."""
        database = open_duckdb()
        self.create(database)
        database.execute("SET TimeZone = 'UTC'")
        return database

    def _kept(self, since: datetime | None, through: datetime | None) -> duckdb.DuckDBPyConnection:
        """The views as they were made last, if the same weeks are asked for and no file changed meanwhile."""
        asked = (since, through, self._files())
        if self._made is None or self._made[0] != asked:
            self._made = None
            database = open_duckdb(self._folder)
            self.create(database, since=since, through=through)
            self._made = (asked, database)
        return self._made[1]

    def _files(self) -> frozenset[tuple[str, int, int, int]]:
        """All files of the warehouse as the file system tells them apart."""
        told = ((path, path.stat()) for path in self._folder.rglob("*.parquet"))
        return frozenset((str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns) for path, stat in told)

    def create(
        self, database: duckdb.DuckDBPyConnection, *, since: datetime | None = None, through: datetime | None = None
    ) -> None:
        """Make the views in a database. Raises StoreUnusable."""

        def asked(kind: str) -> list[datetime]:
            return [w for w in self.weeks(kind) if (since is None or since <= w) and (through is None or w <= through)]

        self.check(asked("observations"))
        summarised = [week for week in asked("summaries") if self.is_summarised(week)]
        # Changes are read from the beginning: what is broken now may have broken long ago.
        past = [week for week in self.weeks("transitions") if through is None or week <= through]
        files = {
            "observations": asked("observations"),
            "summaries": summarised,
            "unsummarised": self._beside(summarised, asked("observations")),
            "transitions": past,
            "notices": [week for week in self.weeks("notices") if through is None or week <= through],
        }
        for kind, weeks in files.items():
            stands_in = "observations" if kind == "unsummarised" else kind
            paths = [week_file(self._folder, stands_in, week) for week in weeks]
            database.execute(f"CREATE VIEW {kind}_files AS {_relation(paths, _WEEKLY[stands_in])}")
        for name, path, columns in (
            ("pages", self._pages.path, schema.PAGES),
            ("links", self._folder / "links.parquet", schema.LINKS),
        ):
            paths = [path] if path.exists() else []
            database.execute(f"CREATE VIEW {name} AS {_relation(paths, columns)}")
        known = ", ".join(f"DATE '{week_key(week)}'" for week in summarised)
        database.execute(f"CREATE VIEW summarised AS SELECT [{known}]::DATE[] AS weeks")
        database.execute(_sql("views"))

    def check(self, weeks: Sequence[datetime]) -> None:
        """Raise StoreUnusable unless this linkwatch can read these weeks, with the pages that are there."""
        if not weeks:
            return
        stamps = set(self._pages.stamps())
        paths = [week_file(self._folder, "observations", week) for week in weeks]
        with small_reader() as reader:
            for week, path, told in zip(weeks, paths, metadata_of(reader, paths), strict=True):
                if told.get("pages") not in stamps:
                    raise StoreUnusable(
                        f"the warehouse file {path} was written with other pages than those in {self._pages.path}. "
                        f"While the store holds the week, 'linkwatch report --week {week_key(week)}' writes it again; "
                        "else restore both from a backup."
                    )

    def is_summarised(self, week: datetime) -> bool:
        """Whether a week's aggregates say what its files say. Once the week's own file is gone, they alone know."""
        path = week_file(self._folder, "summaries", week)
        if not path.exists():
            return False
        try:
            with small_reader() as reader:
                [told] = metadata_of(reader, [path])
        except StoreUnusable:
            return False
        then, now = told.get("sources"), self.contents(week)
        return then == ",".join(now) or (now[0] == ABSENT and then is not None and not then.startswith(ABSENT))

    def contents(self, week: datetime) -> tuple[str, str]:
        """What tells the contents of the two files that a week's looks can stand in: its own and the next."""
        paths = [week_file(self._folder, "observations", each) for each in (week, week + WEEK)]
        with small_reader() as reader:
            told = {path: metadata_of(reader, [path])[0].get("content", "") for path in paths if path.exists()}
        return told.get(paths[0], ABSENT), told.get(paths[1], ABSENT)

    def write_database(self) -> None:
        """Write the DuckDB file with the views, over all files that there are now."""
        target = self._folder / DATABASE
        fresh = target.with_name(f".{DATABASE}.new")
        fresh.unlink(missing_ok=True)
        import duckdb

        with duckdb.connect(str(fresh), config={"autoinstall_known_extensions": False}) as database:
            self.create(database)
        os.replace(fresh, target)
        sync_folder(self._folder)

    def _beside(self, summarised: Sequence[datetime], files: Sequence[datetime]) -> list[datetime]:
        """The files that looks of weeks without aggregates can stand in."""
        known = set(summarised)
        return [week for week in files if week not in known or week - WEEK not in known]

    def _name_damaged(self) -> None:
        """Raise StoreUnusable with the name of the first file that cannot be read to its end, which takes a while."""
        for kind in _WEEKLY:
            for week in self.weeks(kind):
                path = week_file(self._folder, kind, week)
                with small_reader() as reader, naming(path):
                    reader.execute("SELECT bit_xor(hash(f)) FROM read_parquet(?) AS f", [literal(path)]).fetchall()


def _relation(paths: Iterable[Path], columns: Mapping[str, str]) -> str:
    """What a view reads: the files, or no row of the same columns where there is none."""
    named = ", ".join(quoted(literal(path)) for path in paths)
    if not named:
        return "SELECT " + ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in columns.items()) + " WHERE false"
    return f"SELECT {_names(columns)} FROM read_parquet([{named}], hive_partitioning = false)"


def _names(columns: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)  # `at` is a word of SQL, too


@cache
def _sql(name: str) -> str:
    return resources.files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
