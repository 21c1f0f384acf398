"""Is linkwatch itself well? A pure verdict over facts; silence is a fault (SPEC 11)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.health_facts import HealthFacts
from linkwatch_pipeline.domain.health_findings import MOST_NAMED, Finding, Severity, named
from linkwatch_pipeline.domain.health_notices import address_findings, mute_findings, notice_findings
from linkwatch_pipeline.domain.health_runs import run_findings
from linkwatch_pipeline.domain.timestamps import format_seconds

# Two weeks, and the time that a run may take.
FRESH_FOR = timedelta(days=14, hours=6)
# More than what clocks that are set by the network differ by; less than what rests between visits stand.
CLOCKS_MAY_DIFFER = timedelta(seconds=30)
# 10,000 links take half a minute: who is merely at it is no finding.
BATCH_TAKES = timedelta(minutes=5)
# Two looks, each five minutes after the one before.
HEARTBEAT_LOST_AFTER = timedelta(minutes=10)


def verdict(facts: HealthFacts) -> tuple[Finding, ...]:
    """All findings, the worst first."""
    return in_order(
        [
            *run_findings(facts),
            *notice_findings(facts),
            *mute_findings(facts),
            *_dead_letters(facts),
            *_queue(facts),
            *_exports(facts),
            *address_findings(facts),
            *_unseen_links(facts),
            *_clocks(facts),
            *_damaged(facts),
            *_batch(facts),
        ]
    )


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The worst first, then the oldest."""
    return tuple(sorted(findings, key=lambda f: (f.severity is not Severity.CRITICAL, f.since, f.code, f.subject)))


def is_healthy(findings: Iterable[Finding]) -> bool:
    """Whether nothing critical was found."""
    return all(finding.severity is not Severity.CRITICAL for finding in findings)


def failed_look(problem: str, *, now: datetime) -> Finding:
    """That the facts could not even be read. Args: problem: a sentence."""
    return Finding(code="look_failed", severity=Severity.CRITICAL, subject="health", detail=problem, since=now)


def unfinished_import(*, now: datetime) -> Finding:
    """That a part of a history is all that is there. Nothing else that could be found would mean anything."""
    return Finding(
        code="import_unfinished",
        severity=Severity.CRITICAL,
        subject="store",
        detail="A history was imported in part. Run 'linkwatch import-history' again with the same file.",
        since=now,
    )


def missing_heartbeat(beat_at: datetime | None, *, now: datetime) -> Finding | None:
    """That nobody looks any more. Args: beat_at: when somebody looked last, None if nobody ever did."""
    if beat_at is not None and abs(now - beat_at) <= HEARTBEAT_LOST_AFTER:
        return None
    last = f"The last look was at {format_seconds(beat_at)}" if beat_at is not None else "Nobody has ever looked"
    return Finding(
        code="heartbeat_missing",
        severity=Severity.CRITICAL,
        subject="health",
        detail=f"{last}, so nothing that goes wrong is noticed. Start 'linkwatch health --watch' again.",
        since=beat_at if beat_at is not None else now,
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


def _queue(facts: HealthFacts) -> Iterable[Finding]:
    if facts.queue_problem is not None:
        yield Finding(
            code="queue_broken",
            severity=Severity.CRITICAL,
            subject="queue",
            detail=f"The queue of all workers is not as it has to be: {facts.queue_problem}",
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


def _unseen_links(facts: HealthFacts) -> Iterable[Finding]:
    unseen = facts.unseen
    if unseen.count:
        count = f"{unseen.count} or more" if unseen.is_more else f"{unseen.count}"
        yield Finding(
            code="links_unseen",
            severity=Severity.WARNING,
            subject="links",
            detail=f"Of {count} watched links nothing was observed for two weeks: "
            f"{named(unseen.examples, of=unseen.count)}. Read 'linkwatch inspect LINK_ID' to see why.",
            since=unseen.since if unseen.since is not None else facts.now,
        )


def _damaged(facts: HealthFacts) -> Iterable[Finding]:
    """One finding a record, or one for all if they are many: what damaged hundreds is one fault."""
    told = {error.record: str(error) for error in facts.damaged}
    if len(told) > MOST_NAMED:
        told = {"store": f"{len(told)} records cannot be read: {named(list(told))}. The first: {facts.damaged[0]}"}
    for record, detail in told.items():
        yield Finding(
            code="record_damaged",
            severity=Severity.CRITICAL,
            subject=record,
            detail=f"{detail} Until it is mended it is left out: what it says is neither checked nor told.",
            since=facts.now,
        )


def _batch(facts: HealthFacts) -> Iterable[Finding]:
    if facts.batch_begun_at is not None and facts.batch_begun_at < facts.now - BATCH_TAKES:
        yield Finding(
            code="batch_unfinished",
            severity=Severity.WARNING,
            subject="links",
            detail=f"An import, scan or submission begun at {format_seconds(facts.batch_begun_at)} is unfinished, and "
            "nothing of it counts. If nobody is at it any more, repeat it. If it shall not be, registering, changing "
            "or retiring any link ends it, an hour after it began.",
            since=facts.batch_begun_at,
        )


def _clocks(facts: HealthFacts) -> Iterable[Finding]:
    newest = facts.newest
    if newest is not None and newest.at > facts.now + CLOCKS_MAY_DIFFER:
        seconds = int((newest.at - facts.now).total_seconds())
        yield Finding(
            code="clock_skew",
            severity=Severity.CRITICAL,
            subject=newest.what,
            detail=f"It was written {seconds} s after this process's now: clocks differ, and with them rests, leases "
            "and deadlines. Set the clocks by the network (NTP).",
            since=facts.now,
        )
