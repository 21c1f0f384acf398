"""The tick, each minute while a run is open: lost messages are sent again, chains mended, finished runs closed.

The tick never abandons a job: what is lost is sent again, with growing patience (ARCHITECTURE 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.allowances import NO_ALLOWANCES, Allowances
from linkwatch_pipeline.domain.errors import DamagedRecord
from linkwatch_pipeline.domain.planning import Pace
from linkwatch_pipeline.domain.runs import HostChain, JobRecord, Run, RunState, resend_due_at
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.close_run import close_if_over
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.dispatch import HasTime, always, dispatch_run, due_head, due_heads, planned_heads


def tick(
    store: Store,
    *,
    now: datetime,
    allowances: Allowances = NO_ALLOWANCES,
    pace: Pace | None = None,
    has_time: HasTime = always,
) -> Iterator[tuple[JobRecord, timedelta]]:
    """See to every open run; yields the jobs that have to be sent, with their delay.

    A retry run that a closing run left behind is dispatched by the next tick. A run of which a record is damaged is
    left open, and the others are seen to.

    Args:
        pace: how links are visited, for a queue whose heads have planned starts; None sends every head at once.
        has_time: whether the dispatch of a run may go on to another host.
    """
    damage = Damage()
    for run in list(store.runs(open_only=True, damaged=damage)):
        try:
            yield from _see_to(store, run, now=now, allowances=allowances, pace=pace, has_time=has_time)
        except DamagedRecord as error:
            damage(error)


def _see_to(
    store: Store, run: Run, *, now: datetime, allowances: Allowances, pace: Pace | None, has_time: HasTime
) -> Iterator[tuple[JobRecord, timedelta]]:
    if run.state is RunState.DISPATCHING and now < run.expires_at:
        opened = dispatch_run(store, run, now=now, allowances=allowances, has_time=has_time)
        yield from planned_heads(store, opened, pace=pace, now=now) if pace else due_heads(store, run.run_id, now=now)
        return
    if pace is not None:
        yield from planned_heads(store, run, pace=pace, now=now)
    yield from lost_heads(store, run, now=now, planned=pace is not None)
    close_if_over(store, run, now=now)


def lost_heads(
    store: Store, run: Run, *, now: datetime, planned: bool = False
) -> Iterator[tuple[JobRecord, timedelta]]:
    """The heads whose message must have been lost, claimed for sending by the caller.

    Args: planned: whether heads have planned starts: one that still waits for its own is not lost.
    """
    chains = store.chains(run.run_id)
    yield from mended_heads(store, (chain for chain in chains if not (planned and chain.awaits_start)), now=now)


def mended_heads(store: Store, chains: Iterable[HostChain], *, now: datetime) -> Iterator[tuple[JobRecord, timedelta]]:
    """Those of these chains' heads whose message must have been lost, claimed for sending by the caller."""
    damage = Damage()
    for chain in chains:
        try:
            due = _lost_head(store, chain, now)
        except DamagedRecord as error:
            damage(error)
            continue
        if due is not None:
            yield due


def _lost_head(store: Store, chain: HostChain, now: datetime) -> tuple[JobRecord, timedelta] | None:
    mended = _mended(store, chain, now)
    return due_head(store, mended, now=now) if mended is not None else None


def _mended(store: Store, chain: HostChain, now: datetime) -> HostChain | None:
    if not chain.remaining:
        return None
    if chain.head is None:
        return store.rechain(chain.run_id, chain.host, now=now)
    host = store.get_host(chain.host)
    next_allowed_at = host.next_allowed_at if host is not None else None
    lease_until = host.lease_until if host is not None else None
    if now < resend_due_at(chain, next_allowed_at, lease_until):
        return None
    return chain if store.resend_head(chain, now=now) else None
