"""When a run's notices may be sent: when the run closes or at its deadline, unless the run is suspect (SPEC 10).

Everything here may be repeated, by several at once: the decision about a run is one conditional write, and the notices
follow it. So whoever looks next, a sender, a sensor or the health check, finishes what a crash left undone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from linkwatch_pipeline.domain.breaker import BreakerRules, RunSigns, read_signs, silent_hosts, suspicion
from linkwatch_pipeline.domain.errors import ConflictingContent, DamagedRecord, NotFound
from linkwatch_pipeline.domain.links import Delivery, LinkState, check_person, check_reason
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus, is_waiting
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.runs import Ruling, RulingKind, Run, RunState, is_retry
from linkwatch_pipeline.domain.urls import host_key
from linkwatch_pipeline.ports import Damaged, Store
from linkwatch_pipeline.use_cases.damage import Damage, each_alone, read_runs, refuse_damaged_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What a person decided about a run, and how many notices it concerned."""

    run: Run
    notices: int


def release_notices(store: Store, rules: BreakerRules, *, now: datetime, damaged: Damaged) -> list[DamagedRecord]:
    """Rule on the runs that are over or past their deadline, and let the notices follow the rulings.

    A damaged notice, or one of a damaged run, does so once that is mended.

    Returns: the damaged runs: nobody knows what was decided about their notices.
    """
    runs, unread = read_runs(store, damaged)
    ruled = {run.run_id: _ruled(store, run, runs, rules, now, damaged) for run in runs}

    def follow(notice: Notice) -> None:
        run = ruled.get(notice.run_id or "")
        if run is None:
            refuse_damaged_run(notice.run_id, unread)
        _follow(store, notice, run, rules, now)

    each_alone(list(store.notices(unsettled_only=True, damaged=damaged)), follow, damaged)
    return unread


def release_run(store: Store, run_id: str, *, by: str | None, now: datetime) -> Decided:
    """Let a held run's notices go, by a person's decision. Raises NotFound, ConflictingContent, InvalidInput."""
    return _decide(store, run_id, Ruling(kind=RulingKind.RELEASED, at=now, by=check_person(by)), now)


def discard_run(store: Store, run_id: str, *, by: str | None, why: str | None, now: datetime) -> Decided:
    """Let nobody be told of what a held run saw. Raises NotFound, ConflictingContent, InvalidInput."""
    reason = check_reason(why) if why is not None else ""
    return _decide(store, run_id, Ruling(kind=RulingKind.DISCARDED, at=now, by=check_person(by), why=reason), now)


def read_run_signs(store: Store, run: Run, trusted: Run | None, rules: BreakerRules, damaged: Damaged) -> RunSigns:
    """How a run went so far. Args: trusted: an earlier weekly run whose notices were released, if there is one."""
    notices = store.notices(run_id=run.run_id, damaged=damaged)
    broken = {host_key(notice.url) for notice in notices if notice.to_state is LinkState.BROKEN}
    return read_signs(
        store.chains(run.run_id),
        broken_hosts=broken,
        silent_before=silent_hosts(store.chains(trusted.run_id)) if trusted is not None else (),
        canaries=dict(_canaries(store, run, rules)),
    )


def _canaries(store: Store, run: Run, rules: BreakerRules) -> Iterator[tuple[str, Outcome]]:
    for link_id in rules.canaries:
        job = store.get_job(run.run_id, link_id)
        if job is not None and job.outcome is not None:
            yield link_id, job.outcome


def _ruled(store: Store, run: Run, runs: list[Run], rules: BreakerRules, now: datetime, damaged: Damaged) -> Run:
    """The run with its ruling, made now if it is time for one."""
    ruling = due_ruling(store, run, runs, rules, now=now, damaged=damaged)
    if ruling is None:
        return run
    store.rule_on_run(run.run_id, ruling, replaces=None)
    return store.get_run(run.run_id) or run  # with somebody else's ruling, if that was faster


