"""The coverage report: numbers of runs from the store, outcomes from the warehouse, and no data where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.reports.duckdb_reports import DuckDBReports
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.adapters.warehouse.parquet import ParquetWarehouse
from linkwatch_pipeline.domain.errors import StoreUnusable
from linkwatch_pipeline.domain.links import Link, Place
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.report import CoverageReport
from linkwatch_pipeline.domain.runs import JobStatus, Run, RunState, count_chains, missed_run, retry_run_id
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.use_cases.export_week import prune_history
from linkwatch_pipeline.use_cases.report import newest_week, report_week
from linkwatch_pipeline_tests.builders import MONDAY, a_link, a_run, an_observation, dispatched
from linkwatch_pipeline_tests.virtual_clock import VirtualClock

EARLIER = MONDAY - WEEK
REGISTERED = MONDAY - 30 * WEEK
Ends = dict[str, int | JobStatus | None]  # by link id: an HTTP status (None: no answer), or how the job ended without


@dataclass
class Home:
    """A store with runs in it, and its warehouse."""

    store: SqliteStore
    folder: Path
    clock: VirtualClock

    def __post_init__(self) -> None:
        self.warehouse = ParquetWarehouse(self.folder)
        self.reports = DuckDBReports(self.warehouse.views)

    def watch(self, link_id: str, **fields: Any) -> Link:
        stored = self.store.get_link(link_id)
        if stored is None:
            stored = a_link(link_id, f"https://{link_id}.example/", active_since=REGISTERED, **fields)
            self.store.save_link(stored, replaces=None)
        return stored

    def run(self, week: datetime, ends: Ends, *, retry: bool = False, close: bool = True) -> None:
        """Play a week's run (its retry run) to its end: every job as given."""
        run = a_run(week)
        if retry:
            run = Run(run_id=retry_run_id(run.run_id) or "", intended_at=week, started_at=week, retry_of=run.run_id)
        links = [self.watch(link_id) for link_id in ends]
        for job in dispatched(self.store, links, run=run):
            end = ends[job.link_id]
            if isinstance(end, JobStatus):
                if end is not JobStatus.PENDING:
                    self.store.end_job(job, status=end, reason=Reason.STALLED)
                continue
            link = self.watch(job.link_id)
            at = week + timedelta(minutes=60 if retry else 1)
            marker = link.marker is None if end == 200 else None
            seen = an_observation(link, end, job=job, marker_found=marker, observed_at=at)
            self.store.record(seen, default_confirm=1, now=at)
        if close:
            self.store.close_run(run.run_id, totals=count_chains(self.store.chains(run.run_id)), at=week)

    def report(self, week: datetime = MONDAY, **options: int) -> CoverageReport:
        return report_week(self.store, self.warehouse, self.reports, week, clock=self.clock, **options)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    store = SqliteStore.open(tmp_path / "linkwatch.sqlite3")
    yield Home(store, tmp_path / "warehouse", VirtualClock(MONDAY + timedelta(days=1)))
    store.close()


def test_a_week_that_is_not_exported_is_exported_first_and_only_once(home: Home) -> None:
    home.run(MONDAY, {"a": 200, "b": 404})
    first = home.report()
    assert (first.exported.rows, first.exported.written) == (2, True)
    assert first.this_week.links == {Outcome.REACHABLE: 1, Outcome.BROKEN: 1}
    again = home.report(MONDAY + timedelta(days=2))
    assert again.exported.written is False
    assert again.weeks == first.weeks


def test_earlier_weeks_are_exported_too_and_later_ones_are_left_out(home: Home) -> None:
    for week in (EARLIER, MONDAY, MONDAY + WEEK):
        home.run(week, {"a": 200})
    report = home.report()
    assert [(each.week, each.links_seen) for each in report.weeks] == [(MONDAY, 1), (EARLIER, 1)]
    assert home.reports.weeks() == [EARLIER, MONDAY]


