"""Observe a week in this process: dispatch its run, work through the hosts in batches, close it (ARCHITECTURE 2a).

A week is one weekly run and, if hosts asked for pauses, up to three retry runs after it. Each call works on the first
of them that is not over, so calling again resumes, goes on to the retry run, and in the end changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from linkwatch_pipeline.domain.allowances import NO_ALLOWANCES, Allowances
from linkwatch_pipeline.domain.runs import HostChain, Run, retry_run_id, weekly_run_id, work_order
from linkwatch_pipeline.ports import Queue, Store
from linkwatch_pipeline.use_cases.close_run import close_if_over
from linkwatch_pipeline.use_cases.dispatch import dispatch_run
from linkwatch_pipeline.use_cases.host_window import MOST_HELD
from linkwatch_pipeline.use_cases.start_week import start_week
from linkwatch_pipeline.use_cases.visit import CheckParts
from linkwatch_pipeline.use_cases.work import LocalOrder, LocalWork


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBatch:
    """Some hosts of a run, for people to follow; how they are grouped never changes politeness or pace."""

    number: int
    hosts: tuple[str, ...]


def begin_week(store: Store, intended_at: datetime, *, now: datetime, allowances: Allowances = NO_ALLOWANCES) -> Run:
    """The week's current run, dispatched: the weekly one, or the first retry run that is not over.

    A run whose time is up is closed instead; a run that is over is returned as it is.
    """
    run = current_run(store, start_week(store, intended_at, now=now))
    if run.state.is_over:
        return run
    if now >= run.expires_at:
        return close_if_over(store, run, now=now)
    return dispatch_run(store, run, now=now, allowances=allowances)


def current_run(store: Store, weekly: Run) -> Run:
    """The first run of the week that is not over; the last one if all are."""
    runs = week_runs(store, weekly)
    return next((run for run in runs if not run.state.is_over), runs[-1])


def week_runs(store: Store, weekly: Run) -> Sequence[Run]:
    """The weekly run and its retry runs so far, in order."""
    runs = [weekly]
    while (following := retry_run_id(runs[-1].run_id)) is not None:
        retry = store.get_run(following)
        if retry is None:
            break
        runs.append(retry)
    return runs


def group_hosts(chains: Iterable[HostChain], batches: int) -> list[HostBatch]:
    """The hosts with work left in at most `batches` groups, those with the longest chains first."""
    hosts = [host for _, host in sorted(work_order(chain) for chain in chains if chain.remaining)]
    size = -(-len(hosts) // batches) or 1
    groups = [tuple(hosts[i : i + size]) for i in range(0, len(hosts), size)]
    return [HostBatch(number=number, hosts=group) for number, group in enumerate(groups, start=1)]


async def observe_hosts(
    parts: CheckParts,
    run: Run,
    hosts: Iterable[str] | None,
    *,
    concurrency: int,
    make_queue: Callable[[LocalOrder], Queue],
    most_held: int = MOST_HELD,
) -> None:
    """Work until these hosts (all, if None) have nothing left in the run, or the run's time is up.

    Args: most_held: how many hosts are held in memory, give or take.
    """
    work = LocalWork(
        parts=parts,
        run_id=run.run_id,
        expires_at=run.expires_at,
        concurrency=concurrency,
        make_queue=make_queue,
        hosts=frozenset(hosts) if hosts is not None else None,
        most_held=most_held,
    )
    await work.work_on()


def finish_run(store: Store, run_id: str, *, now: datetime) -> Run:
    """The run, closed if it is over."""
    run = store.get_run(run_id)
    if run is None:
        raise LookupError(f"run {run_id} is not in the store")
    return close_if_over(store, run, now=now)


def latest_moment(store: Store, intended_at: datetime) -> datetime:
    """The latest moment that the store knows of a week, the intended time if it knows none."""
    weekly = store.get_run(weekly_run_id(intended_at))
    moments = [intended_at]
    for run in week_runs(store, weekly) if weekly is not None else ():
        moments += [run.started_at, run.dispatched_at or intended_at, run.closed_at or intended_at]
        moments += [chain.last_observed_at or intended_at for chain in store.chains(run.run_id)]
    return max(moments)
