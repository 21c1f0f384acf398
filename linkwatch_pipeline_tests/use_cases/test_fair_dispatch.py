"""Hosts wait for nobody but themselves, whatever dies or is lost (SPEC 8): the real engine in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from linkwatch_pipeline.adapters.queue.memory import MemoryQueue
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.hosts import Admitted, Departure
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import CheckJob, JobRecord, JobStatus, Run, RunState
from linkwatch_pipeline.ports import Queue, Receipt, StrayLetter
from linkwatch_pipeline.use_cases.check import check_job
from linkwatch_pipeline.use_cases.dispatch import dispatch_run, due_heads
from linkwatch_pipeline.use_cases.observe_week import begin_week, observe_hosts
from linkwatch_pipeline_tests.builders import a_link, a_run
from linkwatch_pipeline_tests.simulation.engine import MONDAY, Engine
from linkwatch_pipeline_tests.simulation.scripted_internet import Answer, Script
from linkwatch_pipeline_tests.virtual_clock import run_virtual

SECOND = timedelta(seconds=1)
Build = Callable[..., Engine]


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Build]:
    """Makes engines with a store file each; the same `name` opens the same file again."""
    engines: list[Engine] = []

    def make(script: Script, *, name: str = "home", now: datetime = MONDAY, **options: int) -> Engine:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        engine = Engine(folder, script, **options)
        engine.clock.advance(now - MONDAY)
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        engine.store.close()


def host_a_says_429(url: str, asked: int) -> Answer:
    return Answer(status=429) if "//a.example" in url else Answer(takes=2 * SECOND)


def on(host: str, count: int) -> list[str]:
    return [f"http://{host}/{n}" for n in range(count)]


def register_all(engine: Engine, urls: Sequence[str]) -> None:
    """All in one transaction: ten thousand single ones would take longer than the run."""
    engine.store.save_registry(links=[(a_link(f"link-{n:05d}", url), None) for n, url in enumerate(urls)])


def visits_of_b(engine: Engine) -> list[tuple[str, timedelta, timedelta]]:
    return [(v.url, v.started_at - MONDAY, v.ended_at - MONDAY) for v in engine.internet.visits("b.example")]


@pytest.mark.parametrize("concurrency", [2, 20])
def test_ten_links_are_done_as_if_alone_beside_ten_thousand_on_a_host_that_says_429(
    build: Build, concurrency: int
) -> None:
    alone = build(host_a_says_429, name="alone", concurrency=concurrency)
    register_all(alone, on("b.example", 10))
    alone.observe()
    beside = build(host_a_says_429, name="beside", concurrency=concurrency)
    # A comes first in the registry, in dispatch and by work left.
    register_all(beside, [*on("a.example", 10_000), *on("b.example", 10)])
    run = begin_week(beside.store, MONDAY, now=beside.clock.now())
    run_virtual(beside.work(run, ["b.example"]), beside.clock)
    assert visits_of_b(beside) == visits_of_b(alone)
    assert visits_of_b(beside)[-1][2] == 10 * 3 * SECOND - SECOND
    assert beside.internet.most_in_flight <= 2
    assert len(beside.internet.visits("a.example")) <= 3


def test_one_slot_is_not_kept_for_a_host_that_asked_for_a_pause(build: Build) -> None:
    """Its work is critical for the run, but it may not be visited: the others use the slot meanwhile."""

    def script(url: str, asked: int) -> Answer:
        return Answer(status=429, retry_after="900") if "//a.example" in url else Answer(takes=2 * SECOND)

    engine = build(script, concurrency=1)
    register_all(engine, [*on("a.example", 50), *on("b.example", 5)])
    engine.observe()
    assert visits_of_b(engine)[-1][2] < timedelta(seconds=30)


def test_a_restart_forgets_no_backoff(build: Build) -> None:
    first = build(host_a_says_429)
    register_all(first, [*on("a.example", 5), *on("b.example", 5)])
    run = begin_week(first.store, MONDAY, now=MONDAY)
    run_virtual(killed_when(lambda: len(first.internet.visits("a.example")) == 2, first, run), first.clock)
    before = first.store.get_host("a.example")
    assert before is not None
    assert before.next_allowed_at is not None
    assert before.backoff_level == 2
    first.store.close()

    second = build(host_a_says_429, now=first.clock.now())
    again = begin_week(second.store, MONDAY, now=second.clock.now())
    assert second.store.get_host("a.example") == before
    assert again.run_id == run.run_id
    second.observe()
    resumed = second.internet.visits("a.example")
    assert resumed[0].started_at >= before.next_allowed_at
    after = second.store.get_host("a.example")
    assert after is not None
    assert after.backoff_level == 3
    # The third 429 in a row was the first one that this process saw: the streak is remembered as well.
    assert len(resumed) == 1
    assert Counter(j.reason for j in second.store.jobs(run.run_id, host="a.example")) == {
        Reason.RATE_LIMITED: 3,
        Reason.HOST_THROTTLED: 2,
    }


async def killed_when(happened: Callable[[], bool], engine: Engine, run: Run) -> None:
    """Work until something has happened and was committed, then end as a terminated process does."""
    working = asyncio.create_task(engine.work(run))
    while not happened():
        await engine.clock.sleep(SECOND / 10)
    await engine.clock.sleep(SECOND / 10)
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working


class Interrupted:
    """A store that lets somebody else act before its n-th call."""

    def __init__(self, store: SqliteStore, *, before_call: int, act: Callable[[], object]) -> None:
        self._store, self._left, self._act = store, before_call, act

    def __getattr__(self, name: str) -> Callable[..., object]:
        method = getattr(self._store, name)

        def call(*args: object, **kwargs: object) -> object:
            if self._left == 0:
                self._act()
            self._left -= 1
            return method(*args, **kwargs)

        return call


@pytest.mark.parametrize("allowances", [{}, {"h0.example": 2}])
def test_two_dispatchers_make_the_run_that_one_makes_wherever_they_meet(allowances: dict[str, int]) -> None:
    links = [a_link(f"link-{n}", f"http://h{n % 3}.example/{n}") for n in range(7)]

    def dispatched(meeting_at: int) -> tuple[list[JobRecord], Run, bool]:
        store = SqliteStore.open(Path(":memory:"))
        store.save_registry(links=[(link, None) for link in links])
        run, met = store.create_run(a_run()), list[Run]()
        other = Interrupted(
            store,
            before_call=meeting_at,
            act=lambda: met.append(dispatch_run(store, run, now=MONDAY, allowances=allowances)),
        )
        ended: Run = dispatch_run(other, run, now=MONDAY, allowances=allowances)  # type: ignore[arg-type]
        chains = [(c.host, c.head, c.remaining, c.total) for c in store.chains(run.run_id)]
        assert chains == [
            *([("h0.example", "link-0", 2, 2), ("h0.example#2", "link-6", 1, 1)] if allowances else []),
            *([] if allowances else [("h0.example", "link-0", 3, 3)]),
            ("h1.example", "link-1", 2, 2),
            ("h2.example", "link-2", 2, 2),
        ]
        jobs = list(store.jobs(run.run_id))
        store.close()
        return jobs, ended, bool(met)

    alone, run, _ = dispatched(meeting_at=-1)
    assert run.state is RunState.OPEN
    assert run.expected == 7
    meeting_at = 0
    while (result := dispatched(meeting_at))[2]:
        assert result[:2] == (alone, run)
        meeting_at += 1
    assert meeting_at > 15  # every call of the store was tried


def test_dispatchers_in_threads_of_their_own_agree(tmp_path: Path) -> None:
    file = tmp_path / "linkwatch.sqlite3"
    setup = SqliteStore.open(file)
    setup.save_registry(links=[(a_link(f"link-{n:03d}", f"http://h{n % 20}.example/{n}"), None) for n in range(100)])
    run, start, ended = setup.create_run(a_run()), Barrier(3), list[Run]()

    def dispatch() -> None:
        store = SqliteStore.open(file)
        start.wait()
        ended.append(dispatch_run(store, run, now=MONDAY))
        store.close()

    threads = [Thread(target=dispatch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(r.state, r.expected) for r in ended] == [(RunState.OPEN, 100)] * 3
    jobs = list(setup.jobs(run.run_id))
    assert len(jobs) == 100
    assert {job.sequence for job in jobs} == {0}
    assert sum(chain.total for chain in setup.chains(run.run_id)) == 100
    setup.close()


def test_nobody_sleeps_on_a_lease_that_somebody_else_holds(build: Build) -> None:
    """With a single slot, one sleeper would hold everybody up."""
    engine = build(lambda url, asked: Answer(), concurrency=1)
    register_all(engine, [*on("a.example", 3), *on("b.example", 5)])
    assert hold(engine, "a.example", MONDAY)
    run = begin_week(engine.store, MONDAY, now=MONDAY)
    run_virtual(engine.work(run, ["b.example"]), engine.clock)
    assert engine.clock.now() - MONDAY < 5 * 1.2 * SECOND
    assert engine.internet.visits("a.example") == []


def test_a_held_host_is_asked_again_after_at_most_twelve_seconds(build: Build) -> None:
    engine = build(lambda url, asked: Answer())
    register_all(engine, on("a.example", 3))
    assert hold(engine, "a.example", MONDAY)
    engine.store.release_host(
        "a.example",
        token="somebody",
        departure=Departure(at=MONDAY + SECOND, answered=True),
        cooldown=SECOND,
        chance=engine.chance,
    )
    assert hold(engine, "a.example", MONDAY + 2 * SECOND)
    engine.clock.advance(2 * SECOND)

    async def scene() -> None:
        run = begin_week(engine.store, MONDAY, now=engine.clock.now())
        working = asyncio.create_task(engine.work(run))
        await engine.clock.sleep(5 * SECOND)
        engine.store.release_host(
            "a.example",
            token="somebody",
            departure=Departure(at=engine.clock.now(), answered=True),
            cooldown=SECOND,
            chance=engine.chance,
        )
        await working

    run_virtual(scene(), engine.clock)
    assert engine.internet.visits("a.example")[0].started_at == MONDAY + 14 * SECOND


def hold(engine: Engine, host: str, now: datetime) -> bool:
    """Another process visits the host."""
    answer = engine.store.acquire_host(host, token="somebody", job_id="1:by-hand", now=now, skew=timedelta(0))
    return isinstance(answer, Admitted)


class EmptiedQueue:
    """A queue that once forgets everything, as a purged one does."""

    def __init__(self, make: Callable[[], Queue], clock: Any, at: datetime) -> None:
        self._make, self._clock, self._at = make, clock, at
        self._inner, self.emptied = make(), False

    @property
    def inner(self) -> Queue:
        if not self.emptied and self._clock.now() >= self._at:
            self._inner, self.emptied = self._make(), True
        return self._inner

    def send(self, jobs: Sequence[CheckJob], *, delay: timedelta = timedelta(0)) -> None:
        self.inner.send(jobs, delay=delay)

    def receive(self, *, limit: int = 1) -> list[Receipt]:
        return self.inner.receive(limit=limit)

    def acknowledge(self, receipt: Receipt) -> None:
        self.inner.acknowledge(receipt)

    def change_visibility(self, receipt: Receipt, *, delay: timedelta) -> None:
        self.inner.change_visibility(receipt, delay=delay)

    def next_visible_in(self) -> timedelta | None:
        return self.inner.next_visible_in()

    def dead_letters(self) -> list[CheckJob]:
        return self.inner.dead_letters()

    def verify(self) -> None:
        self.inner.verify()

    def visible(self) -> int:
        return self.inner.visible()

    def unreadable_letters(self) -> list[StrayLetter]:
        return self.inner.unreadable_letters()

    def remove_dead_letter(self, job_id: str) -> bool:
        return self.inner.remove_dead_letter(job_id)


def test_the_tick_refills_a_queue_that_lost_everything(build: Build) -> None:
    engine = build(lambda url, asked: Answer())
    register_all(engine, [url for n in range(30) for url in on(f"h{n}.example", 4)])
    run = begin_week(engine.store, MONDAY, now=MONDAY)
    queues: list[EmptiedQueue] = []

    def make_queue(order: Any) -> EmptiedQueue:
        lost_at = MONDAY + 1.5 * SECOND
        queues.append(EmptiedQueue(lambda: MemoryQueue(engine.clock, order=order), engine.clock, lost_at))
        return queues[-1]

    run_virtual(observe_hosts(engine.parts(), run, None, concurrency=20, make_queue=make_queue), engine.clock)
    assert queues[0].emptied
    closed = engine.observe()
    assert closed.totals is not None
    assert closed.totals.by_end == {"reachable": 120}
    lost_for = engine.clock.now() - MONDAY
    assert timedelta(seconds=240) < lost_for < timedelta(seconds=320)
    assert max(Counter(r.url for r in engine.internet.log).values()) == 1


class Death(BaseException):
    """The process is gone, as after kill -9."""


class MortalStore:
    """A store that a dead process cannot reach any more."""

    def __init__(self, store: SqliteStore) -> None:
        self._store, self.dead = store, False

    def __getattr__(self, name: str) -> object:
        if self.dead:
            raise Death
        return getattr(self._store, name)


@pytest.mark.parametrize(("deadly", "lives"), [("http://a.example/0", 3), ("http://sign-in.example/", 4)])
def test_a_job_that_kills_its_workers_is_abandoned_and_its_chain_moves_on(
    build: Build, deadly: str, lives: int
) -> None:
    """Also when they die on a redirect's host, where the lease names the job that led there; the third death is then
    noticed by the fourth worker on its way, and counts from the next admission on."""

    def script(url: str, asked: int) -> Answer:
        if "/0" in url and "sign-in" in deadly:
            return Answer(status=302, location="http://sign-in.example/")
        return Answer()

    engine = build(script)
    register_all(engine, on("a.example", 4))
    run = begin_week(engine.store, MONDAY, now=MONDAY)
    for _ in range(lives):
        run_virtual(one_life(engine, run, deadly), engine.clock)
        engine.clock.advance(timedelta(seconds=61))  # the lease of the dead ends
    closed = engine.observe()
    job = engine.store.get_job(run.run_id, "link-00000")
    assert job is not None
    assert (job.status, job.reason, job.deaths) == (JobStatus.ABANDONED, Reason.POISON, 3)
    assert closed.state is RunState.CLOSED
    assert closed.totals is not None
    assert closed.totals.by_end == {"reachable": 3, "abandoned": 1}
    assert [o.outcome for o in engine.store.observations()] == [Outcome.REACHABLE] * 3


async def one_life(engine: Engine, run: Run, deadly: str) -> None:
    """A worker takes the head and dies while it visits `deadly`."""
    store = MortalStore(engine.store)
    internet, looked_at = engine.internet, Counter[str]()

    def script(url: str, asked: int) -> Answer:
        looked_at[url] += 1
        store.dead = looked_at[deadly] == 2  # first whether the policy refuses it, then the visit
        return internet.script(url, asked)

    async def send(job: JobRecord, delay: timedelta) -> None:
        raise AssertionError("it does not live that long")

    deadly_internet = replace(internet, script=script)
    parts = replace(engine.parts(), store=store, fetcher=deadly_internet, worker="mortal")  # type: ignore[arg-type]
    (head, _), *_ = due_heads(engine.store, run.run_id, now=engine.clock.now())
    with suppress(Death):
        await check_job(parts, head.message, send)
