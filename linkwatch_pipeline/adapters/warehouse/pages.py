"""The pages: each (link, URL) that was ever looked at has a number, and observations name the page by it.

A number never changes its meaning. `pages.parquet` has them all, `pages-before.parquet` those before the last addition,
in case the first is lost. A stamp says how many pages there were and what they were; an observations file keeps the
stamp it was written with, so that it is never read with other pages than its own.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from linkwatch_pipeline.adapters.warehouse.files import (
    copy_out,
    literal,
    metadata_of,
    naming,
    replacing,
    small_reader,
)
from linkwatch_pipeline.domain.errors import StoreUnusable

if TYPE_CHECKING:
    import duckdb

_NONE_YET = "0:"


class Pages:
    """The pages of the warehouse in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "pages.parquet"
        self._before = folder / "pages-before.parquet"
        self._known: dict[Path, tuple[tuple[int, int, int], list[str]]] = {}

    @property
    def path(self) -> Path:
        """The file to read: the newest one that is whole."""
        return self._file if self.stamps_of(self._file) else self._before

    def stamps(self) -> list[str]:
        """The stamps that files may bear to be read with these pages, the oldest first."""
        return self.stamps_of(self._file) or self.stamps_of(self._before) or [_NONE_YET]

    def stamps_of(self, path: Path) -> list[str]:
        """A pages file's stamps; none if it is absent or damaged."""
        if not path.exists():
            return []
        stat = path.stat()
        version = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if self._known.get(path, (None, []))[0] != version:
            self._known[path] = version, self._read_stamps(path)
        return self._known[path][1]

    def _read_stamps(self, path: Path) -> list[str]:
        try:
            with small_reader() as reader:
                stamps: list[str] = json.loads(metadata_of(reader, [path])[0]["pages"])
                with naming(path):
                    count = reader.execute(
                        "SELECT count(*), sum(hash(page, link_id, url) % 2) FROM read_parquet(?)", [literal(path)]
                    ).fetchall()[0][0]
        except StoreUnusable:
            return []
        return stamps if stamps[-1].startswith(f"{count}:") else []

    def number(self, within: duckdb.DuckDBPyConnection, incoming: str) -> str:
        """Make the temporary table `pages` with a number for each (link_id, url) of the table `incoming`.

        New ones are added to the file first. The caller is the sole writer.
        Returns: the stamp for what is written with these numbers.
        """
        stamps = self.stamps()
        self._load(within, stamps[-1])
        known = int(stamps[-1].partition(":")[0])
        within.execute(
            f"""
            CREATE TEMP TABLE new_pages AS
            SELECT ({known} + row_number() OVER (ORDER BY link_id, url))::INTEGER AS page, link_id, url
            FROM (SELECT DISTINCT link_id, url FROM {incoming})
            ANTI JOIN pages USING (link_id, url)
            """
        )
        if (added := within.execute("SELECT count(*) FROM new_pages").fetchall()[0][0]) == 0:
            return stamps[-1]
        stamp = self._next_stamp(within, stamps[-1], added)
        within.execute("INSERT INTO pages FROM new_pages")
        self._write(within, [*(each for each in stamps if each != _NONE_YET), stamp])
        return stamp

    def _load(self, within: duckdb.DuckDBPyConnection, stamp: str) -> None:
        if stamp == _NONE_YET:
            within.execute("CREATE TEMP TABLE pages (page INTEGER, link_id VARCHAR, url VARCHAR)")
        else:
            within.execute("CREATE TEMP TABLE pages AS FROM read_parquet(?)", [literal(self.path)])

    def _next_stamp(self, within: duckdb.DuckDBPyConnection, stamp: str, added: int) -> str:
        count, _, before = stamp.partition(":")
        ((digest,),) = within.execute(
            "SELECT sha256(? || string_agg(sha256(link_id) || sha256(url), '' ORDER BY page)) FROM new_pages", [before]
        ).fetchall()
        return f"{int(count) + added}:{digest[:16]}"

    def _write(self, within: duckdb.DuckDBPyConnection, stamps: list[str]) -> None:
        keep_whole = bool(self.stamps_of(self._file))
        with replacing(self._file) as scratch:
            copy_out(
                within,
                "SELECT page, link_id, url FROM pages ORDER BY page",
                scratch / "new.parquet",
                pages=json.dumps(stamps),
            )
            if keep_whole:  # nothing bears the new stamp yet: between the two renames the one before serves
                os.replace(self._file, self._before)
