"""What other processes do to a store in the concurrency and crash tests, and what has to hold whatever they did."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from random import Random

from linkwatch_pipeline.domain.errors import StaleWrite
from linkwatch_pipeline.domain.hosts import Admitted, Departure
from linkwatch_pipeline.domain.links import AllocationSlot, Link, LinkState, Owner
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.recording import RecordKind
from linkwatch_pipeline.domain.runs import JobRecord, JobStatus
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline_tests.builders import RUN_ID, a_link, a_run, after, an_observation, dispatched

OpenStore = Callable[[], Store]
LINKS = [a_link(f"link-{n}", f"https://host-{n % 2}.example.com/{n}") for n in range(6)]
STATUSES = [200, 404, 404, 200, 429, 404, None, 200]  # of every link, sequence by sequence
_PATIENCE_SECONDS = 100  # to start four processes; less than a test may take, so that none stays behind
_together: Barrier | None = None


def start_together(barrier: Barrier) -> None:
    """Give a worker process the barrier at which all wait for each other."""
    global _together
    _together = barrier


@dataclass(frozen=True)
class Won:
    """What one process was told was its own doing."""

    registered: list[str]
    applied: list[str]
    transitions: list[str]
    allocated: list[int]
    jobs_ended: list[str]
    claimed: list[str]
    visits: int


def compete(open_store: OpenStore, name: str, witness: Path) -> Won:
    """Do everything that the other processes do too, at the same time; what was won against them."""
    assert _together is not None
    _together.wait(_PATIENCE_SECONDS)
    store = open_store()
    rng = Random(name)
    try:
        registered = [link.id for link in rng.sample(LINKS, len(LINKS)) if _register(store, link)]
        _together.wait(_PATIENCE_SECONDS)
        applied, transitions = _record_by_hand(store, rng)
        _together.wait(_PATIENCE_SECONDS)
        jobs = dispatched(store, LINKS)
        ended = [job.job_id for job in rng.sample(jobs, len(jobs)) if _commit_job(store, job)]
        return Won(
            registered=registered,
            applied=applied,
            transitions=transitions,
            allocated=[a.sequence for a in store.allocate(LINKS, AllocationSlot.WEEKLY, RUN_ID) if a],
            jobs_ended=ended,
            claimed=[n.transition_id for n in store.notices() if _claim(store, n.transition_id, name)],
            visits=_visit(store, name, witness),
        )
    finally:
        store.close()


def _register(store: Store, link: Link) -> bool:
    try:
        store.save_link(link, replaces=None)
    except StaleWrite:
        return False
    return True


def _record_by_hand(store: Store, rng: Random) -> tuple[list[str], list[str]]:
    """Each link's looks in order, the links interleaved by chance: whoever is first applies, the others repeat."""
    applied, transitions = [], []
    turns = [link for link in LINKS for _ in STATUSES]
    rng.shuffle(turns)
    done = dict.fromkeys((link.id for link in LINKS), 0)
    for link in turns:
        sequence = done[link.id]
        done[link.id] += 1
        look = an_observation(link, STATUSES[sequence], sequence=sequence)
        result = store.record(look, default_confirm=1, now=look.observed_at)
        if result.kind is RecordKind.APPLIED:
            applied.append(look.job_id)
        else:
            assert result.kind is RecordKind.DUPLICATE, result.kind
        if result.transition is not None:
            transitions.append(result.transition.id)
    return applied, transitions


def _commit_job(store: Store, job: JobRecord) -> bool:
    link = next(link for link in LINKS if link.id == job.link_id)
    return store.record(an_observation(link, 404, job=job), default_confirm=1, now=after(hours=1)).kind in (
        RecordKind.APPLIED,
        RecordKind.HISTORY,
    )


def _claim(store: Store, transition_id: str, name: str) -> bool:
    notice = store.get_notice(transition_id)
    assert notice is not None
    if notice.release_at is None:
        store.update_notice(replace(notice, release_at=after(hours=1)), replaces=notice)
    return store.claim_notice(transition_id, by=name, now=after(hours=2)) is not None


