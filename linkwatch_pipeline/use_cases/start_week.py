"""Which run stands for a week, and whether it may still begin (ARCHITECTURE 4)."""

from __future__ import annotations

from datetime import datetime

from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.runs import Run, RunState, missed_run, weekly_run_id
from linkwatch_pipeline.domain.timestamps import WEEK, format_seconds
from linkwatch_pipeline.ports import Store


def start_week(store: Store, intended_at: datetime, *, now: datetime) -> Run:
    """The week's run: created if it is the current week, adopted if it exists, recorded as missed if it is too late.

    Args: intended_at: a Monday 09:00 UTC.  now: aware UTC.
    Raises: InvalidInput for a week that has not begun.
    """
    run_id = weekly_run_id(intended_at)
    existing = store.get_run(run_id)
    if existing is not None:
        return existing
    if now < intended_at:
        raise InvalidInput("week", f"{run_id} has not begun", f"Wait until {format_seconds(intended_at)}.")
    if now >= intended_at + WEEK:
        return store.create_run(missed_run(intended_at, now))
    return store.create_run(Run(run_id=run_id, intended_at=intended_at, started_at=now))


def was_missed(run: Run) -> bool:
    """Whether the week went by unobserved: an old week cannot be observed now."""
    return run.state is RunState.MISSED
