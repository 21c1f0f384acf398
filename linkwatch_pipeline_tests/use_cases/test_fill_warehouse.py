"""The warehouse beside the weeks' looks: changes, notices, registry, aggregates, the DuckDB file; and repairs."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import duckdb
import pytest

from linkwatch_pipeline.bootstrap import App, build_app
from linkwatch_pipeline.domain.coverage import WeekCount
from linkwatch_pipeline.domain.errors import StoreUnusable
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.report import CoverageReport
from linkwatch_pipeline.domain.runs import weekly_run_id
from linkwatch_pipeline.domain.timestamps import WEEK, format_utc, week_key, week_start
from linkwatch_pipeline.use_cases.export_week import prune_history
from linkwatch_pipeline.use_cases.fill_warehouse import Filled, fill_warehouse
from linkwatch_pipeline.use_cases.report import report_week
from linkwatch_pipeline_tests.builders import MONDAY
from linkwatch_pipeline_tests.contracts.spoiling import spoil_row
from linkwatch_pipeline_tests.histories import made_home
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

EARLIER = MONDAY - WEEK


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with three weeks of 40 links, in the store and in the warehouse."""
    folder = tmp_path_factory.mktemp("made") / "home"
    made_home(folder, links=40, weeks=3, seed=5)[0].close()
    return folder


@pytest.fixture
def app(made: Path, tmp_path: Path) -> Iterator[App]:
    """A copy of that home."""
    shutil.copytree(made, tmp_path / "home")
    with build_app(tmp_path / "home", env={}, clock=VirtualClock(MONDAY + timedelta(days=2))) as opened:
        yield opened


@pytest.fixture(scope="module")
def whole(made: Path, tmp_path_factory: pytest.TempPathFactory) -> CoverageReport:
    """What that home reports while nothing is damaged."""
    home = tmp_path_factory.mktemp("whole") / "home"
    shutil.copytree(made, home)
    with build_app(home, env={}, clock=VirtualClock(MONDAY + timedelta(days=2))) as app:
        return report_week(app.store, app.warehouse, app.reports, MONDAY, clock=app.clock)


def fill(app: App) -> Filled:
    return fill_warehouse(app.store, app.warehouse, app.reports, MONDAY, clock=app.clock)


def file_of(app: App, kind: str, week: datetime = MONDAY) -> Path:
    return app.home.warehouse / kind / f"week={week:%Y-%m-%d}.parquet"


def rows_of(app: App, week: datetime) -> list[object]:
    read = app.warehouse
    return [*read.read_week(week), *read.read_transitions(week), *read.read_notices(week)]


def versions(app: App) -> dict[str, int]:
    return {
        str(path): path.stat().st_mtime_ns
        for path in app.home.warehouse.rglob("*.parquet")
        if path.name != "links.parquet"
    }


def test_every_transition_and_notice_is_in_the_file_of_its_week(app: App) -> None:
    weeks = [MONDAY - n * WEEK for n in (2, 1, 0)]
    transitions = [row for week in weeks for row in app.warehouse.read_transitions(week)]
    assert sorted(transitions, key=lambda row: (row.link_id, row.version)) == list(app.store.transitions())
    assert all(week_start(row.at) == week for week in weeks for row in app.warehouse.read_transitions(week))
    notices = [row for week in weeks for row in app.warehouse.read_notices(week)]
    assert {row.transition_id: row for row in notices} == {row.transition_id: row for row in app.store.notices()}
    assert len(notices) == len(transitions) > 0


def test_a_damaged_link_and_notice_are_named_and_keep_nothing_from_the_report(app: App) -> None:
    [link, *_], [notice, *_], before = app.store.links(), app.store.notices(), versions(app)
    spoil_row(app.home.database, "links", link.id, state="no such state")
    spoil_row(app.home.database, "notices", notice.transition_id, status="no such status")
    of_link, of_notice = report_week(app.store, app.warehouse, app.reports, MONDAY, clock=app.clock).problems
    assert f"the row {link.id} of links is damaged" in of_link
    assert f"the row {notice.transition_id} of notices is damaged" in of_notice
    assert versions(app) == before  # what was written of the notice while it could be read stays


