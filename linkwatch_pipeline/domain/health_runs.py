"""Findings about runs: one that is missing, half-dispatched, late, stalled, suspect or was missed (SPEC 11)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from linkwatch_pipeline.domain.health_facts import HealthFacts
from linkwatch_pipeline.domain.health_findings import Finding, Severity, named
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.runs import DEADLINE_AFTER, RunState, is_late, is_retry, weekly_run_id
from linkwatch_pipeline.domain.timestamps import format_seconds, week_start

DISPATCH_TOO_SLOW_AFTER = timedelta(minutes=10)
# A weekly run that is not there this long after its intended time was not dispatched.
RUN_MISSING_AFTER = timedelta(minutes=5)
# Longer than any visit, any rest and the wait for a lost message: then nobody works on the run.
STALLED_AFTER = timedelta(minutes=10)
RESENDS_TOO_MANY = 3
RULED_ON_WITHIN = timedelta(minutes=5)
MISSED_SHOWN_FOR = timedelta(days=35)


def run_findings(facts: HealthFacts) -> Iterable[Finding]:
    """All that is not well with the runs."""
    yield from _missing_run(facts)
    yield from _open_runs(facts)
    yield from _stalled_runs(facts)
    yield from _held_runs(facts)
    yield from unreleased_runs(facts)
    yield from _missed_weeks(facts)


def _missing_run(facts: HealthFacts) -> Iterable[Finding]:
    intended = week_start(facts.now)
    if facts.watched_since is None or facts.watched_since > intended or facts.now < intended + RUN_MISSING_AFTER:
        return
    run_id = weekly_run_id(intended)
    if any(error.key == run_id for error in facts.damaged):
        return  # it is there, and cannot be read
    # One that is recorded as missed while its week still goes on was written by a clock that was ahead.
    if not any(run.run_id == run_id and run.state is not RunState.MISSED for run in facts.runs):
        yield Finding(
            code="run_missing",
            severity=Severity.CRITICAL,
            subject=run_id,
            detail=f"The weekly run intended for {format_seconds(intended)} was never created.",
            since=intended,
        )


def _open_runs(facts: HealthFacts) -> Iterable[Finding]:
    for run in facts.runs:
        if run.state.is_over:
            continue
        if run.state is RunState.DISPATCHING and facts.now > run.started_at + DISPATCH_TOO_SLOW_AFTER:
            yield Finding(
                code="run_half_dispatched",
                severity=Severity.CRITICAL,
                subject=run.run_id,
                detail=f"{run.dispatched} jobs exist, but dispatch never finished; resume the run.",
                since=run.started_at,
            )
        if is_late(run, facts.now):
            kind = "retry run" if is_retry(run.run_id) else "weekly run"
            minutes = int(DEADLINE_AFTER.total_seconds() // 60)
            yield Finding(
                code="run_late",
                severity=Severity.CRITICAL,
                subject=run.run_id,
                detail=f"The {kind} is unfinished more than {minutes} minutes after it was due to begin; resume it.",
                since=run.deadline_at,
            )


def _held_runs(facts: HealthFacts) -> Iterable[Finding]:
    for run in facts.runs:
        if run.ruling is None or not run.is_held:
            continue
        held = sum(n.run_id == run.run_id and n.status is NoticeStatus.HELD for n in facts.unsettled)
        yield Finding(
            code="run_suspect",
            severity=Severity.CRITICAL,
            subject=run.run_id,
            detail=f"{run.ruling.why}. Its {held} notices are held; look at it, then run "
            f"'linkwatch release-notices {run.run_id}' or 'linkwatch discard-notices {run.run_id}'.",
            since=run.ruling.at,
        )


def _stalled_runs(facts: HealthFacts) -> Iterable[Finding]:
    for progress in facts.progress:
        due = progress.due_since is not None and facts.now > progress.due_since + STALLED_AFTER
        if due and facts.now > progress.moved_at + STALLED_AFTER:
            minutes = int(STALLED_AFTER.total_seconds() // 60)
            yield Finding(
                code="run_stalled",
                severity=Severity.CRITICAL,
                subject=progress.run.run_id,
                detail=f"Hosts wait to be visited, and no job ended for more than {minutes} minutes; resume the run.",
                since=progress.moved_at,
            )
        if progress.resent:
            yield Finding(
                code="run_resending",
                severity=Severity.WARNING,
                subject=progress.run.run_id,
                detail=f"The next job of {len(progress.resent)} hosts was sent {RESENDS_TOO_MANY} times or more and "
                f"nobody did it: {named(progress.resent)}. Look whether the workers live and what they log.",
                since=progress.moved_at,
            )


def unreleased_runs(facts: HealthFacts) -> Iterable[Finding]:
    """Whoever delivers rules first: notices without a ruling tell that nobody delivers."""
    for run in facts.runs:
        made = [n.created_at for n in facts.unsettled if n.run_id == run.run_id and n.release_at is None]
        # A run may begin after its deadline: nothing is due before there is a notice.
        due_at = max(min(run.closed_at or run.deadline_at, run.deadline_at), min(made, default=run.started_at))
        if run.ruling is None and made and facts.now > due_at + RULED_ON_WITHIN:
            yield Finding(
                code="run_unreleased",
                severity=Severity.CRITICAL,
                subject=run.run_id,
                detail="Its notices wait to be released, and nobody has decided about them: nobody delivers.",
                since=due_at,
            )


def _missed_weeks(facts: HealthFacts) -> Iterable[Finding]:
    """Those of late; the rest stay in the history."""
    for run in facts.missed_weeks:
        if run.intended_at <= facts.now - MISSED_SHOWN_FOR:
            continue
        yield Finding(
            code="week_missed",
            severity=Severity.WARNING,
            subject=run.run_id,
            detail="Nobody ran this week, and it is over: what changed then and changed back was not seen. "
            "See that the schedule is on and its daemon runs.",
            since=run.intended_at,
        )
