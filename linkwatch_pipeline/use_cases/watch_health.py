"""Is linkwatch well? Gathers the facts, asks `domain.health`, publishes a heartbeat and the counts (SPEC 11).

The same look through every door: the Dagster sensor, the Lambda function, `linkwatch health`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import nsmallest

from linkwatch_pipeline.domain.breaker import BreakerRules
from linkwatch_pipeline.domain.errors import QueueError
from linkwatch_pipeline.domain.health import in_order, unfinished_import, verdict
from linkwatch_pipeline.domain.health_facts import HealthFacts, RunProgress, Stamp
from linkwatch_pipeline.domain.health_findings import Finding, Severity
from linkwatch_pipeline.domain.health_runs import RESENDS_TOO_MANY, STALLED_AFTER, unreleased_runs
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus
from linkwatch_pipeline.domain.runs import Run, RunState, is_missed_too_early, is_retry, weekly_part, weekly_run_id
from linkwatch_pipeline.domain.timestamps import week_start
from linkwatch_pipeline.ports import Clock, Damaged, Metrics, Queue, Store
from linkwatch_pipeline.use_cases.damage import Damage, each_alone, read_runs
from linkwatch_pipeline.use_cases.dead_letters import letters_of
from linkwatch_pipeline.use_cases.release import due_ruling, in_line, release_notices
from linkwatch_pipeline.use_cases.start_week import missed_weeks, was_missed
from linkwatch_pipeline.use_cases.survey_health import Surveyor

EXPORT_WARNING_AFTER = timedelta(days=80)
MOST_LEASES_READ = 50  # each is a query of its own


def watch_health(
    store: Store,
    metrics: Metrics | None,
    *,
    clock: Clock,
    breaker: BreakerRules | None = None,
    surveyor: Surveyor | None = None,
    queue: Queue | None = None,
    only_reads: bool = False,
) -> tuple[Finding, ...]:
    """All findings, the worst first; the heartbeat says that somebody looked.

    Runs whose time has come are ruled on first: a suspect one must be known even if nobody delivers anything. Weeks
    that nobody ran are recorded as missed, since no scheduler comes back to them.

    Args:
        metrics: None publishes nothing: a look that nobody repeats is no heartbeat.
        surveyor: remembers what was read of all links and notices; None reads them now.
        queue: the one that all workers share, asked whether it is as it has to be; None where there is none.
        only_reads: write nothing into the store; runs are judged as they are going to be ruled on, and the next run
            records the weeks before it.
    """
    now, rules, damage = clock.now(), breaker or BreakerRules(), Damage()
    if store.is_import_unfinished():
        if metrics is not None:
            metrics.put("CriticalFindings", 1, at=now)
            metrics.put("Heartbeat", 1, at=now)
        return (unfinished_import(now=now),)
    if not only_reads:
        release_notices(store, rules, now=now, damaged=damage)
    facts = gather_facts(store, now=now, surveyor=surveyor or Surveyor(), damage=damage)
    facts = replace(facts, queue_problem=_queue_problem(queue))
    for gap in () if only_reads else facts.missed_weeks:
        store.create_run(gap)  # which leaves one that is recorded already as it is
    findings = verdict(facts)
    if only_reads:
        findings = in_order([*verdict(_as_ruled(store, facts, rules, damage)), *unreleased_runs(facts)])
    if metrics is not None:
        for number in _numbers(facts, findings):
            metrics.put(number.name, number.value, unit=number.unit, at=now)
    return findings


def gather_facts(store: Store, *, now: datetime, surveyor: Surveyor, damage: Damage) -> HealthFacts:
    """What the verdict rests on, read from the store alone: independent of whoever runs the week."""
    links, mails = surveyor.links(store, now=now, damaged=damage), surveyor.mails(store, now=now)
    for error in (*links.damaged, *mails.damaged):
        damage(error)
    this_week = weekly_run_id(week_start(now))
    stored, unread = read_runs(store, damage)
    all_runs = [run for run in stored if not is_missed_too_early(run, now)]
    gaps = missed_weeks(all_runs, links.watched_since, now=now, damaged=unread)
    current = [run for run in all_runs if weekly_part(run.run_id) == this_week or not run.state.is_over]
    unsettled = tuple(store.notices(unsettled_only=True, damaged=damage))
    progress = tuple(_progress(store, run, now, damage) for run in current if run.state is RunState.OPEN)
    return HealthFacts(
        now=now,
        watched_since=links.watched_since,
        runs=tuple(run for run in all_runs if run in current or run.is_held or run.ruling is None),
        unsettled=unsettled,
        dead_letters=sum(letter.redriven_as is None for letter in letters_of(store, current)),
        progress=progress,
        missed_weeks=tuple(run for run in [*all_runs, *gaps] if was_missed(run)),
        unexported_weeks=_unexported_weeks(store, all_runs, now),
        mutes=links.mutes,
        address_troubles=mails.address_troubles,
        lost_copies=mails.lost_copies,
        unseen=links.unseen,
        newest=max(_stamps(current, progress, unsettled), key=lambda stamp: stamp.at, default=None),
        damaged=damage.records,
        batch_begun_at=store.unfinished_since(),
    )


def _queue_problem(queue: Queue | None) -> str | None:
    if queue is None:
        return None
    try:
        queue.verify()
    except QueueError as why:
        return str(why)
    return None


def _progress(store: Store, run: Run, now: datetime, damaged: Damaged) -> RunProgress:
    """Read off the chains of an open run.

    A lease that is damaged lets nobody visit its host, so those of the hosts that are overdue the longest are read too.
    """
    moved_at, due_since = run.dispatched_at or run.started_at, None
    resent: list[str] = []
    overdue: list[tuple[datetime, str]] = []
    for chain in store.chains(run.run_id):
        moved_at = max(moved_at, chain.last_observed_at or moved_at)
        if chain.head is not None and chain.head_ready_at <= now:
            due_since = min(due_since or chain.head_ready_at, chain.head_ready_at)
        if chain.head is not None and chain.resends >= RESENDS_TOO_MANY:
            resent.append(chain.host)
        if chain.head is not None and chain.head_ready_at + STALLED_AFTER <= now:
            overdue.append((chain.head_ready_at, chain.host))
    each_alone((host for _, host in nsmallest(MOST_LEASES_READ, overdue)), store.get_host, damaged)
    return RunProgress(run=run, moved_at=moved_at, due_since=due_since, resent=tuple(resent))


def _as_ruled(store: Store, facts: HealthFacts, rules: BreakerRules, damage: Damage) -> HealthFacts:
    """The facts as they will be when the rulings that are due are made, and the notices follow them."""
    all_runs, ruled = list(store.runs(damaged=damage)), dict[str, Run]()
    for run in facts.runs:
        ruling = due_ruling(store, run, all_runs, rules, now=facts.now, damaged=damage)
        if ruling is not None:
            ruled[run.run_id] = replace(run, ruling=ruling)
    notices = (
        in_line(store, notice, ruled[notice.run_id], rules, facts.now) or notice if notice.run_id in ruled else notice
        for notice in facts.unsettled
    )
    return replace(facts, runs=tuple(ruled.get(run.run_id, run) for run in facts.runs), unsettled=tuple(notices))


def _stamps(runs: Sequence[Run], progress: Sequence[RunProgress], unsettled: Sequence[Notice]) -> Iterator[Stamp]:
    """What processes wrote down lately, as far as it was read anyway."""
    for run in runs:
        yield Stamp(what=run.run_id, at=max(run.started_at, run.closed_at or run.started_at))
    for each in progress:
        yield Stamp(what=each.run.run_id, at=each.moved_at)
    for notice in unsettled:
        yield Stamp(what=notice.transition_id, at=notice.created_at)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Number:
    name: str
    value: float
    unit: str = "Count"


def _numbers(facts: HealthFacts, findings: Sequence[Finding]) -> Iterator[_Number]:
    """What is drawn and alarmed on, the heartbeat last. `RunLate` is above 0 while a run is late or missing.

    `CriticalFindings` leaves out these runs and dead letters, which have alarms of their own: one that sounds already
    says nothing of what comes on top.
    """
    late = ("run_late", "run_missing")
    alarmed_apart = (*late, "dead_letters")
    critical = [f for f in findings if f.severity is Severity.CRITICAL and f.code not in alarmed_apart]
    waiting = [n for n in facts.unsettled if n.status is not NoticeStatus.HELD and n.release_at is not None]
    yield _Number(name="RunLate", value=sum(finding.code in late for finding in findings))
    yield _Number(name="CriticalFindings", value=len(critical))
    yield _Number(name="DeadLetters", value=facts.dead_letters)
    yield _Number(name="NoticesWaiting", value=len(waiting))
    yield _Number(name="NoticesRetried", value=sum(n.attempts > 0 for n in waiting))
    yield _Number(name="DeliveriesUnknown", value=sum(n.status is NoticeStatus.UNKNOWN for n in waiting))
    oldest = min((n.release_at for n in waiting if n.release_at is not None), default=facts.now)
    yield _Number(name="OldestNoticeAge", value=max((facts.now - oldest).total_seconds(), 0), unit="Seconds")
    yield _Number(name="LinksUnseen", value=facts.unseen.count)
    yield _Number(name="Heartbeat", value=1)
