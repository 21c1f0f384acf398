"""Weeks move to the warehouse and leave the store, and no row is ever lost on the way."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.adapters.warehouse.parquet import ParquetWarehouse
from linkwatch_pipeline.adapters.warehouse.schema import COLUMNS, STORED
from linkwatch_pipeline.domain.errors import MissingExtra, StoreUnavailable, StoreUnusable
from linkwatch_pipeline.domain.observations import Observation, RedirectHop
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.report import WeekExport
from linkwatch_pipeline.domain.runs import RunCounts
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.ports import Warehouse
from linkwatch_pipeline.use_cases.export_week import PrunedWeek, export_week, prune_history
from linkwatch_pipeline_tests.builders import MONDAY, a_link, a_run, an_observation
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

LONG_AFTER = MONDAY + timedelta(days=98)


@dataclass
class Archive:
    """A store and a warehouse, at a time when MONDAY's week is old enough to be pruned."""

    store: SqliteStore
    folder: Path
    clock: VirtualClock = field(default_factory=lambda: VirtualClock(LONG_AFTER))

    def __post_init__(self) -> None:
        self.warehouse = ParquetWarehouse(self.folder)

    def observe(self, link_id: str, sequence: int, at: datetime) -> Observation:
        link = self.store.get_link(link_id)
        if link is None:
            link = a_link(link_id)
            self.store.save_link(link, replaces=None)
        seen = an_observation(link, 404 if sequence % 2 else 200, sequence=sequence, started_at=at, observed_at=at)
        self.store.record(seen, default_confirm=1, now=at)
        return seen

    def export(self, week: datetime = MONDAY) -> WeekExport:
        return export_week(self.store, self.warehouse, week, clock=self.clock)

    def prune(self) -> Any:
        return prune_history(self.store, self.warehouse, clock=self.clock)

    def exported(self, week: datetime = MONDAY) -> list[Observation]:
        return list(self.warehouse.read_week(week))

    def stored(self) -> list[Observation]:
        return list(self.store.observations())


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    store = SqliteStore.open(tmp_path / "linkwatch.sqlite3")
    yield Archive(store, tmp_path / "warehouse")
    store.close()


def test_a_week_is_exported_whole_and_in_order(archive: Archive) -> None:
    in_week = [
        archive.observe("b", 1, MONDAY),
        archive.observe("a", 2, MONDAY + timedelta(days=6, hours=23)),
        archive.observe("a", 1, MONDAY + timedelta(minutes=1)),
    ]
    archive.observe("a", 0, MONDAY - timedelta(microseconds=1))
    archive.observe("a", 3, MONDAY + WEEK)
    assert archive.export() == WeekExport(week=MONDAY, rows=3, written=True)
    assert archive.exported() == [in_week[2], in_week[1], in_week[0]]
    (mark,) = archive.store.exported_weeks()
    assert (mark.week, mark.rows, mark.exported_at) == (MONDAY, 3, LONG_AFTER)
    path = archive.folder / "observations" / "week=2026-09-28.parquet"
    assert mark.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_any_moment_of_a_week_names_it(archive: Archive) -> None:
    archive.observe("a", 0, MONDAY)
    assert archive.export(MONDAY + timedelta(days=3)).week == MONDAY


def test_exporting_again_changes_nothing(archive: Archive) -> None:
    archive.observe("a", 0, MONDAY)
    archive.export()
    before = archive.warehouse.path_of(MONDAY).stat()
    archive.clock.advance(timedelta(hours=1))
    assert archive.export() == WeekExport(week=MONDAY, rows=1, written=False)
    after = archive.warehouse.path_of(MONDAY).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_an_empty_week_makes_no_file(archive: Archive) -> None:
    assert archive.export() == WeekExport(week=MONDAY, rows=0, written=False)
    assert archive.exported() == []
    assert list(archive.store.exported_weeks()) == []


def test_new_observations_are_added(archive: Archive) -> None:
    archive.observe("a", 0, MONDAY)
    archive.export()
    archive.observe("a", 1, MONDAY + timedelta(days=1))
    assert archive.export() == WeekExport(week=MONDAY, rows=2, written=True)
    assert archive.exported() == archive.stored()


@pytest.mark.parametrize("damage", ["missing", "cut", "emptied", "another schema", "another week"])
def test_a_file_that_was_damaged_is_written_again_from_the_store(archive: Archive, damage: str) -> None:
    archive.observe("a", 0, MONDAY)
    archive.export()
    spoil(archive.warehouse.path_of(MONDAY), damage)
    assert archive.export() == WeekExport(week=MONDAY, rows=1, written=True)
    assert archive.exported() == archive.stored()


