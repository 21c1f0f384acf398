"""Statements about a week that must hold, each with its numbers. Blocking ones stop what stands downstream."""

from datetime import UTC, datetime, timedelta

import dagster as dg

from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.defs.observe import observation_batches
from linkwatch_pipeline.defs.transition import outbox
from linkwatch_pipeline.domain.coverage import WARN_BELOW, coverage, is_poor, percent
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.runs import JobStatus, Run, weekly_run_id
from linkwatch_pipeline.domain.timestamps import WEEK, parse_week, week_start
from linkwatch_pipeline.use_cases.close_run import run_counts


def _week_of(context: dg.AssetCheckExecutionContext) -> datetime:
    """The partition's week; checks run on their own look at the current one."""
    key = context.run.tags.get("dagster/partition")
    return parse_week(key) if key is not None else week_start(datetime.now(UTC))  # noqa: TID251


def _run(app: App, week: datetime) -> Run | None:
    return app.store.get_run(weekly_run_id(week))


@dg.asset_check(asset=observation_batches, blocking=True, required_resource_keys={"app"})
def every_job_is_terminal(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """Every job of the week's run ended, one way or another."""
    app: App = context.resources.app
    run = _run(app, _week_of(context))
    if run is None:
        return dg.AssetCheckResult(passed=False, metadata={"run": "none"})
    counts = run_counts(app.store, run)
    return dg.AssetCheckResult(
        passed=counts.pending == 0, metadata={"expected": counts.expected, "pending": counts.pending}
    )


@dg.asset_check(asset=observation_batches, required_resource_keys={"app"})
def coverage_is_above_threshold(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """Enough links got a verdict: a complete run of timeouts is no good run."""
    app: App = context.resources.app
    run = _run(app, _week_of(context))
    value = coverage(run_counts(app.store, run)) if run is not None else None
    return dg.AssetCheckResult(
        passed=not is_poor(value),
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"coverage": percent(value), "threshold": percent(WARN_BELOW)},
    )


@dg.asset_check(asset=observation_batches, required_resource_keys={"app"})
def no_dead_letters(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """No job was given up after repeated failures of ours."""
    app: App = context.resources.app
    run = _run(app, _week_of(context))
    abandoned = run_counts(app.store, run).by_end.get(JobStatus.ABANDONED.value, 0) if run is not None else 0
    return dg.AssetCheckResult(passed=abandoned == 0, metadata={"abandoned": abandoned})


@dg.asset_check(asset=outbox, blocking=True, required_resource_keys={"app"})
def every_transition_has_one_notice(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """Nobody is told twice, and nobody is forgotten: transitions and notices pair off exactly."""
    app: App = context.resources.app
    week = _week_of(context)
    transitions = [t.id for t in app.store.transitions() if week <= t.at < week + WEEK]
    notices = [n.transition_id for n in app.store.notices() if week <= n.observed_at < week + WEEK]
    return dg.AssetCheckResult(
        passed=sorted(transitions) == sorted(notices) and len(set(notices)) == len(notices),
        metadata={"transitions": len(transitions), "notices": len(notices)},
    )


@dg.asset_check(asset=outbox, required_resource_keys={"app"})
def no_unknown_deliveries(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """No mail is in doubt: accepted or not, the provider's answer is known."""
    app: App = context.resources.app
    since = _week_of(context) - timedelta(days=90)
    unknown = [
        n.transition_id
        for n in app.store.notices(unsettled_only=True)
        if n.status is NoticeStatus.UNKNOWN and n.observed_at >= since
    ]
    return dg.AssetCheckResult(
        passed=not unknown,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"unknown": len(unknown), "first": unknown[0] if unknown else ""},
    )
