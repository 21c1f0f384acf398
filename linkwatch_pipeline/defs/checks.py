"""Statements about a week that must hold, each with its numbers. Blocking ones stop what stands downstream."""

from datetime import datetime, timedelta

import dagster as dg

from linkwatch_pipeline.bootstrap import App
from linkwatch_pipeline.defs.observe import observation_batches
from linkwatch_pipeline.defs.report import coverage_report
from linkwatch_pipeline.defs.resources import PARTITION_TAG
from linkwatch_pipeline.defs.tables import count_each_end, host_table, percentage
from linkwatch_pipeline.defs.transition import outbox
from linkwatch_pipeline.domain.coverage import WARN_BELOW, coverage, is_poor
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.runs import JobStatus, Run, RunCounts, RunState, weekly_run_id
from linkwatch_pipeline.domain.timestamps import format_seconds, parse_week, week_key, week_start
from linkwatch_pipeline.use_cases.close_run import run_counts
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.export_week import KEEP_FILES
from linkwatch_pipeline.use_cases.review_week import changes_of_week, latest_week, notices_of_week

MOST_NAMED = 20
DOUBT_CONCERNS_US_FOR = timedelta(days=90)
_NO_RUN = dg.AssetCheckResult(passed=False, metadata={"run": "none"})


def _week_of(context: dg.AssetCheckExecutionContext, app: App) -> datetime:
    """The partition's week; a check that is executed on its own has none, and looks at the newest week."""
    key = context.run.tags.get(PARTITION_TAG)
    return (
        parse_week(key)
        if key is not None
        else latest_week(app.store, now=app.clock.now()) or week_start(app.clock.now())
    )


def _weekly_run(context: dg.AssetCheckExecutionContext) -> tuple[Run, RunCounts] | None:
    app: App = context.resources.app
    run = app.store.get_run(weekly_run_id(_week_of(context, app)))
    return (run, run_counts(app.store, run)) if run is not None else None


@dg.asset_check(asset=observation_batches, blocking=True, required_resource_keys={"app"})
def every_job_is_terminal(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """Every job of the week's run ended, one way or another."""
    found = _weekly_run(context)
    if found is None:
        return _NO_RUN
    run, counts = found
    chains = context.resources.app.store.chains(run.run_id)
    return dg.AssetCheckResult(
        # A run that is still being dispatched has few jobs, all of which may have ended; a missed one has none.
        passed=run.state in (RunState.OPEN, RunState.CLOSED) and counts.pending == 0,
        metadata={
            "run": run.run_id,
            "state": run.state.value,
            "expected": counts.expected,
            "pending": counts.pending,
            "hosts_with_work_left": host_table([c for c in chains if c.remaining][:MOST_NAMED]),
        },
    )


@dg.asset_check(asset=observation_batches, required_resource_keys={"app"})
def coverage_is_above_threshold(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """Enough links got a verdict: a complete run of timeouts is no good run."""
    found = _weekly_run(context)
    value = coverage(found[1]) if found is not None else None
    return dg.AssetCheckResult(
        passed=not is_poor(value),
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "run": found[0].run_id if found is not None else "none",
            "coverage_percent": percentage(value),
            "threshold_percent": percentage(WARN_BELOW),
            **count_each_end(found[1].by_end if found is not None else {}),
        },
    )


@dg.asset_check(asset=observation_batches, required_resource_keys={"app"})
def no_dead_letters(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """No job was given up after repeated failures of ours."""
    found = _weekly_run(context)
    if found is None:
        return _NO_RUN
    run, counts = found
    abandoned = counts.by_end.get(JobStatus.ABANDONED.value, 0)
    return dg.AssetCheckResult(passed=abandoned == 0, metadata={"run": run.run_id, "abandoned": abandoned})


@dg.asset_check(asset=outbox, blocking=True, required_resource_keys={"app"})
def every_transition_has_one_notice(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """Nobody is told twice, and nobody is forgotten: transitions and notices pair off exactly."""
    app: App = context.resources.app
    week = _week_of(context, app)
    damage = Damage()
    transitions = {transition.id for transition, _ in changes_of_week(app.store, week, damaged=damage)}
    unread = {error.key for error in damage.records}  # a transition that is damaged is there
    notices = [n.transition_id for n in notices_of_week(app.store, week) if n.transition_id not in unread]
    unpaired = sorted(transitions ^ set(notices))
    return dg.AssetCheckResult(
        passed=not unpaired and len(notices) == len(transitions),
        metadata={
            "week": format_seconds(week),
            "transitions": len(transitions),
            "notices": len(notices),
            "unpaired": ", ".join(unpaired[:MOST_NAMED]),
        },
    )


@dg.asset_check(asset=outbox, required_resource_keys={"app"})
def no_unknown_deliveries(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """No mail is in doubt: accepted or not, the provider's answer is known."""
    app: App = context.resources.app
    since = _week_of(context, app) - DOUBT_CONCERNS_US_FOR
    unknown = [
        notice.transition_id
        for notice in app.store.notices(unsettled_only=True, damaged=Damage())
        if notice.status is NoticeStatus.UNKNOWN and notice.observed_at >= since
    ]
    return dg.AssetCheckResult(
        passed=not unknown,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"unknown": len(unknown), "which": ", ".join(unknown[:MOST_NAMED])},
    )


@dg.asset_check(asset=coverage_report, required_resource_keys={"app"})
def every_week_is_in_the_warehouse(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """Each exported week's file is there as it was written, up to the week of this report."""
    app: App = context.resources.app
    week, oldest = _week_of(context, app), week_start(app.clock.now() - KEEP_FILES)
    exported = [each for each in app.store.exported_weeks() if oldest <= each.week <= week]
    lost = [each for each in exported if not app.warehouse.verify_week(each)]
    return dg.AssetCheckResult(
        passed=not lost,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "weeks": len(exported),
            "weeks_lost_or_damaged": len(lost),
            "observations": sum(each.rows for each in exported),
            "observations_lost": sum(each.rows for each in lost),
            "which": ", ".join(week_key(each.week) for each in lost[:MOST_NAMED]),
        },
    )
