"""Dispatch: every job of a run exists, in a chain per host, and every chain's head is on its way (ARCHITECTURE 2).

Idempotent and resumable at every step; any number of dispatchers may work on one run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from linkwatch_pipeline.domain.allowances import MAX_VISITS, NO_ALLOWANCES, Allowances, host_of, slot_for, slots_of
from linkwatch_pipeline.domain.hosts import LONGEST_DEFERRAL
from linkwatch_pipeline.domain.links import Allocation, AllocationSlot, Link
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.planning import Pace, planned_starts
from linkwatch_pipeline.domain.runs import HostChain, JobRecord, JobStatus, Run, RunState
from linkwatch_pipeline.ports import Store

# How a job gets on its way: the job, and how long from now it becomes visible.
SendHead = Callable[[JobRecord, timedelta], Awaitable[None]]

# Jobs. What is put again after a crash is there already, so the cursor need not be saved with every host.
_SAVE_PROGRESS_EVERY = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A link that belongs to the run, and the first job of a retry."""

    link: Link
    retry_of: str | None = None


def dispatch_run(store: Store, run: Run, *, now: datetime, allowances: Allowances = NO_ALLOWANCES) -> Run:
    """Create what is missing of the run's jobs and chains; the run, open unless it is over.

    Args: allowances: the same for all dispatchers of a store. They may change between two attempts of one dispatcher.
    """
    if run.state is not RunState.DISPATCHING:
        return run
    slot = AllocationSlot.WEEKLY if run.retry_of is None else AllocationSlot.RETRY
    dispatched = saved = run.dispatched
    resumed = next(iter(store.jobs(run.run_id)), None) is not None
    for host, members in _members_by_host(store, run, slot):
        visits, seen = allowances.get(host, 1), MAX_VISITS if resumed else 1
        dispatched += dispatch_host(store, run, slot, list(members), now, host=host, visits=visits, seen=seen)
        if dispatched >= saved + _SAVE_PROGRESS_EVERY:
            store.save_dispatch_progress(run.run_id, cursor=host, dispatched=dispatched)
            saved = dispatched
    expected = sum(chain.total for chain in store.chains(run.run_id))
    return store.finish_dispatch(run.run_id, expected=expected, at=now)


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
    for chain in chains:
        starts_at = max(run.dispatched_at + starts.get(chain.host, timedelta(0)), now)
        if not chain.awaits_start or starts_at - now > LONGEST_DEFERRAL:
            continue
        if store.claim_start(chain, ready_at=starts_at, now=now):
            due = due_head(store, replace(chain, head_ready_at=starts_at), now=now)
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
    for link in store.links_by_host(after_host=run.cursor, brief=True):
        held = link.allocations.get(slot)
        if held is not None and held.run_id == run.run_id:
            # Allocated by an earlier attempt: it belongs to the run, whatever happened to it since.
            if held.host == link.host:
                yield Member(link=link)
        elif link.retired_at is None and link.active_since <= run.started_at:
            yield Member(link=link)


def _retry_members(store: Store, run: Run, parent_id: str) -> Iterator[Member]:
    """Those of the parent's jobs that got no verdict from their host. The parent is over, so they are fixed."""
    for job in store.jobs(parent_id):
        if run.cursor is not None and host_of(job.host) <= run.cursor:
            continue
        link = store.get_link(job.link_id, brief=True) if needs_retry(job) else None
        if link is not None and link.host == host_of(job.host) and link.config_version == job.config_version:
            yield Member(link=link, retry_of=job.retry_of or job.job_id)


def needs_retry(job: JobRecord) -> bool:
    """Whether a terminal job is to be looked at again in a retry run."""
    return job.outcome is Outcome.THROTTLED or job.status is JobStatus.EXPIRED


def dispatch_host(
    store: Store,
    run: Run,
    slot: AllocationSlot,
    members: Sequence[Member],
    now: datetime,
    *,
    host: str,
    visits: int = 1,
    seen: int = 1,
) -> int:
    """Make the host's chains that are not there, one for each visit at once; how many jobs they have.

    A chain that is there gets no further members. `seen` is how many chains an earlier attempt may have begun.
    """
    chains = {name: store.get_chain(run.run_id, name) for name in slots_of(host, max(visits, seen))}
    total = sum(chain.total for chain in chains.values() if chain is not None)
    if len(chains) == 1 and total:
        return total
    allocations = store.allocate([member.link for member in members], slot, run.run_id)
    rows = {job.link_id: job.host for name in chains for job in store.jobs(run.run_id, host=name)}
    missing = {
        member.link.id: (member, allocation)
        for member, allocation in zip(members, allocations, strict=True)
        if allocation is not None and member.link.id not in rows
    }
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


def _put_chain(
    store: Store, run: Run, name: str, order: list[str], missing: dict[str, tuple[Member, Allocation]], now: datetime
) -> None:
    # Last first: whatever a crash leaves, the `next` of every job that exists names a job that exists.
    store.put_jobs(
        [
            _job(run, name, *missing[link_id], following=order[i + 1] if i + 1 < len(order) else None)
            for i, link_id in reversed(list(enumerate(order)))
            if link_id in missing
        ]
    )
    total = len(order)
    store.put_chain(
        HostChain(run_id=run.run_id, host=name, head=order[0], head_ready_at=now, remaining=total, total=total)
    )


def _job(run: Run, name: str, member: Member, allocation: Allocation, following: str | None) -> JobRecord:
    return JobRecord(
        run_id=run.run_id,
        link_id=member.link.id,
        host=name,
        sequence=allocation.sequence,
        config_version=allocation.config_version,
        next=following,
        retry_of=member.retry_of,
    )
