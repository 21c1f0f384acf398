"""Dispatch: every job of a run exists, in a chain per host, and every chain's head is on its way (ARCHITECTURE 2).

Idempotent and resumable at every step; any number of dispatchers may work on one run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import NamedTuple, TypeVar

from linkwatch_pipeline.domain.allowances import MAX_VISITS, NO_ALLOWANCES, Allowances, host_of, slot_for, slots_of
from linkwatch_pipeline.domain.errors import DamagedRecord
from linkwatch_pipeline.domain.hosts import LONGEST_DEFERRAL
from linkwatch_pipeline.domain.links import AllocationSlot, Link
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.planning import Pace, planned_starts
from linkwatch_pipeline.domain.runs import HostChain, JobRecord, JobStatus, Run, RunState
from linkwatch_pipeline.domain.sequences import MAX_SEQUENCE, has_next_sequence, no_sequence_left
from linkwatch_pipeline.ports import Damaged, Store
from linkwatch_pipeline.use_cases.damage import Damage

# How a job gets on its way: the job, and how long from now it becomes visible.
SendHead = Callable[[JobRecord, timedelta], Awaitable[None]]

# Whether the caller's own time lets it begin with another host.
HasTime = Callable[[], bool]

# Jobs. What is put again after a crash is there already, so the cursor need not be saved with every host.
_SAVE_PROGRESS_EVERY = 25
_TOGETHER = 500  # jobs of one host that are allocated or put together
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A link that belongs to the run, and the first job of a retry."""

    link: Link
    retry_of: str | None = None


class _Planned(NamedTuple):
    """What the job of a link is to say."""

    sequence: int
    config_version: int
    retry_of: str | None


def always() -> bool:
    """What has all the time it needs."""
    return True


def dispatch_run(
    store: Store, run: Run, *, now: datetime, allowances: Allowances = NO_ALLOWANCES, has_time: HasTime = always
) -> Run:
    """Create what is missing of the run's jobs and chains; the run, open unless it is over.

    Args:
        allowances: the same for all dispatchers of a store. They may change between two attempts of one dispatcher.
        has_time: asked before each host; where it says no, the run is left dispatching, for the next dispatcher.

    A link that is damaged now, or for which no sequence is left, is not part of the run.
    """
    if run.state is not RunState.DISPATCHING:
        return run
    slot = AllocationSlot.WEEKLY if run.retry_of is None else AllocationSlot.RETRY
    dispatched = saved = run.dispatched
    resumed = next(iter(store.jobs(run.run_id)), None) is not None
    done: str | None = None
    for host, members in _members_by_host(store, run, slot):
        if not has_time():
            return _left_dispatching(store, run, done, dispatched)
        visits, seen = allowances.get(host, 1), MAX_VISITS if resumed else 1
        dispatched += dispatch_host(store, run, slot, members, now, host=host, visits=visits, seen=seen)
        if dispatched >= saved + _SAVE_PROGRESS_EVERY:
            store.save_dispatch_progress(run.run_id, cursor=host, dispatched=dispatched)
            saved = dispatched
        done = host
    expected = sum(chain.total for chain in store.chains(run.run_id))
    return store.finish_dispatch(run.run_id, expected=expected, at=now)


def _left_dispatching(store: Store, run: Run, done: str | None, dispatched: int) -> Run:
    if done is None:
        return run
    store.save_dispatch_progress(run.run_id, cursor=done, dispatched=dispatched)
    return store.get_run(run.run_id) or run


def due_heads(store: Store, run_id: str, *, now: datetime) -> Iterator[tuple[JobRecord, timedelta]]:
    """The head of every chain that has work left, with how long from now its host may be visited."""
    for chain in store.chains(run_id):
        due = due_head(store, chain, now=now)
        if due is not None:
            yield due


def planned_heads(store: Store, run: Run, *, pace: Pace, now: datetime) -> Iterator[tuple[JobRecord, timedelta]]:
    """The first heads whose planned start a message's delay reaches, claimed for sending by the caller.

    Calling it each minute gives every chain its start; a claim that is not followed by a message is lost for as long
    as any message is.
    """
    chains = list(store.chains(run.run_id))
    if run.dispatched_at is None or not any(chain.awaits_start for chain in chains):
        return
    starts = planned_starts({chain.host: chain.total for chain in chains}, pace)
    damage = Damage()
    for chain in chains:
        starts_at = max(run.dispatched_at + starts.get(chain.host, timedelta(0)), now)
        if not chain.awaits_start or starts_at - now > LONGEST_DEFERRAL:
            continue
        if not store.claim_start(chain, ready_at=starts_at, now=now):
            continue
        try:
            due = due_head(store, replace(chain, head_ready_at=starts_at), now=now)
        except DamagedRecord as error:
            damage(error)
            continue
        if due is not None:
            yield due


def due_head(store: Store, chain: HostChain, *, now: datetime) -> tuple[JobRecord, timedelta] | None:
    """One chain's head and how long from now its host may be visited; None if nothing is left of it."""
    job = store.get_job(chain.run_id, chain.head) if chain.head is not None else None
    if job is None:
        return None
    host = store.get_host(chain.host)
    allowed_at = host.next_allowed_at if host is not None and host.next_allowed_at is not None else now
    wait = max(chain.head_ready_at - now, allowed_at - now, timedelta(0))
    return job, min(wait, LONGEST_DEFERRAL)