def due_ruling(
    store: Store, run: Run, runs: list[Run], rules: BreakerRules, *, now: datetime, damaged: Damaged
) -> Ruling | None:
    """The ruling that it is time for, if there is none; nothing is written.

    A run past its deadline that goes on may yet be held, and is not released before it is over.
    """
    if run.ruling is not None or not (run.state.is_over or now >= run.release_due_at):
        return None
    trusted = [r for r in runs if _is_trusted(r) and r.intended_at < run.intended_at]
    why = None
    if run.state is not RunState.MISSED:
        why = suspicion(read_run_signs(store, run, trusted[-1] if trusted else None, rules, damaged), rules)
    if why is None and not run.state.is_over:
        return None
    kind = RulingKind.HELD if why is not None else RulingKind.RELEASED
    return Ruling(kind=kind, at=now, why=why or "")


def _is_trusted(run: Run) -> bool:
    released = run.ruling is not None and run.ruling.kind is RulingKind.RELEASED
    return released and run.state is RunState.CLOSED and not is_retry(run.run_id)


def _follow(store: Store, notice: Notice, run: Run | None, rules: BreakerRules, now: datetime) -> None:
    """Bring one notice into line with the ruling on its run. One that changes meanwhile is left for the next look."""
    after = in_line(store, notice, run, rules, now)
    if after is not None:
        store.update_notice(after, replaces=notice)


def in_line(store: Store, notice: Notice, run: Run | None, rules: BreakerRules, now: datetime) -> Notice | None:
    """The notice as the ruling wants it; None if it stays as it is."""
    kind = run.ruling.kind if run is not None and run.ruling is not None else None
    is_held = notice.status is NoticeStatus.HELD
    released = replace(notice, status=NoticeStatus.PENDING, release_at=now)
    if kind is RulingKind.HELD or kind is RulingKind.DISCARDED:
        stopped = NoticeStatus.HELD if kind is RulingKind.HELD else NoticeStatus.DISCARDED
        if stopped is notice.status or not (is_held or is_waiting(notice, now)):
            return None
        return replace(notice, status=stopped, claimed_by=None, claim_until=None)
    if is_held:
        return released if kind is RulingKind.RELEASED else None
    if notice.status is not NoticeStatus.PENDING or notice.release_at is not None:
        return None
    return released if run is None or kind is not None or _may_go(store, notice, run, rules, now) else None


def _may_go(store: Store, notice: Notice, run: Run, rules: BreakerRules, now: datetime) -> bool:
    """Whether a notice of a run without a ruling may be sent: the deadline is past, or nobody wants to wait for it."""
    if now >= run.release_due_at:
        return True
    owner = store.get_owner(notice.owner) if notice.owner is not None else None
    return not rules.is_on and (owner is None or owner.delivery is Delivery.EACH)


def _decide(store: Store, run_id: str, ruling: Ruling, now: datetime) -> Decided:
    run = store.get_run(run_id)
    if run is None:
        held = [run.run_id for run in store.runs(damaged=Damage()) if run.is_held]
        raise NotFound(f"there is no run {run_id!r}; " + (f"held: {', '.join(held)}." if held else "no run is held."))
    if run.ruling is None or (run.ruling.kind is not ruling.kind and not run.is_held):
        standing = run.ruling.kind.value if run.ruling is not None else "not ruled on yet"
        raise ConflictingContent(f"the notices of run {run_id} are {standing}; only held ones can be decided about.")
    damage = Damage()
    notices = store.notices(run_id=run_id, unsettled_only=True, damaged=damage)
    concerned = [notice for notice in notices if notice.status is NoticeStatus.HELD]
    if run.is_held and not store.rule_on_run(run_id, ruling, replaces=run.ruling):
        raise ConflictingContent(f"somebody else decided about run {run_id} meanwhile; look at it again.")
    decided = store.get_run(run_id) or run
    each_alone(
        store.notices(run_id=run_id, unsettled_only=True, damaged=damage),
        lambda notice: _follow(store, notice, decided, BreakerRules(), now),
        damage,
    )
    return Decided(run=decided, notices=len(concerned))