def test_coverage_is_the_weekly_runs_and_outcomes_are_each_links_last(home: Home) -> None:
    cancelled, expired = JobStatus.CANCELLED, JobStatus.EXPIRED
    home.run(MONDAY, {"a": 200, "b": 404, "c": 429, "d": None, "e": cancelled, "f": expired})
    home.run(MONDAY, {"c": 200, "f": 200}, retry=True)
    week = home.report().this_week
    assert week.counts is not None
    assert (week.counts.expected, week.counts.by_end["throttled"]) == (6, 1)
    assert (week.completeness, week.coverage) == (1.0, 2 / 5)
    assert week.links == {Outcome.REACHABLE: 3, Outcome.BROKEN: 1, Outcome.UNCERTAIN: 1}
    assert week.share(Outcome.REACHABLE) == 3 / 5
    assert week.share(Outcome.THROTTLED) == 0


def test_an_open_run_is_counted_as_it_stands(home: Home) -> None:
    home.run(MONDAY, {"a": 200, "b": JobStatus.PENDING}, close=False)
    week = home.report().this_week
    assert (week.run_state, week.completeness, week.coverage) == (RunState.OPEN, 0.5, 0.5)


def test_gaps_missed_weeks_and_forgotten_runs_are_no_data(home: Home) -> None:
    home.run(MONDAY - 60 * WEEK, {"a": 200})
    home.report(MONDAY - 60 * WEEK)
    home.store.create_run(missed_run(EARLIER, MONDAY))
    home.run(MONDAY, {"a": 200})
    prune_history(home.store, home.warehouse, clock=home.clock)
    report = home.report()
    assert len(report.weeks) == 61
    known = {each.week: each for each in report.weeks if each.run_state is not None or each.links is not None}
    assert list(known) == [MONDAY, EARLIER, MONDAY - 60 * WEEK]
    forgotten, missed = known[MONDAY - 60 * WEEK], known[EARLIER]
    assert (forgotten.coverage, forgotten.completeness, forgotten.links_seen) == (None, None, 1)
    assert (missed.run_state, missed.coverage, missed.completeness, missed.links) == (RunState.MISSED, None, None, None)
    assert report.weeks[2].share(Outcome.REACHABLE) is None
    assert report.weeks[2].count(Outcome.REACHABLE) is None


def test_a_week_that_nobody_knows_is_a_report_without_data(home: Home) -> None:
    report = home.report()
    assert [(each.week, each.coverage, each.links) for each in report.weeks] == [(MONDAY, None, None)]
    assert (report.worst_hosts.total, report.repeated_uncertainty.total, report.content_changed.total) == (0, 0, 0)
    assert report.exported.rows == 0


def test_a_week_of_which_nothing_was_looked_at_has_no_coverage_and_no_outcomes(home: Home) -> None:
    home.run(MONDAY, {"a": JobStatus.EXPIRED})
    week = home.report().this_week
    assert (week.completeness, week.coverage, week.links) == (1.0, 0.0, None)


def test_links_to_look_at_come_with_owner_and_places(home: Home) -> None:
    home.watch("a", places=(Place(file="docs/a.md", line=3),))
    home.watch("changed", marker="Guide")
    home.run(EARLIER, {"a": None, "changed": 200, "b": None})
    home.run(MONDAY, {"a": None, "changed": 200, "b": None})
    report = home.report(most=1)
    assert [found.link_id for found in report.repeated_uncertainty.rows] == ["a"]
    assert report.repeated_uncertainty.total == 2
    assert [found.link_id for found in report.content_changed.rows] == ["changed"]
    assert report.links["a"].places == (Place(file="docs/a.md", line=3),)
    assert report.links["changed"].owner == "docs-team"
    assert len(report.worst_hosts.rows) == 1


