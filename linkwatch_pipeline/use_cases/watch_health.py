"""Is linkwatch well? Gathers the facts, asks `domain.health`, publishes `RunLate` and a heartbeat (SPEC 11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.breaker import BreakerRules
from linkwatch_pipeline.domain.health import AddressTrouble, Finding, HealthFacts, verdict
from linkwatch_pipeline.domain.mail_events import copy_trouble
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus
from linkwatch_pipeline.domain.runs import Run, is_retry, weekly_part, weekly_run_id
from linkwatch_pipeline.domain.timestamps import week_start
from linkwatch_pipeline.ports import Clock, Metrics, Store
from linkwatch_pipeline.use_cases.dead_letters import letters_of
from linkwatch_pipeline.use_cases.mute import list_mutes
from linkwatch_pipeline.use_cases.release import due_ruling, in_line, release_notices

MAIL_TROUBLE_COUNTS_FOR = timedelta(days=30)
EXPORT_WARNING_AFTER = timedelta(days=80)


def watch_health(
    store: Store, metrics: Metrics, *, clock: Clock, breaker: BreakerRules | None = None, only_reads: bool = False
) -> tuple[Finding, ...]:
    """All findings, the worst first; the heartbeat says that somebody looked.

    Runs whose time has come are ruled on first: a suspect one must be known even if nobody delivers anything.

    Args: only_reads: write nothing into the store; those runs are judged as they are going to be ruled on.
    """
    now, rules = clock.now(), breaker or BreakerRules()
    if not only_reads:
        release_notices(store, rules, now=now)
    facts = gather_facts(store, now=now)
    findings = verdict(_as_ruled(store, facts, rules) if only_reads else facts)
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
    notices = list(store.notices())
    return HealthFacts(
        now=now,
        watched_since=min(active_since, default=None),
        runs=tuple(run for run in all_runs if run in current or run.is_held),
        unsettled=tuple(store.notices(unsettled_only=True)),
        dead_letters=sum(letter.redriven_as is None for letter in letters_of(store, current)),
        unexported_weeks=_unexported_weeks(store, all_runs, now),
        mutes=tuple(list_mutes(store)),
        address_troubles=tuple(_address_troubles(store, notices, now)),
        lost_copies=tuple(n for n in notices if copy_trouble(n) is not None and _is_recent(n, now)),
    )


def _as_ruled(store: Store, facts: HealthFacts, rules: BreakerRules) -> HealthFacts:
    """The facts as they will be when the rulings that are due are made, and the notices follow them."""
    all_runs, ruled = list(store.runs()), dict[str, Run]()
    for run in facts.runs:
        ruling = due_ruling(store, run, all_runs, rules, now=facts.now)
        if ruling is not None:
            ruled[run.run_id] = replace(run, ruling=ruling)
    notices = (
        in_line(store, notice, ruled[notice.run_id], rules, facts.now) or notice if notice.run_id in ruled else notice
        for notice in facts.unsettled
    )
    return replace(facts, runs=tuple(ruled.get(run.run_id, run) for run in facts.runs), unsettled=tuple(notices))


def _address_troubles(store: Store, notices: Iterable[Notice], now: datetime) -> Iterator[AddressTrouble]:
    """By team, the bounces and complaints that still count: to its present address, with no later delivery to it."""
    teams = {owner.address.lower(): owner.team for owner in store.owners()}
    bad: dict[tuple[str, NoticeStatus], list[Notice]] = {}
    for notice in notices:
        address = (notice.recipient or "").lower()
        if notice.status is NoticeStatus.DELIVERED:
            bad.pop((address, NoticeStatus.BOUNCED), None)
        complained = notice.status is NoticeStatus.COMPLAINED and _is_recent(notice, now)
        if notice.status is NoticeStatus.BOUNCED or complained:
            bad.setdefault((address, notice.status), []).append(notice)
    for (address, status), told in sorted(bad.items()):
        if address in teams:
            yield AddressTrouble(team=teams[address], status=status, notices=tuple(told))


def _is_recent(notice: Notice, now: datetime) -> bool:
    return (notice.sent_at or notice.created_at) > now - MAIL_TROUBLE_COUNTS_FOR


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
