"""Answers `ports.Reports` from the weeks' Parquet files. Each section is one query, in the `.sql` file of its name.

Reads the files that `adapters.warehouse` writes: `week=2026-09-28.parquet`, one row per observation. A run that began
very late goes on in the file of the following week, so that one is read too; a look belongs to the week of its run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkwatch_pipeline.domain.coverage import ChangedContent, HostTrouble, Ranked, RepeatedUncertainty
from linkwatch_pipeline.domain.errors import MissingExtra, StoreUnusable
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.timestamps import WEEK, parse_week, week_key

if TYPE_CHECKING:
    import duckdb

READS_SCHEMA = "1"
_FILE = re.compile(r"week=(\d{4}-\d\d-\d\d)\.parquet")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class DuckDBReports:
    """Reports over the week files in `folder`. Needs DuckDB (the extra `reports`) when it is asked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def weeks(self) -> list[datetime]:
        """The weeks that have a file, in order."""
        names = (path.name for path in self._folder.iterdir()) if self._folder.is_dir() else ()
        return sorted(parse_week(found[1]) for name in names if (found := _FILE.fullmatch(name)))

    def outcomes_by_week(self, *, through: datetime) -> Mapping[datetime, Mapping[Outcome, int]]:
        """How many links ended each week with which outcome; only weeks with looks of a run."""
        counted: dict[datetime, dict[Outcome, int]] = {}
        with self._opened(None, through) as connection:
            for week, outcome, links in _ask(connection, "outcomes_by_week", until=_end_of(through)):
                counted.setdefault(parse_week(week), {})[Outcome(outcome)] = links
        return counted

    def worst_hosts(self, week: datetime, *, most: int) -> Ranked[HostTrouble]:
        """The hosts with the most links broken, uncertain or throttled, the worst first."""
        with self._opened(week, week) as connection:
            rows = _ask(connection, "worst_hosts", **_within(week), most=most)
        return _ranked(rows, _host_trouble)

    def repeated_uncertainty(self, week: datetime, *, at_least: int, most: int) -> Ranked[RepeatedUncertainty]:
        """The links uncertain in this and the weeks before it, `at_least` in a row, the longest first."""
        with self._opened(None, week) as connection:
            rows = _ask(connection, "repeated_uncertainty", **_within(week), at_least=at_least, most=most)
        return _ranked(rows, _repeated)

    def content_changed(self, week: datetime, *, most: int) -> Ranked[ChangedContent]:
        """The links whose page lacked the expected text, in id order."""
        with self._opened(week, week) as connection:
            rows = _ask(connection, "content_changed", **_within(week), most=most)
        return _ranked(rows, _changed)

    @contextmanager
    def _opened(self, since: datetime | None, through: datetime) -> Iterator[duckdb.DuckDBPyConnection | None]:
        """The views over the weeks' files; None if there are none. Raises MissingExtra, StoreUnusable."""
        duckdb = _duckdb()
        weeks = [week for week in self.weeks() if (since is None or since <= week) and week <= through + WEEK]
        if not weeks:
            yield None
            return
        # Nothing is ever fetched: what DuckDB cannot do by itself has to fail.
        with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
            for week in weeks:
                self._check_schema(connection, week)
            try:
                paths = [_literal(self._path(week)) for week in weeks]
                connection.read_parquet(paths, hive_partitioning=False).create_view("files")
                connection.execute(_query("looks"))
                yield connection
            except duckdb.Error as exc:
                self._name_damaged(weeks)
                raise StoreUnusable(f"the week files in {self._folder} cannot be read: {exc}") from exc

    def _check_schema(self, connection: duckdb.DuckDBPyConnection, week: datetime) -> None:
        """Raise StoreUnusable unless the file is one that this linkwatch can read."""
        path = self._path(week)
        with self._naming(week):
            found = connection.execute(
                "SELECT decode(value) FROM parquet_kv_metadata(?) WHERE decode(key) = 'linkwatch_schema'",
                [_literal(path)],
            ).fetchall()
        schema = found[0][0] if found else None
        if schema != READS_SCHEMA:
            raise StoreUnusable(
                f"the week's file {path} has the schema {schema!r}; this linkwatch reads {READS_SCHEMA}."
            )

    def _name_damaged(self, weeks: Iterable[datetime]) -> None:
        """Raise StoreUnusable with the name of the first file that cannot be read to its end, which takes a while."""
        for week in weeks:
            with _duckdb().connect() as connection, self._naming(week):
                connection.execute(
                    "SELECT bit_xor(hash(file)) FROM read_parquet(?) AS file", [_literal(self._path(week))]
                ).fetchall()

    @contextmanager
    def _naming(self, week: datetime) -> Iterator[None]:
        """Put the file's name and the mend into what DuckDB complains about."""
        try:
            yield
        except _duckdb().Error as exc:
            raise StoreUnusable(
                f"the week's file {self._path(week)} cannot be read: {exc}. While the store holds the week, "
                f"'linkwatch report --week {week_key(week)}' writes it again; else restore it from a backup."
            ) from exc

    def _path(self, week: datetime) -> Path:
        return self._folder / f"week={week_key(week)}.parquet"


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as exc:
        raise MissingExtra("reports", "the coverage report") from exc
    return duckdb


def _ask(connection: duckdb.DuckDBPyConnection | None, name: str, **values: object) -> list[tuple[Any, ...]]:
    return connection.execute(_query(name), values).fetchall() if connection is not None else []


@cache
def _query(name: str) -> str:
    return resources.files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")


def _literal(path: Path) -> str:
    """The path as DuckDB has to be told it: each sign that would make it a pattern, as a pattern for itself."""
    return re.sub(r"[*?\[]", r"[\g<0>]", str(path))


def _within(week: datetime) -> dict[str, str]:
    """Bounds of the run ids of a week: an id begins with its Monday's date."""
    return {"since": week_key(week), "until": _end_of(week)}


def _end_of(week: datetime) -> str:
    return week_key(week + WEEK)


def _ranked(rows: list[tuple[Any, ...]], make: Any) -> Ranked[Any]:
    """Rows that end with how many there are in all."""
    return Ranked(rows=tuple(make(*row[:-1]) for row in rows), total=rows[0][-1] if rows else 0)


def _host_trouble(
    host: str, links: int, broken: int, uncertain: int, throttled: int, reasons: Mapping[str, int] | None
) -> HostTrouble:
    named = sorted((reasons or {}).items(), key=lambda item: (-item[1], item[0]))
    return HostTrouble(
        host=host,
        links=links,
        broken=broken,
        uncertain=uncertain,
        throttled=throttled,
        reasons={Reason(reason): count for reason, count in named},
    )


def _repeated(
    link_id: str, url: str, weeks: int, since: int, reason: str | None, reasons: list[str]
) -> RepeatedUncertainty:
    return RepeatedUncertainty(
        link_id=link_id,
        url=url,
        weeks=weeks,
        since=_moment(since),
        reason=Reason(reason) if reason is not None else None,
        reasons=tuple(Reason(each) for each in reasons),
    )


def _changed(link_id: str, url: str, observed_at: int, status: int | None, final_url: str | None) -> ChangedContent:
    return ChangedContent(
        link_id=link_id, url=url, observed_at=_moment(observed_at), status=status, final_url=final_url
    )


def _moment(microseconds: int) -> datetime:
    return _EPOCH + microseconds * _MICROSECOND
