"""The coverage report of a week: what was seen, what was not, and what a person should look at (SPEC 4, 11).

Numbers of runs come from the store, outcomes from the warehouse; a week that is not exported yet is exported first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from linkwatch_pipeline.domain.coverage import REPEATED_FROM, Ranked, WeekCount, every_week
from linkwatch_pipeline.domain.findings import AVAILABILITY_WEEKS, CERTIFICATE_ENDS_WITHIN, ChangeKind, Grouping
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.report import LISTS_OF_LINKS, CoverageReport
from linkwatch_pipeline.domain.runs import RunState, is_missed_too_early, is_retry, weekly_run_id
from linkwatch_pipeline.domain.timestamps import week_start
from linkwatch_pipeline.ports import Clock, Reports, Store, Warehouse
from linkwatch_pipeline.use_cases.close_run import run_counts
from linkwatch_pipeline.use_cases.damage import Damage, each_alone, read_runs
from linkwatch_pipeline.use_cases.fill_warehouse import fill_warehouse
from linkwatch_pipeline.use_cases.start_week import missed_weeks, was_missed

MOST_ROWS = 1000
# Enough for every list to be whole: for what is read by machines.
ALL_ROWS = 10_000_000


def report_week(
    store: Store, warehouse: Warehouse, reports: Reports, week: datetime, *, clock: Clock, most: int = MOST_ROWS
) -> CoverageReport:
    """Report on a week, exported first if need be. Repeating it changes nothing.

    Args: most: rows of each list.
    Raises: StoreUnusable when a file is damaged, or the week's lost rows that the store no longer holds; MissingExtra.
    """
    week = week_start(week)
    filled = fill_warehouse(store, warehouse, reports, week, clock=clock)
    runs = _WeeklyRuns.of(store, now=clock.now())
    lists: dict[str, Ranked[Any]] = _lists(reports, week, most)
    return CoverageReport(
        exported=filled.exported,
        weeks=_count_weeks(store, reports, runs, week),
        missed_since=runs.missed_since(week),
        links=_links(store, (row.link_id for name in LISTS_OF_LINKS for row in lists[name].rows)),
        problems=filled.problems,
        **lists,
    )


def _lists(reports: Reports, week: datetime, most: int) -> dict[str, Ranked[Any]]:
    """The sections that are lists, by the name of their field."""
    # Those that read the same weeks stand together: the views are made once for each. The last ones read all weeks, as
    # `_count_weeks` does next.
    return {
        "by_owner": reports.groups(week, by=Grouping.OWNER, most=most),
        "by_host": reports.groups(week, by=Grouping.HOST, most=most),
        "by_file": reports.groups(week, by=Grouping.FILE, most=most),
        "worst_hosts": reports.worst_hosts(week, most=most),
        **{kind.value: reports.changes(week, kind=kind, most=most) for kind in ChangeKind},
        "content_changed": reports.content_changed(week, most=most),
        "ending_certificates": reports.ending_certificates(week, within=CERTIFICATE_ENDS_WITHIN, most=most),
        "slowest_hosts": reports.slowest_hosts(week, most=most),
        "moved_for_good": reports.moved_for_good(week, most=most),
        "availability": reports.availability(week, weeks=AVAILABILITY_WEEKS, most=most),
        "repeated_uncertainty": reports.repeated_uncertainty(week, at_least=REPEATED_FROM, most=most),
        "suspected_pages": reports.suspected_pages(week, most=most),
    }


def newest_week(store: Store, reports: Reports, *, now: datetime) -> datetime:
    """The newest week that somebody ran or that has a file; the current one if there is none."""
    known = {week_start(run.intended_at) for run in store.runs(damaged=Damage()) if not was_missed(run)}
    return max(known.union(reports.weeks()), default=week_start(now))


@dataclass(frozen=True, slots=True, kw_only=True)
class _WeeklyRuns:
    """The weeks that the store has a run of, and those that nobody ran: recorded as missed, or still to be."""

    run: frozenset[datetime]
    missed: frozenset[datetime]

    @classmethod
    def of(cls, store: Store, *, now: datetime) -> _WeeklyRuns:
        stored, unread = read_runs(store, Damage())
        runs = [run for run in stored if not is_retry(run.run_id) and not is_missed_too_early(run, now)]
        gaps = missed_weeks(runs, min((run.intended_at for run in runs), default=None), now=now, damaged=unread)
        missed = frozenset(run.intended_at for run in [*runs, *gaps] if was_missed(run))
        return cls(run=frozenset(run.intended_at for run in runs) - missed, missed=missed)

    def missed_since(self, week: datetime) -> tuple[datetime, ...]:
        """The weeks between this one and the next that somebody ran, the newest first."""
        following = min((run for run in self.run if run > week), default=None)
        since = (each for each in self.missed if each > week and (following is None or each < following))
        return tuple(sorted(since, reverse=True))


def _count_weeks(store: Store, reports: Reports, runs: _WeeklyRuns, week: datetime) -> tuple[WeekCount, ...]:
    outcomes = reports.outcomes_by_week(through=week)
    weeks = every_week([*outcomes, *runs.run, *runs.missed], through=week)
    return tuple(_count(store, runs, each, outcomes.get(each)) for each in weeks)


def _count(store: Store, runs: _WeeklyRuns, week: datetime, links: Mapping[Outcome, int] | None) -> WeekCount:
    run = store.get_run(weekly_run_id(week)) if week in runs.run else None
    if run is None:
        return WeekCount(week=week, run_state=RunState.MISSED if week in runs.missed else None, links=links)
    return WeekCount(week=week, run_state=run.state, counts=run_counts(store, run), links=links)


def _links(store: Store, link_ids: Iterable[str]) -> dict[str, Link]:
    """Those that can be read: a damaged one is among the problems already."""
    found: dict[str, Link] = {}

    def look(link_id: str) -> None:
        if (link := store.get_link(link_id)) is not None:
            found[link_id] = link

    each_alone(sorted(set(link_ids)), look, lambda _: None)
    return found
