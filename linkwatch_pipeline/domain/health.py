"""Is linkwatch itself well? A pure verdict over facts; silence is a fault (SPEC 11)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from linkwatch_pipeline.domain.mail_events import copy_trouble
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus
from linkwatch_pipeline.domain.runs import (
    DEADLINE_AFTER,
    Run,
    RunState,
    is_late,
    is_retry,
    weekly_run_id,
)
from linkwatch_pipeline.domain.timestamps import format_seconds, week_start

NOTICE_TOO_OLD_AFTER = timedelta(minutes=5)
DISPATCH_TOO_SLOW_AFTER = timedelta(minutes=10)
# A weekly run that is not there this long after its intended time was not dispatched.
RUN_MISSING_AFTER = timedelta(minutes=5)
MOST_NAMED = 5  # notices in one finding


class Severity(StrEnum):
    """`critical` makes the verdict unhealthy; `warning` is to be looked at in working hours."""

    CRITICAL = "critical"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not well: a stable code, what it concerns, a sentence, and since when (UTC)."""

    code: str
    severity: Severity
    subject: str
    detail: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressTrouble:
    """Mails to a team's present address that came back or were reported as unwanted, oldest first.

    `notices` are those that have `status` (`bounced` or `complained`) and no later delivery to contradict them.
    """

    team: str
    status: NoticeStatus
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFacts:
    """What the verdict rests on. `watched_since` is when the first active link was registered, None without links.

    `runs` are the runs of the current week, of older weeks still open, and `missed_weeks` the recorded gaps.
    `unsettled` are the notices that are neither sent nor settled otherwise.
    """

    now: datetime
    watched_since: datetime | None
    runs: tuple[Run, ...]
    unsettled: tuple[Notice, ...]
    dead_letters: int
    unexported_weeks: tuple[datetime, ...] = ()
    address_troubles: tuple[AddressTrouble, ...] = ()
    lost_copies: tuple[Notice, ...] = ()


def verdict(facts: HealthFacts) -> tuple[Finding, ...]:
    """All findings, the worst first."""
    found = [
        *_missing_run(facts),
        *_runs(facts),
        *_notices(facts),
        *_dead_letters(facts),
        *_exports(facts),
        *_addresses(facts),
    ]
    return tuple(
        sorted(
            found,
            key=lambda f: (
                f.severity is not Severity.CRITICAL,
                f.since,
                f.code,
                f.subject,
            ),
        )
    )


def is_healthy(findings: Iterable[Finding]) -> bool:
    """Whether nothing critical was found."""
    return all(finding.severity is not Severity.CRITICAL for finding in findings)


def _missing_run(facts: HealthFacts) -> Iterable[Finding]:
    intended = week_start(facts.now)
    if facts.watched_since is None or facts.watched_since > intended or facts.now < intended + RUN_MISSING_AFTER:
        return
    run_id = weekly_run_id(intended)
    if not any(run.run_id == run_id for run in facts.runs):
        yield Finding(
            code="run_missing",
            severity=Severity.CRITICAL,
            subject=run_id,
            detail=f"The weekly run intended for {format_seconds(intended)} was never created.",
            since=intended,
        )


def _runs(facts: HealthFacts) -> Iterable[Finding]:
    for run in facts.runs:
        if run.state is RunState.CLOSED:
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


def _notices(facts: HealthFacts) -> Iterable[Finding]:
    for notice in facts.unsettled:
        if notice.status is NoticeStatus.UNKNOWN:
            yield Finding(
                code="delivery_unknown",
                severity=Severity.WARNING,
                subject=notice.transition_id,
                detail="The provider's answer was lost; the mail may or may not have been accepted.",
                since=notice.created_at,
            )
        elif notice.status is NoticeStatus.FAILED:
            yield Finding(
                code="notice_undeliverable",
                severity=Severity.CRITICAL,
                subject=notice.transition_id,
                detail=f"The mail was refused for good: {notice.last_error}",
                since=notice.created_at,
            )
        elif notice.owner is None:
            yield Finding(
                code="notice_without_owner",
                severity=Severity.WARNING,
                subject=notice.transition_id,
                detail=f"Link {notice.link_id!r} has no owner, so nobody can be told; set one with "
                f"'linkwatch update {notice.link_id} --owner TEAM'.",
                since=notice.created_at,
            )
        elif facts.now > notice.release_at + NOTICE_TOO_OLD_AFTER:
            yield Finding(
                code="notice_overdue",
                severity=Severity.CRITICAL,
                subject=notice.transition_id,
                detail=f"The notice is {notice.status.value} longer than 5 minutes after its release"
                + (f"; last error: {notice.last_error}" if notice.last_error else "; run 'linkwatch deliver'."),
                since=notice.release_at,
            )


def _dead_letters(facts: HealthFacts) -> Iterable[Finding]:
    if facts.dead_letters:
        yield Finding(
            code="dead_letters",
            severity=Severity.CRITICAL,
            subject="queue",
            detail=f"{facts.dead_letters} jobs were given up after repeated failures of ours.",
            since=facts.now,
        )


def _exports(facts: HealthFacts) -> Iterable[Finding]:
    for week in facts.unexported_weeks:
        yield Finding(
            code="week_unexported",
            severity=Severity.WARNING,
            subject=week.date().isoformat(),
            detail="Observations older than 80 days are not in the warehouse yet; run "
            f"'linkwatch run --week {week.date().isoformat()}', which exports a finished week again.",
            since=week,
        )


def _addresses(facts: HealthFacts) -> Iterable[Finding]:
    """By team, never by address: findings are shown in logs."""
    for trouble in facts.address_troubles:
        since = min(notice.sent_at or notice.created_at for notice in trouble.notices)
        ids = ", ".join(notice.transition_id for notice in trouble.notices[:MOST_NAMED])
        more = f" and {len(trouble.notices) - MOST_NAMED} more" if len(trouble.notices) > MOST_NAMED else ""
        mend = f"'linkwatch owner {trouble.team!r} ADDRESS'"
        if trouble.status is NoticeStatus.BOUNCED:
            yield Finding(
                code="address_bounces",
                severity=Severity.CRITICAL,
                subject=trouble.team,
                detail=f"Mails came back and told nobody: {ids}{more} ({trouble.notices[-1].last_error}). Tell the "
                f"team yourself, and give it an address that works: {mend}. Later notices are still tried.",
                since=since,
            )
        else:
            yield Finding(
                code="address_complains",
                severity=Severity.WARNING,
                subject=trouble.team,
                detail=f"Somebody reported mails as unwanted: {ids}{more}. Ask the team; it may want another address: "
                f"{mend}. Later notices are still tried.",
                since=since,
            )
    for notice in facts.lost_copies:
        yield Finding(
            code="copy_came_back",
            severity=Severity.WARNING,
            subject=notice.transition_id,
            detail=f"One of the teams {', '.join(notice.also_used_by)} did not get its copy ({copy_trouble(notice)}); "
            "give it an address that works.",
            since=notice.sent_at or notice.created_at,
        )