def _visit(store: Store, name: str, witness: Path) -> int:
    """Try to visit one host again and again; the file shows that nobody else is in."""
    visits = 0
    now = after(hours=1)
    for attempt in range(60):
        token = f"{name}/{attempt}"
        entered = store.acquire_host("one", token=token, job_id="0:link-0", now=now, skew=timedelta(0))
        if isinstance(entered, Admitted):
            os.close(os.open(witness, os.O_CREAT | os.O_EXCL))
            visits += 1
            witness.unlink()
            left = store.release_host(
                "one", token=token, departure=Departure(at=now, answered=True), cooldown=timedelta(0), chance=Random(0)
            )
            assert left is not None
    return visits


CRASH_LINKS = [a_link(f"link-{n:03}", f"https://host-{n % 3}.example.com/{n}") for n in range(60)]


def observe_week_after_week(open_store: OpenStore, reports: Connection) -> None:
    """Dispatch and observe one week after the other for ever, reporting every committed job id. Meant to be killed."""
    store = open_store()
    reports.send("ready")
    reports.recv()
    begin = max(len(list(store.runs())) - 1, 0)
    for week in count(begin):
        monday = after(days=7 * week)
        for job in dispatched(store, CRASH_LINKS, run=a_run(monday)):
            stored = store.get_job(job.run_id, job.link_id)
            if stored is not None and stored.status is JobStatus.PENDING:
                _observe(store, stored, monday, 404 if week % 2 == 0 else 200)
                reports.send(job.job_id)


def _observe(store: Store, job: JobRecord, monday: datetime, status: int) -> None:
    token = job.job_id
    store.acquire_host(job.host, token=token, job_id=job.job_id, now=monday, skew=timedelta(0))
    departure = Departure(at=monday, answered=True)
    store.release_host(job.host, token=token, departure=departure, cooldown=timedelta(0), chance=Random(0))
    link = store.get_link(job.link_id)
    assert link is not None
    store.record(an_observation(link, status, job=job), default_confirm=1, now=monday)


def assert_records_agree(store: Store) -> None:
    """One observation means one job done, one count, and one transition and notice if the state changed."""
    observations = list(store.observations())
    runs = [run.run_id for run in store.runs()]
    jobs = [job for run_id in runs for job in store.jobs(run_id)]
    done = {job.job_id for job in jobs if job.status is JobStatus.DONE}
    assert done == {look.job_id for look in observations if look.run_id is not None}
    for run_id in runs:
        for chain in store.chains(run_id):
            own = [job for job in jobs if (job.run_id, job.host) == (run_id, chain.host)]
            pending = [job for job in own if job.status is JobStatus.PENDING]
            assert (chain.total, chain.remaining) == (len(own), len(pending))
            assert sum(chain.counts.values()) == len(own) - len(pending)
    changes = []
    for link in store.links():
        state, version, last = LinkState.UNKNOWN, 0, -1
        for look in (look for look in observations if look.link_id == link.id):
            last = look.sequence
            told = {Outcome.REACHABLE: LinkState.REACHABLE, Outcome.BROKEN: LinkState.BROKEN}.get(look.outcome, state)
            if told is not state:
                version += 1
                if (state, told) != (LinkState.UNKNOWN, LinkState.REACHABLE):
                    changes.append(f"{link.id}:{version}")
            state = told
        assert (link.state, link.version, link.last_sequence) == (state, version, last)
    assert sorted(t.id for t in store.transitions()) == sorted(changes)
    assert sorted(n.transition_id for n in store.notices()) == sorted(changes)


class _EndsTheProcess(list[tuple[Link, Link | None]]):
    """Links that end the process when the last of them is asked for."""

    def __iter__(self) -> Iterator[tuple[Link, Link | None]]:
        yield from list(super().__iter__())[:-1]
        os._exit(MIDDLE)


MIDDLE = 77
NEW_OWNER = Owner(team="new", address="new@example.com")


def die_while_writing_the_registry(open_store: OpenStore) -> None:
    """Write an owner and all links, and end in the middle of it."""
    store = open_store()
    store.save_registry(owners=[NEW_OWNER], links=_EndsTheProcess((link, None) for link in CRASH_LINKS))
