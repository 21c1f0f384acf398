"""The coverage report of a week: what was seen, what was not, and what a person should look at (SPEC 4, 11).

Numbers of runs come from the store, outcomes from the warehouse; a week that is not exported yet is exported first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from linkwatch_pipeline.domain.coverage import REPEATED_FROM, Ranked, WeekCount, every_week
from linkwatch_pipeline.domain.findings import AVAILABILITY_WEEKS, CERTIFICATE_ENDS_WITHIN, ChangeKind, Grouping
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.report import LISTS_OF_LINKS, CoverageReport
from linkwatch_pipeline.domain.runs import is_missed_too_early, is_retry, weekly_run_id
from linkwatch_pipeline.domain.timestamps import week_start
from linkwatch_pipeline.ports import Clock, Reports, Store, Warehouse
from linkwatch_pipeline.use_cases.close_run import run_counts
from linkwatch_pipeline.use_cases.fill_warehouse import fill_warehouse

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
    lists: dict[str, Ranked[Any]] = _lists(reports, week, most)
    return CoverageReport(
        exported=filled.exported,
        weeks=_count_weeks(store, reports, week),
        links=_links(store, (row.link_id for name in LISTS_OF_LINKS for row in lists[name].rows)),
        problems=filled.problems,
        **lists,
    )


def _lists(reports: Reports, week: datetime, most: int) -> dict[str, Ranked[Any]]:
    """The sections that are lists, by the name of their field."""
    # Those that read the same weeks stand together: the views are made once for each.
    return {
        "by_owner": reports.groups(week, by=Grouping.OWNER, most=most),
        "by_host": reports.groups(week, by=Grouping.HOST, most=most),
        "by_file": reports.groups(week, by=Grouping.FILE, most=most),
        "worst_hosts": reports.worst_hosts(week, most=most),
        **{kind.value: reports.changes(week, kind=kind, most=most) for kind in ChangeKind},
        "content_changed": reports.content_changed(week, most=most),
        "ending_certificates": reports.ending_certificates(week, within=CERTIFICATE_ENDS_WITHIN, most=most),
        "slowest_hosts": reports.slowest_hosts(week, most=most),
        "repeated_uncertainty": reports.repeated_uncertainty(week, at_least=REPEATED_FROM, most=most),
        "moved_for_good": reports.moved_for_good(week, most=most),
        "suspected_pages": reports.suspected_pages(week, most=most),
        "availability": reports.availability(week, weeks=AVAILABILITY_WEEKS, most=most),
    }


def newest_week(store: Store, reports: Reports, *, now: datetime) -> datetime:
    """The newest week that has a run or a file; the current one if there is none."""
    known = {week_start(run.intended_at) for run in store.runs() if not is_missed_too_early(run, now)}
    return max(known.union(reports.weeks()), default=week_start(now))


def _count_weeks(store: Store, reports: Reports, week: datetime) -> tuple[WeekCount, ...]:
    outcomes = reports.outcomes_by_week(through=week)
    known = [*outcomes, *(run.intended_at for run in store.runs() if not is_retry(run.run_id))]
    return tuple(_count(store, each, outcomes.get(each)) for each in every_week(known, through=week))


def _count(store: Store, week: datetime, links: Mapping[Outcome, int] | None) -> WeekCount:
    run = store.get_run(weekly_run_id(week))
    if run is None:
        return WeekCount(week=week, links=links)
    return WeekCount(week=week, run_state=run.state, counts=run_counts(store, run), links=links)


def _links(store: Store, link_ids: Iterable[str]) -> dict[str, Link]:
    found = (store.get_link(link_id) for link_id in sorted(set(link_ids)))
    return {link.id: link for link in found if link is not None}