@pytest.mark.parametrize("damage", ["missing", "cut", "emptied", "another schema", "another week"])
def test_a_damaged_file_that_the_store_cannot_replace_is_left_alone_and_named(archive: Archive, damage: str) -> None:
    archive.observe("a", 0, MONDAY)
    archive.observe("b", 0, MONDAY)
    archive.prune()
    archive.observe("c", 0, MONDAY)
    path = archive.warehouse.path_of(MONDAY)
    spoil(path, damage)
    spoilt = path.read_bytes() if path.exists() else None
    with pytest.raises(StoreUnusable, match="2026-09-28 held 2 observations; only 1 are left"):
        archive.export()
    assert (path.read_bytes() if path.exists() else None) == spoilt
    assert len(archive.stored()) == 1


def spoil(path: Path, damage: str) -> None:
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "emptied":
        path.write_bytes(b"")
    elif damage == "another week":
        warehouse = ParquetWarehouse(path.parents[1])
        later = an_observation(a_link("a"), 200, sequence=9, started_at=MONDAY + WEEK, observed_at=MONDAY + WEEK)
        warehouse.write_week(MONDAY + WEEK, [later])
        warehouse.path_of(MONDAY + WEEK).rename(path)
    else:
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT 1 AS job_id) TO '{path}' (FORMAT parquet)")


def test_a_crash_between_file_and_mark_is_mended_without_loss(archive: Archive) -> None:
    first = archive.observe("a", 0, MONDAY)
    archive.export()
    second = archive.observe("b", 0, MONDAY)
    archive.warehouse.write_week(MONDAY, [first, second])  # ... and the process dies before the mark
    assert archive.export() == WeekExport(week=MONDAY, rows=2, written=True)
    assert archive.exported() == [first, second]
    assert archive.export().written is False


def test_an_observation_that_comes_after_pruning_joins_the_others(archive: Archive) -> None:
    first, last = archive.observe("a", 0, MONDAY), archive.observe("c", 0, MONDAY)
    archive.prune()
    late = archive.observe("b", 0, MONDAY + timedelta(days=2))
    assert archive.export() == WeekExport(week=MONDAY, rows=3, written=True)
    assert archive.exported() == [first, late, last]


def test_pruning_forgets_only_old_weeks_and_exports_them_first(archive: Archive) -> None:
    old = [archive.observe("a", 0, MONDAY), archive.observe("b", 0, MONDAY)]
    older = archive.observe("a", 1, MONDAY - WEEK)
    young = archive.observe("a", 2, MONDAY + WEEK)
    report = archive.prune()
    assert report.weeks == (PrunedWeek(week=MONDAY - WEEK, rows=1), PrunedWeek(week=MONDAY, rows=2))
    assert report.kept == ()
    assert archive.stored() == [young]
    assert archive.exported() == old
    assert archive.exported(MONDAY - WEEK) == [older]
    assert archive.prune().weeks == ()


def test_a_week_stays_until_ninety_days_after_its_end(archive: Archive) -> None:
    archive.observe("a", 0, MONDAY)
    archive.clock = VirtualClock(MONDAY + WEEK + timedelta(days=90) - timedelta(microseconds=1))
    assert archive.prune().weeks == ()
    # The next boundary between two weeks: pruning looks at whole weeks only.
    archive.clock.advance(WEEK)
    assert len(archive.prune().weeks) == 1


def test_pruning_exports_anew_what_was_added_since(archive: Archive) -> None:
    archive.observe("a", 0, MONDAY)
    archive.export()
    archive.observe("b", 0, MONDAY)
    assert archive.prune().weeks == (PrunedWeek(week=MONDAY, rows=2),)
    assert len(archive.exported()) == 2


def test_a_week_whose_file_is_damaged_beyond_repair_stays_and_the_others_go(archive: Archive) -> None:
    archive.observe("a", 0, MONDAY)
    archive.observe("b", 0, MONDAY)
    archive.prune()
    archive.warehouse.path_of(MONDAY).unlink()
    archive.observe("c", 0, MONDAY)
    archive.observe("c", 1, MONDAY - WEEK)
    report = archive.prune()
    assert [week.week for week in report.weeks] == [MONDAY - WEEK]
    ((kept, why),) = report.kept
    assert kept == MONDAY
    assert "Restore the file" in why
    assert len(archive.stored()) == 1