def _members_by_host(store: Store, run: Run, slot: AllocationSlot) -> Iterator[tuple[str, Iterable[Member]]]:
    members = _weekly_members(store, run, slot) if run.retry_of is None else _retry_members(store, run, run.retry_of)
    return groupby(members, key=lambda member: member.link.host)


def _weekly_members(store: Store, run: Run, slot: AllocationSlot) -> Iterator[Member]:
    damage = Damage()
    for link in store.links_by_host(after_host=run.cursor, brief=True, damaged=damage):
        held = link.allocations.get(slot)
        if held is not None and held.run_id == run.run_id:
            # Allocated by an earlier attempt: it belongs to the run, whatever happened to it since.
            if held.host == link.host:
                yield Member(link=link)
        elif link.retired_at is None and link.active_since <= run.started_at and _is_checkable(link, damage):
            yield Member(link=link)


def _retry_members(store: Store, run: Run, parent_id: str) -> Iterator[Member]:
    """Those of the parent's jobs that got no verdict from their host. The parent is over, so they are fixed."""
    for job in store.jobs(parent_id):
        if run.cursor is not None and host_of(job.host) <= run.cursor:
            continue
        link = _link_unless_damaged(store, job.link_id) if needs_retry(job) else None
        if link is not None and link.host == host_of(job.host) and link.config_version == job.config_version:
            yield Member(link=link, retry_of=job.retry_of or job.job_id)


def _link_unless_damaged(store: Store, link_id: str) -> Link | None:
    try:
        return store.get_link(link_id, brief=True)
    except DamagedRecord as error:
        Damage()(error)
        return None


def _is_checkable(link: Link, damaged: Damaged) -> bool:
    if has_next_sequence(link):
        return True
    damaged(no_sequence_left(link))
    return False


def needs_retry(job: JobRecord) -> bool:
    """Whether a terminal job is to be looked at again in a retry run."""
    return job.outcome is Outcome.THROTTLED or job.status is JobStatus.EXPIRED


def dispatch_host(
    store: Store,
    run: Run,
    slot: AllocationSlot,
    members: Iterable[Member],
    now: datetime,
    *,
    host: str,
    visits: int = 1,
    seen: int = 1,
) -> int:
    """Make the host's chains that are not there, one for each visit at once; how many jobs they have.

    A chain that is there gets no further members. `seen` is how many chains an earlier attempt may have begun.
    Of a host with very many links only their ids and numbers are held at once.
    """
    chains = {name: store.get_chain(run.run_id, name) for name in slots_of(host, max(visits, seen))}
    total = sum(chain.total for chain in chains.values() if chain is not None)
    if len(chains) == 1 and total:
        return total
    missing = dict(_allocated(store, run, slot, members))
    rows = {job.link_id: job.host for name in chains for job in store.jobs(run.run_id, host=name)}
    for link_id in rows:
        missing.pop(link_id, None)
    begun = {name for name, chain in chains.items() if chain is not None}
    free = [name for name in slots_of(host, MAX_VISITS + 1) if name not in begun]
    slots = {link_id: slot_for(link_id, host, visits) for link_id in missing}
    # A slot that an earlier attempt finished with another allowance takes nobody more.
    places = rows | {link_id: name if name not in begun else free[0] for link_id, name in slots.items()}
    for name in free:
        order = sorted(link_id for link_id, place in places.items() if place == name)
        if order:
            _put_chain(store, run, name, order, missing, now)
            total += len(order)
    return total


def _allocated(
    store: Store, run: Run, slot: AllocationSlot, members: Iterable[Member]
) -> Iterator[tuple[str, _Planned]]:
    """The members that have a sequence in this run, with what their jobs are to say."""
    for some in _in_parts(members):
        allocations = store.allocate([member.link for member in some], slot, run.run_id)
        for member, allocation in zip(some, allocations, strict=True):
            # Earlier versions promised sequences that no store keeps.
            if allocation is not None and allocation.sequence <= MAX_SEQUENCE:
                yield member.link.id, _Planned(allocation.sequence, allocation.config_version, member.retry_of)


def _put_chain(
    store: Store, run: Run, name: str, order: list[str], missing: Mapping[str, _Planned], now: datetime
) -> None:
    # Last first: whatever a crash leaves, the `next` of every job that exists names a job that exists.
    followed = zip(reversed(order), (None, *reversed(order)), strict=False)
    jobs = (
        _job(run, name, link_id, missing[link_id], following) for link_id, following in followed if link_id in missing
    )
    for some in _in_parts(jobs):
        store.put_jobs(some)
    total = len(order)
    store.put_chain(
        HostChain(run_id=run.run_id, host=name, head=order[0], head_ready_at=now, remaining=total, total=total)
    )


def _job(run: Run, name: str, link_id: str, planned: _Planned, following: str | None) -> JobRecord:
    return JobRecord(
        run_id=run.run_id,
        link_id=link_id,
        host=name,
        sequence=planned.sequence,
        config_version=planned.config_version,
        next=following,
        retry_of=planned.retry_of,
    )


def _in_parts(items: Iterable[T]) -> Iterator[list[T]]:
    waiting = iter(items)
    while some := list(islice(waiting, _TOGETHER)):
        yield some