def test_an_earlier_week_whose_file_is_lost_is_said_and_its_aggregates_stay(home: Home) -> None:
    lost = MONDAY - 20 * WEEK
    home.run(lost, {"a": 200})
    home.report(lost)
    prune_history(home.store, home.warehouse, clock=home.clock)
    home.warehouse.path_of(lost).unlink()
    home.run(MONDAY, {"a": 200})
    report = home.report()
    assert (report.weeks[20].week, report.weeks[20].links, report.weeks[20].coverage) == (
        lost,
        {Outcome.REACHABLE: 1},
        1.0,
    )
    [problem] = report.problems
    assert "2026-05-11" in problem
    with pytest.raises(StoreUnusable, match="Restore the file"):
        home.report(lost)


def test_a_week_that_is_lost_with_its_aggregates_is_no_data(home: Home) -> None:
    lost = MONDAY - 20 * WEEK
    home.run(lost, {"a": 200})
    home.report(lost)
    prune_history(home.store, home.warehouse, clock=home.clock)
    home.warehouse.path_of(lost).write_bytes(b"spoilt")
    (home.folder / "summaries" / "week=2026-05-11.parquet").unlink()
    home.run(MONDAY, {"a": 200})
    report = home.report()
    assert (report.weeks[20].week, report.weeks[20].links) == (lost, None)
    [problem] = report.problems
    assert "week=2026-05-11.parquet.damaged" in problem
    assert home.warehouse.path_of(lost).with_name("week=2026-05-11.parquet.damaged").read_bytes() == b"spoilt"


def test_a_damaged_or_missing_week_is_written_again_while_the_store_holds_it(home: Home) -> None:
    home.run(EARLIER, {"a": 200})
    home.run(MONDAY, {"a": 200})
    whole = home.report()
    for spoil in (lambda path: path.write_bytes(b"spoilt"), Path.unlink):
        spoil(home.warehouse.path_of(EARLIER))
        again = home.report()
        assert (again.weeks, again.problems) == (whole.weeks, ())


def test_weeks_that_nobody_ran_are_named_whether_they_are_recorded_or_not(home: Home) -> None:
    home.run(EARLIER, {"a": 200})
    home.run(MONDAY + 3 * WEEK, {"a": 200})
    home.store.create_run(missed_run(MONDAY + WEEK, MONDAY + 2 * WEEK))
    home.clock.advance(MONDAY + 6 * WEEK - home.clock.now())
    last = home.report(MONDAY + 3 * WEEK)
    assert [(each.run_state, each.counts is None) for each in last.weeks] == [
        (RunState.CLOSED, False),
        *[(RunState.MISSED, True)] * 3,
        (RunState.CLOSED, False),
    ]
    assert last.missed_since == (MONDAY + 5 * WEEK, MONDAY + 4 * WEEK)
    assert last.missed_in_words == "Nobody ran the 2 weeks since: 2026-11-02, 2026-10-26."
    assert home.report(EARLIER).missed_since == (MONDAY + 2 * WEEK, MONDAY + WEEK, MONDAY)
    assert newest_week(home.store, home.reports, now=home.clock.now()) == MONDAY + 3 * WEEK
    home.store.create_run(missed_run(MONDAY + 4 * WEEK, home.clock.now()))
    assert home.report(MONDAY + 3 * WEEK).missed_since == last.missed_since
    assert newest_week(home.store, home.reports, now=home.clock.now()) == MONDAY + 3 * WEEK


def test_many_missed_weeks_are_cut_in_the_sentence(home: Home) -> None:
    home.run(MONDAY, {"a": 200})
    home.clock.advance(8 * WEEK)
    words = home.report().missed_in_words or ""
    assert words.startswith("Nobody ran the 7 weeks since: 2026-11-16, ")
    assert words.endswith(" and 2 more.")


def test_the_newest_week_is_the_last_one_known(home: Home) -> None:
    now = MONDAY + timedelta(days=3)
    assert newest_week(home.store, home.reports, now=now) == MONDAY
    home.run(EARLIER, {"a": 200})
    assert newest_week(home.store, home.reports, now=now) == EARLIER
    home.report(EARLIER)
    home.store.prune_runs(started_before=now)
    assert newest_week(home.store, home.reports, now=now) == EARLIER
