"""Look at what the store knows, without changing anything: a link's history, or a run with its hosts (SPEC 8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.coverage import completeness, coverage
from linkwatch_pipeline.domain.errors import InvalidInput, NotFound
from linkwatch_pipeline.domain.links import Link, check_link_id
from linkwatch_pipeline.domain.mutes import Mute
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.runs import HostChain, Run, RunCounts, check_run_id
from linkwatch_pipeline.domain.transitions import Transition
from linkwatch_pipeline.ports import Damaged, Store
from linkwatch_pipeline.use_cases.close_run import run_counts
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.mute import active_mutes


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All records of one link, or of all of them, in the store's orders; `mutes` holds those that are muted now."""

    links: tuple[Link, ...]
    observations: tuple[Observation, ...]
    transitions: tuple[Transition, ...]
    notices: tuple[Notice, ...]
    mutes: Mapping[str, Mute]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """One host in one run. `next_due_at` is when its head may be visited; `due_for` how long that has been so.

    Both are None when nothing is left. `active_requests` counts visits going on now, of whatever run.
    """

    host: str
    jobs: int
    remaining: int
    outcomes: Mapping[str, int]
    active_requests: int
    next_due_at: datetime | None
    due_for: timedelta | None
    throttled_in_a_row: int
    first_observed_at: datetime | None
    last_observed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run: its summary, its hosts in host order, and its observations in the order in which they began."""

    run: Run
    counts: RunCounts
    completeness: float | None
    coverage: float | None
    hosts: tuple[HostView, ...]
    transcript: tuple[tuple[str, Observation], ...]  # with the host that was visited


def inspect_links(
    store: Store, *, link_id: str | None = None, now: datetime, damaged: Damaged | None = None
) -> History:
    """Everything about one link, or about all. Raises InvalidInput, NotFound.

    Args: damaged: as in `ports.damaged`.
    """
    if link_id is None:
        links = tuple(store.links(damaged=damaged))
    else:
        link = store.get_link(check_link_id(link_id))
        if link is None:
            raise NotFound(f"there is no link {link_id!r}; 'linkwatch links' shows them.")
        links = (link,)
    return History(
        links=links,
        observations=tuple(store.observations(link_id=link_id, damaged=damaged)),
        transitions=tuple(store.transitions(link_id=link_id, damaged=damaged)),
        notices=tuple(store.notices(link_id=link_id, damaged=damaged)),
        mutes=active_mutes(store, links, now=now, damaged=damaged),
    )


def inspect_run(store: Store, *, run_id: str, now: datetime, damaged: Damaged | None = None) -> RunView:
    """One run as it stands. Raises InvalidInput, NotFound.

    Args: damaged: as in `ports.damaged`, of observations; the run, its jobs and its chains have to be whole.
    """
    try:
        check_run_id(run_id)
    except ValueError:
        raise InvalidInput("run", f"{run_id!r} is not a run id", "Give one such as 2026-09-28T09:00:00Z.") from None
    run = store.get_run(run_id)
    if run is None:
        known = [run.run_id for run in store.runs(damaged=Damage())]
        raise NotFound(
            f"there is no run {run_id!r}; " + (f"the latest is {known[-1]}." if known else "none was begun.")
        )
    counts = run_counts(store, run)
    hosts = {job.link_id: job.host for job in store.jobs(run_id)}
    observed = sorted(store.observations(run_id=run_id, damaged=damaged), key=lambda o: (o.started_at, o.link_id))
    return RunView(
        run=run,
        counts=counts,
        completeness=completeness(counts),
        coverage=coverage(counts),
        hosts=tuple(_hosts(store, run, now)),
        transcript=tuple((hosts.get(o.link_id, ""), o) for o in observed),
    )


def _hosts(store: Store, run: Run, now: datetime) -> Iterator[HostView]:
    for chain in store.chains(run.run_id):
        host = store.get_host(chain.host)
        held = host is not None and host.lease_until is not None and now < host.lease_until
        due_at = _due_at(chain, host.next_allowed_at if host is not None else None)
        yield HostView(
            host=chain.host,
            jobs=chain.total,
            remaining=chain.remaining,
            outcomes=chain.counts,
            active_requests=1 if held else 0,
            next_due_at=due_at,
            due_for=max(now - due_at, timedelta(0)) if due_at is not None else None,
            throttled_in_a_row=chain.streak,
            first_observed_at=chain.first_observed_at,
            last_observed_at=chain.last_observed_at,
        )


def _due_at(chain: HostChain, next_allowed_at: datetime | None) -> datetime | None:
    if not chain.remaining:
        return None
    return max(chain.head_ready_at, next_allowed_at or chain.head_ready_at)