def test_a_damaged_run_is_named_and_its_week_stays_what_the_files_say(app: App, whole: CoverageReport) -> None:
    damaged = weekly_run_id(EARLIER)
    spoil_row(app.home.database, "runs", damaged, expected="b")
    report = report_week(app.store, app.warehouse, app.reports, MONDAY, clock=app.clock)
    [problem] = report.problems
    assert f"the row {damaged} of runs is damaged (expected is not a whole number)" in problem
    counted, before = ({count.week: count for count in each.weeks} for each in (report, whole))
    left_out = WeekCount(week=EARLIER, run_state=None, links=before[EARLIER].links)
    assert counted == before | {EARLIER: left_out}


def test_a_damaged_observation_of_an_earlier_week_is_named_until_it_is_mended(app: App) -> None:
    held = list(app.store.observations(since=EARLIER, until=MONDAY))
    file_of(app, "observations", EARLIER).unlink()
    with closing(sqlite3.connect(app.home.database)) as database, database:
        database.execute("DELETE FROM exported_weeks WHERE week = ?", (format_utc(EARLIER),))
    spoil = partial(spoil_row, app.home.database, "observations", f"{held[0].link_id}:{held[0].sequence}")
    spoil(page_hints="no such thing")
    [problem] = fill(app).problems
    assert f"the row {held[0].link_id}, {held[0].sequence} of observations is damaged" in problem
    assert list(app.warehouse.read_week(EARLIER)) == held[1:]
    spoil(page_hints="[]")
    assert fill(app).problems == ()
    assert list(app.warehouse.read_week(EARLIER)) == held


def test_a_damaged_transition_is_named_and_stays_in_its_file(app: App) -> None:
    [change, *_], before = app.store.transitions(), versions(app)
    spoil_row(app.home.database, "transitions", change.id, to_state="no such state")
    [problem] = fill(app).problems
    assert f"the row {change.link_id}, {change.version} of transitions is damaged" in problem
    assert versions(app) == before


def test_filling_again_changes_no_file(app: App) -> None:
    before = versions(app)
    assert fill(app).problems == ()
    assert versions(app) == before


def test_a_notice_that_went_on_is_written_again(app: App) -> None:
    notice = next(iter(app.store.notices()))
    fresh = replace(notice, status=NoticeStatus.BOUNCED)
    week = week_start(notice.observed_at)
    app.warehouse.write_notices(week, [fresh])
    fill(app)
    assert notice in list(app.warehouse.read_notices(week))


@pytest.mark.parametrize("kind", ["transitions", "notices", "summaries", "observations"])
@pytest.mark.parametrize("damage", ["spoilt", "missing"])
def test_what_was_damaged_or_lost_is_there_again(app: App, whole: CoverageReport, kind: str, damage: str) -> None:
    week = next(each for each in (MONDAY - 2 * WEEK, EARLIER) if file_of(app, kind, each).exists())
    held = rows_of(app, week)
    file_of(app, kind, week).write_bytes(b"spoilt") if damage == "spoilt" else file_of(app, kind, week).unlink()
    again = report_week(app.store, app.warehouse, app.reports, MONDAY, clock=app.clock)
    assert replace(again, exported=whole.exported) == whole
    assert rows_of(app, week) == held


@pytest.mark.parametrize("kind", ["transitions", "notices", "summaries", "observations"])
def test_a_file_of_another_week_does_not_join_the_rows_of_this_one(app: App, whole: CoverageReport, kind: str) -> None:
    week = next(each for each in (MONDAY - 2 * WEEK, EARLIER) if file_of(app, kind, each).exists())
    held = rows_of(app, week)
    warehouse, later = app.warehouse, MONDAY + WEEK
    if kind == "transitions":
        warehouse.write_transitions(
            later, [replace(row, id="a:77", version=77) for row in warehouse.read_transitions(week)]
        )
    elif kind == "notices":
        warehouse.write_notices(later, [replace(row, transition_id="a:77") for row in warehouse.read_notices(week)])
    strange = later if file_of(app, kind, later).exists() else MONDAY
    file_of(app, kind, strange).replace(file_of(app, kind, week))
    again = report_week(app.store, app.warehouse, app.reports, MONDAY, clock=app.clock)
    assert replace(again, exported=whole.exported) == whole
    assert rows_of(app, week) == held


