"""The coverage report of a week: what was seen, what was not, and what a person should look at (SPEC 4, 11).

Numbers of runs come from the store, outcomes from the warehouse; a week that is not exported yet is exported first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from linkwatch_pipeline.domain.coverage import (
    REPEATED_FROM,
    ChangedContent,
    HostTrouble,
    Ranked,
    RepeatedUncertainty,
    WeekCount,
    every_week,
)
from linkwatch_pipeline.domain.errors import StoreUnusable
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.runs import is_retry, weekly_run_id
from linkwatch_pipeline.domain.timestamps import week_start
from linkwatch_pipeline.ports import Clock, Reports, Store, Warehouse
from linkwatch_pipeline.use_cases.close_run import run_counts
from linkwatch_pipeline.use_cases.export_week import WeekExport, export_week

MOST_ROWS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageReport:
    """A week and all weeks before it, the newest first; gaps are there, without data.

    `links` has the links that the lists name, as the store knows them now. `problems` are sentences about earlier weeks
    whose files are lost; those weeks have no outcomes here.
    """

    exported: WeekExport
    weeks: tuple[WeekCount, ...]
    worst_hosts: Ranked[HostTrouble]
    repeated_uncertainty: Ranked[RepeatedUncertainty]
    content_changed: Ranked[ChangedContent]
    links: Mapping[str, Link]
    problems: tuple[str, ...] = ()

    @property
    def this_week(self) -> WeekCount:
        return self.weeks[0]


def report_week(
    store: Store, warehouse: Warehouse, reports: Reports, week: datetime, *, clock: Clock, most: int = MOST_ROWS
) -> CoverageReport:
    """Report on a week, exported first if need be. Repeating it changes nothing.

    Args: most: rows of each list.
    Raises: StoreUnusable when a file is damaged, or the week's lost rows that the store no longer holds; MissingExtra.
    """
    week = week_start(week)
    exported = export_week(store, warehouse, week, clock=clock)
    problems = _export_earlier(store, warehouse, reports, week, clock=clock)
    repeated = reports.repeated_uncertainty(week, at_least=REPEATED_FROM, most=most)
    changed = reports.content_changed(week, most=most)
    return CoverageReport(
        exported=exported,
        weeks=_count_weeks(store, reports, week),
        worst_hosts=reports.worst_hosts(week, most=most),
        repeated_uncertainty=repeated,
        content_changed=changed,
        links=_links(store, [*(r.link_id for r in repeated.rows), *(c.link_id for c in changed.rows)]),
        problems=tuple(problems),
    )


def newest_week(store: Store, reports: Reports, *, now: datetime) -> datetime:
    """The newest week that has a run or a file; the current one if there is none."""
    known = {week_start(run.intended_at) for run in store.runs()}
    return max(known.union(reports.weeks()), default=week_start(now))


def _export_earlier(store: Store, warehouse: Warehouse, reports: Reports, week: datetime, *, clock: Clock) -> list[str]:
    """Export the earlier weeks that have no file, if anything of them is known; what could not be."""
    known = {week_start(run.intended_at) for run in store.runs()}
    known.update(exported.week for exported in store.exported_weeks())
    problems = []
    for earlier in sorted(known.difference(reports.weeks())):
        if earlier < week:
            try:
                export_week(store, warehouse, earlier, clock=clock)
            except StoreUnusable as problem:
                problems.append(str(problem))
    return problems


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