def test_a_row_that_the_file_has_otherwise_stays_in_the_store(archive: Archive) -> None:
    seen = archive.observe("a", 0, MONDAY)
    exported = archive.warehouse.write_week(MONDAY, [replace(seen, latency_ms=1)])
    archive.store.mark_exported(exported)
    report = archive.prune()
    assert report.weeks == ()
    assert "does not hold all" in report.kept[0][1]
    assert archive.stored() == [seen]


def test_runs_are_forgotten_after_four_hundred_days(archive: Archive) -> None:
    for weeks in (0, 1):
        run = archive.store.create_run(a_run(MONDAY + weeks * WEEK))
        archive.store.finish_dispatch(run.run_id, expected=0, at=MONDAY)
        archive.store.close_run(run.run_id, totals=RunCounts(expected=0, by_end={}), at=MONDAY)
    archive.clock = VirtualClock(MONDAY + timedelta(days=401))
    assert archive.prune().runs == 1
    assert [run.intended_at for run in archive.store.runs()] == [MONDAY + WEEK]


TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
MOMENT = st.datetimes(datetime(1990, 1, 1), datetime(2150, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 (bounds)
OBSERVATION = st.builds(
    Observation,
    job_id=TEXT,
    run_id=st.none() | TEXT,
    link_id=TEXT,
    url=TEXT,
    sequence=st.integers(0, 2**53),
    config_version=st.integers(1, 2**31),
    rules_version=st.integers(1, 9),
    retry_of=st.none() | TEXT,
    started_at=MOMENT,
    observed_at=MOMENT,
    status=st.none() | st.integers(100, 599),
    outcome=st.sampled_from(Outcome),
    reason=st.none() | st.sampled_from(Reason),
    content_hash=st.none() | TEXT,
    content_complete=st.booleans(),
    marker_found=st.none() | st.booleans(),
    bytes_read=st.integers(0, 2**40),
    latency_ms=st.integers(0, 2**40),
    content_type=st.none() | TEXT,
    final_url=st.none() | TEXT,
    redirects=st.lists(st.builds(RedirectHop, url=TEXT, status=st.integers(100, 599)), max_size=3).map(tuple),
    tls_not_after=st.none() | MOMENT,
    page_hints=st.lists(TEXT, max_size=3).map(tuple),
)


@given(st.lists(OBSERVATION, max_size=8, unique_by=lambda o: (o.link_id, o.sequence)))
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_what_is_read_is_exactly_what_was_written(tmp_path: Path, observations: list[Observation]) -> None:
    warehouse: Warehouse = ParquetWarehouse(tmp_path)
    exported = warehouse.write_week(MONDAY, observations)
    assert exported.rows == len(observations)
    assert warehouse.verify_week(exported)
    in_order = sorted(observations, key=lambda o: (o.link_id.encode(), o.sequence))
    assert list(warehouse.read_week(MONDAY)) == in_order


def test_every_field_of_an_observation_is_a_column_and_instants_are_instants(tmp_path: Path) -> None:
    assert list(COLUMNS) == [f.name for f in fields(Observation)]
    warehouse = ParquetWarehouse(tmp_path)
    warehouse.write_week(MONDAY, [an_observation(a_link())])
    with duckdb.connect() as connection:
        found = connection.execute(f"DESCRIBE SELECT * FROM '{warehouse.path_of(MONDAY)}'").fetchall()
        assert {name: kind.replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ") for name, kind, *_ in found} == {
            **{name: kind for name, (kind, _) in STORED.items()},
            "week": "DATE",
        }
        (week,) = connection.execute(f"SELECT DISTINCT week FROM '{warehouse.path_of(MONDAY)}'").fetchall()
        assert str(week[0]) == "2026-09-28"


def test_a_file_of_a_newer_schema_is_not_guessed_at(tmp_path: Path) -> None:
    warehouse = ParquetWarehouse(tmp_path)
    path = warehouse.path_of(MONDAY)
    warehouse.write_week(MONDAY, [an_observation(a_link())])
    newer = path.with_suffix(".newer")
    with duckdb.connect() as connection:
        connection.execute(f"COPY (FROM '{path}') TO '{newer}' (FORMAT parquet, KV_METADATA {{linkwatch_schema: '3'}})")
    newer.replace(path)
    with pytest.raises(StoreUnusable, match="schema"):
        list(warehouse.read_week(MONDAY))


def test_a_folder_that_cannot_be_written_is_said_and_the_earlier_file_stays(tmp_path: Path) -> None:
    (tmp_path / "observations").write_text("in the way")
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        ParquetWarehouse(tmp_path).write_week(MONDAY, [])


def test_without_duckdb_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtra, match=r"linkwatch-pipeline\[reports\]"):
        ParquetWarehouse(tmp_path).write_week(MONDAY, [])