def test_without_the_newest_pages_the_weeks_are_written_again_with_new_numbers(app: App) -> None:
    whole = {week: list(app.warehouse.read_week(week)) for week in (EARLIER, MONDAY)}
    (app.home.warehouse / "pages.parquet").write_bytes(b"spoilt")
    with pytest.raises(StoreUnusable, match="other pages"):
        list(app.warehouse.read_week(EARLIER))
    assert fill(app).problems == ()
    assert {week: list(app.warehouse.read_week(week)) for week in (EARLIER, MONDAY)} == whole


def test_weeks_that_only_the_warehouse_has_need_the_pages_and_say_so(app: App) -> None:
    late = VirtualClock(MONDAY + timedelta(days=200))
    prune_history(app.store, app.warehouse, clock=late)
    (app.home.warehouse / "pages.parquet").write_bytes(b"spoilt")
    problems = fill_warehouse(app.store, app.warehouse, app.reports, MONDAY + 28 * WEEK, clock=late).problems
    assert len(problems) == 3
    assert all("Restore the file" in problem and ".damaged" in problem for problem in problems)


def test_observations_leave_the_warehouse_after_years_and_their_counts_stay(app: App) -> None:
    counted = app.reports.outcomes_by_week(through=MONDAY)
    late = VirtualClock(MONDAY + timedelta(weeks=262))
    assert prune_history(app.store, app.warehouse, clock=late).files == (MONDAY - 2 * WEEK, EARLIER, MONDAY)
    assert app.reports.weeks() == []
    assert app.reports.outcomes_by_week(through=MONDAY) == counted
    assert fill_warehouse(app.store, app.warehouse, app.reports, MONDAY + 262 * WEEK, clock=late).problems == ()
    assert list(app.warehouse.read_transitions(EARLIER)) or list(app.warehouse.read_transitions(MONDAY - 2 * WEEK))


def test_a_week_without_aggregates_never_leaves(app: App) -> None:
    file_of(app, "summaries", EARLIER).unlink()
    late = VirtualClock(MONDAY + timedelta(weeks=262))
    assert EARLIER not in prune_history(app.store, app.warehouse, clock=late).files
    assert app.reports.weeks() == [EARLIER]


def test_counts_are_those_of_the_looks_while_aggregates_are_old(app: App) -> None:
    counted = app.reports.outcomes_by_week(through=MONDAY)
    rows = list(app.warehouse.read_week(MONDAY))
    app.warehouse.write_week(MONDAY, rows[:10])
    assert sum(app.reports.outcomes_by_week(through=MONDAY)[MONDAY].values()) == 10
    app.warehouse.write_week(MONDAY, rows)
    assert app.reports.outcomes_by_week(through=MONDAY) == counted


def test_the_duckdb_file_has_the_views(app: App) -> None:
    fill(app)
    with duckdb.connect(str(app.home.warehouse / "linkwatch.duckdb"), read_only=True) as database:
        assert database.execute("SELECT count(*) FROM observations").fetchall() == [(120,)]
        rows = database.execute(
            "SELECT run_week::VARCHAR, sum(links) FROM weekly_outcomes GROUP BY 1 ORDER BY 1"
        ).fetchall()
        assert rows == [(week_key(MONDAY - n * WEEK), 40) for n in (2, 1, 0)]
        assert database.execute("SELECT count(*) FROM links").fetchall() == [(40,)]
        assert len(database.execute("FROM transitions").fetchall()) == len(list(app.store.transitions()))
