"""Is linkwatch well? Gathers the facts, asks `domain.health`, publishes `RunLate` and a heartbeat (SPEC 11)."""

from __future__ import annotations

from datetime import datetime, timedelta

from linkwatch_pipeline.domain.breaker import BreakerRules
from linkwatch_pipeline.domain.health import Finding, HealthFacts, verdict
from linkwatch_pipeline.domain.runs import Run, is_retry, weekly_part, weekly_run_id
from linkwatch_pipeline.domain.timestamps import week_start
from linkwatch_pipeline.ports import Clock, Metrics, Store
from linkwatch_pipeline.use_cases.dead_letters import letters_of
from linkwatch_pipeline.use_cases.mute import list_mutes
from linkwatch_pipeline.use_cases.release import release_notices

EXPORT_WARNING_AFTER = timedelta(days=80)


def watch_health(
    store: Store, metrics: Metrics, *, clock: Clock, breaker: BreakerRules | None = None
) -> tuple[Finding, ...]:
    """All findings, the worst first; the heartbeat says that somebody looked.

    Runs whose time has come are ruled on first: a suspect one must be known even if nobody delivers anything.
    """
    now = clock.now()
    release_notices(store, breaker or BreakerRules(), now=now)
    findings = verdict(gather_facts(store, now=now))
    late = sum(finding.code in ("run_late", "run_missing") for finding in findings)
    metrics.put("RunLate", late, at=now)
    metrics.put("Heartbeat", 1, at=now)
    return findings


def gather_facts(store: Store, *, now: datetime) -> HealthFacts:
    """What the verdict rests on, read from the store alone: independent of whoever runs the week."""
    this_week = weekly_run_id(week_start(now))
    all_runs = list(store.runs())
    current = [run for run in all_runs if weekly_part(run.run_id) == this_week or not run.state.is_over]
    active_since = [link.active_since for link in store.links() if link.retired_at is None]
    return HealthFacts(
        now=now,
        watched_since=min(active_since, default=None),
        runs=tuple(run for run in all_runs if run in current or run.is_held),
        unsettled=tuple(store.notices(unsettled_only=True)),
        dead_letters=sum(letter.redriven_as is None for letter in letters_of(store, current)),
        unexported_weeks=_unexported_weeks(store, all_runs, now),
        mutes=tuple(list_mutes(store)),
    )


def _unexported_weeks(store: Store, runs: list[Run], now: datetime) -> tuple[datetime, ...]:
    exported = {week.week for week in store.exported_weeks()}
    return tuple(
        run.intended_at
        for run in runs
        if not is_retry(run.run_id)
        and run.dispatched
        and run.intended_at not in exported
        and run.intended_at < now - EXPORT_WARNING_AFTER
    )
