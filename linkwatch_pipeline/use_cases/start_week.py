"""Which run stands for a week, and whether it may still begin (ARCHITECTURE 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.errors import DamagedRecord, InvalidInput
from linkwatch_pipeline.domain.runs import Run, RunState, is_missed_too_early, missed_run, weekly_run_id
from linkwatch_pipeline.domain.timestamps import WEEK, check_begun, format_seconds, week_key, week_start
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.damage import Damage, read_runs

# Less than what runs are kept for, so that a gap that was pruned is not found and recorded again.
MISSED_RECORDED_FOR = timedelta(days=390)


def start_week(store: Store, intended_at: datetime, *, now: datetime) -> Run:
    """The week's run: created if it is the current week, adopted if it exists, recorded as missed if it is too late.

    A week that a clock that was ahead recorded as missed is created all the same.

    Args: intended_at: a Monday 09:00 UTC.  now: aware UTC.
    Raises: InvalidInput for a week that has not begun, or that no run is kept of any more.
    """
    run_id = weekly_run_id(intended_at)
    existing = store.get_run(run_id)
    if existing is not None and not is_missed_too_early(existing, now):
        return existing
    check_startable(intended_at, now=now)
    if now >= intended_at + WEEK:
        return store.create_run(missed_run(intended_at, now))
    _record_gap(store, intended_at, now=now)
    return store.create_run(Run(run_id=run_id, intended_at=intended_at, started_at=now))


def check_startable(week: datetime, *, now: datetime, field: str = "week") -> datetime:
    """The week itself. Raises InvalidInput if it has not begun, or is over for too long to be recorded as missed."""
    if week < now - MISSED_RECORDED_FOR:
        raise InvalidInput(
            field,
            f"the week {week_key(week)} began more than {MISSED_RECORDED_FOR.days} days ago",
            f"Give a time of the current week, which began {format_seconds(week_start(now))}.",
        )
    return check_begun(week, now=now, field=field)


def _record_gap(store: Store, intended_at: datetime, *, now: datetime) -> None:
    """Record the weeks between a new run and the one before it, if nobody did: no scheduler comes back to them."""
    runs, unread = read_runs(store, Damage())
    before = max((run.intended_at for run in runs if run.intended_at < intended_at), default=intended_at)
    for gap in missed_weeks(runs, before, now=now, damaged=unread):
        store.create_run(gap)


def missed_weeks(
    runs: Iterable[Run], watched_since: datetime | None, *, now: datetime, damaged: Sequence[DamagedRecord] = ()
) -> list[Run]:
    """The past weeks in which links were watched and no run was made, as they have to be recorded, in time order.

    Args:
        runs: all that are known.
        watched_since: None if nothing is watched.
        damaged: the runs that cannot be read, which are no gaps.
    """
    if any(error.key is None for error in damaged):
        return []  # it may be the run of any week
    known = {run.run_id for run in runs}.union(error.key for error in damaged if error.key is not None)
    week = week_start(now) - WEEK
    gaps: list[Run] = []
    while watched_since is not None and week >= max(watched_since, now - MISSED_RECORDED_FOR):
        if weekly_run_id(week) not in known:
            gaps.insert(0, missed_run(week, now))
        week -= WEEK
    return gaps


def was_missed(run: Run) -> bool:
    """Whether the week went by unobserved: an old week cannot be observed now."""
    return run.state is RunState.MISSED
