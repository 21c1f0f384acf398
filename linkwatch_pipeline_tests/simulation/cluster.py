"""Several workers, dispatchers and ticks over one store and one queue, in virtual time, with crashes at any call.

    python -m linkwatch_pipeline_tests.simulation 4711      # replay one seed

A crashed worker never reaches its store again, whatever its `finally` blocks try: it is as dead as after kill -9, while
the request it had made may still be on its way for a moment.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from linkwatch_pipeline.adapters.queue.memory import MemoryQueue
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.planning import Pace
from linkwatch_pipeline.domain.runs import CheckJob, JobRecord, JobStatus, Run, count_chains
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.check import check_job
from linkwatch_pipeline.use_cases.dead_letters import settle_dead_letters
from linkwatch_pipeline.use_cases.dispatch import dispatch_run, due_heads, planned_heads
from linkwatch_pipeline.use_cases.start_week import start_week
from linkwatch_pipeline.use_cases.tick import tick
from linkwatch_pipeline.use_cases.visit import CheckParts
from linkwatch_pipeline_tests.builders import MONDAY, a_link
from linkwatch_pipeline_tests.simulation.engine import Ended
from linkwatch_pipeline_tests.simulation.scripted_internet import Answer, ScriptedInternet
from linkwatch_pipeline_tests.virtual_clock import VirtualClock, run_virtual

T = TypeVar("T")
SECOND = timedelta(seconds=1)
COOLDOWN = SECOND
SKEW = SECOND  # between machines: any two clocks differ by at most this, and the workers allow for it
# Beyond the retry run of the next day. Afterwards nothing crashes: what must come to an end needs no luck for it.
CRASHES_END = timedelta(hours=30)
SIMULATED = CRASHES_END + timedelta(hours=6)
# So slow that a chain's start is planned minutes ahead, beyond a message's longest delay, too.
SLOW_PACE = Pace(concurrency=1, mean_service=timedelta(minutes=5), cooldown=COOLDOWN)
IN_MEMORY = partial(SqliteStore.open, Path(":memory:"))


class Crash(BaseException):
    """The process is gone. Not an Exception: nothing may handle it."""


@dataclass(slots=True)
class SkewedClock:
    """A machine's clock: the true one, a little off."""

    true: VirtualClock
    offset: timedelta

    def now(self) -> datetime:
        return self.true.now() + self.offset

    def monotonic(self) -> float:
        return self.true.monotonic()

    async def sleep(self, duration: timedelta) -> None:
        await self.true.sleep(duration)


@dataclass(slots=True)
class Faults:
    """How much goes wrong, drawn per seed. Probabilities are per call."""

    crash: float
    duplicate: float
    lose: float
    purges: int
    skew: timedelta  # zero: all workers share one machine
    keep_letters: bool  # as SQS does

    @classmethod
    def drawn(cls, chance: random.Random) -> Faults:
        return cls(
            crash=chance.choice([0.0, 0.002, 0.01, 0.03]),
            duplicate=chance.choice([0.0, 0.05, 0.3]),
            lose=chance.choice([0.0, 0.02, 0.1]),
            purges=chance.choice([0, 0, 1]),
            skew=chance.choice([timedelta(0), SKEW]),
            keep_letters=chance.choice([False, True]),
        )


@dataclass(slots=True)
class Cluster:
    """One simulated week. Everything random comes from the seed."""

    seed: int
    open_store: Callable[[], Store] = IN_MEMORY
    chance: random.Random = field(init=False)
    clock: VirtualClock = field(init=False)
    store: Store = field(init=False)
    internet: ScriptedInternet = field(init=False)
    queue: MemoryQueue = field(init=False)
    faults: Faults = field(init=False)
    pace: Pace | None = field(init=False)
    statuses: dict[str, list[Answer]] = field(default_factory=dict)
    allowances: dict[str, int] = field(default_factory=dict)
    crashes: int = 0
    dispatchers_died: int = 0
    reordered: int = 0  # messages that were received after one that was sent later
    _sent: dict[str, int] = field(default_factory=dict)  # by job id, the number of its latest message
    _newest_received: int = 0
    _something_sent: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.clock = VirtualClock(MONDAY)
        self.store = self.open_store()
        self.internet = ScriptedInternet(clock=self.clock, script=self._answer, hosts_clock=self.clock)
        self.queue = MemoryQueue(self.clock)
        self.faults = Faults.drawn(self.chance)
        self.pace = SLOW_PACE if self.seed % 2 else None  # with and without planned starts
        self._register()

    def run(self) -> None:
        """Play the week until every run is closed or the simulated time is up."""
        run_virtual(self._play(), self.clock)

    def note_sent(self, message: CheckJob) -> None:
        self._sent[message.job_id] = len(self._sent) + 1
        self._something_sent.set()  # wakes all who wait now
        self._something_sent.clear()

    def note_received(self, message: CheckJob) -> None:
        number = self._sent[message.job_id]
        self.reordered += number < self._newest_received
        self._newest_received = max(number, self._newest_received)

    async def wait_for_message(self) -> None:
        """Until a worker that asks about once a second would see one: what it asks in vain costs no real time."""
        while (wait := self.queue.next_visible_in()) != timedelta(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(wait.total_seconds() if wait is not None else None):
                    await self._something_sent.wait()
        await self.clock.sleep(timedelta(seconds=self.chance.uniform(0, 1.5)))

    def _register(self) -> None:
        number = 0
        hosts = [f"h{n}.example" for n in range(self.chance.randint(1, 5))]
        for host in hosts:
            if self.chance.random() < 0.2:
                self.allowances[host] = self.chance.randint(2, 3)
            for _ in range(self.chance.randint(1, 5)):
                url = f"http://{host}/{number}"
                self.statuses[url] = [self._drawn_answer(hosts) for _ in range(4)]
                self.store.save_link(a_link(f"link-{number:02d}", url), replaces=None)
                number += 1

    def _drawn_answer(self, hosts: list[str]) -> Answer:
        takes = timedelta(seconds=self.chance.choice([0.1, 0.5, 2, 10]))
        kind = self.chance.choice(["ok", "ok", "ok", "gone", "throttled", "silent", "redirect"])
        if kind == "redirect":
            return Answer(status=302, takes=takes, location=f"http://{self.chance.choice(hosts)}/landing")
        if kind == "throttled":
            return Answer(status=429, takes=takes, retry_after=self.chance.choice([None, "5", "400"]))
        status = {"ok": 200, "gone": 404, "silent": None}[kind]
        return Answer(status=status, takes=10 * SECOND if kind == "silent" else takes)

    def _answer(self, url: str, asked: int) -> Answer:
        answers = self.statuses.get(url)
        return answers[min(asked, len(answers) - 1)] if answers is not None else Answer(takes=SECOND / 2)

    async def _play(self) -> None:
        tasks = [asyncio.create_task(self._worker_for_ever(n)) for n in range(self.chance.randint(1, 6))]
        tasks += [asyncio.create_task(self._dispatcher_for_ever(n)) for n in range(self.chance.randint(1, 2))]
        tasks += [asyncio.create_task(self._purge()) for _ in range(self.faults.purges)]
        try:
            while not self._is_over() and self.clock.now() < MONDAY + SIMULATED:
                await self.clock.sleep(20 * SECOND)
                for task in tasks:
                    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                        raise error
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _is_over(self) -> bool:
        runs = list(self.store.runs())
        return bool(runs) and all(run.state.is_over for run in runs)

    async def _purge(self) -> None:
        await self.clock.sleep(timedelta(seconds=self.chance.uniform(1, 120)))
        self.queue = MemoryQueue(self.clock)  # every message is gone

    async def _dispatcher_for_ever(self, number: int) -> None:
        """Starts the week, then ticks each minute, as a scheduler would; a crash costs it one beat."""
        while True:
            process = Process(self, f"dispatcher-{number}-{self.crashes}")
            try:
                await process.dispatch_or_tick()
            except Crash:
                self.dispatchers_died += 1
            await self.clock.sleep(timedelta(seconds=self.chance.uniform(50, 60)))

    async def _worker_for_ever(self, number: int) -> None:
        life = 0
        while True:
            process = Process(self, f"worker-{number}-{life}")
            with suppress(Crash):
                await process.work()
            life += 1
            await self.clock.sleep(timedelta(seconds=self.chance.uniform(0, 30)))


class Process:
    """One process of the cluster: a worker or a dispatcher, alive until a call crashes it."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._dead = False
        half = cluster.faults.skew.total_seconds() / 2
        self._clock = SkewedClock(cluster.clock, timedelta(seconds=cluster.chance.uniform(-half, half)))
        self.progress = Ended()
        self._parts = CheckParts(
            store=cluster.store,
            fetcher=replace(
                cluster.internet, clock=self._clock, log=cluster.internet.log, asked=cluster.internet.asked
            ),
            clock=self._clock,
            chance=cluster.chance,
            blocking=self._blocking,
            progress=self.progress,
            worker=name,
            cooldown=COOLDOWN,
            skew=cluster.faults.skew,
            default_confirm=1,
            allowances=cluster.allowances,
        )

    async def work(self) -> None:
        """Receive, check, acknowledge, until a crash."""
        cluster = self._cluster
        while True:
            received = cluster.queue.receive()
            if not received:
                await cluster.wait_for_message()
                continue
            cluster.note_received(received[0].job)
            self._perhaps_crash()
            await check_job(self._parts, received[0].job, self._send)
            self._perhaps_crash()
            cluster.queue.acknowledge(received[0])

    async def dispatch_or_tick(self) -> None:
        """What the minute's trigger does."""
        store, now, agreed = self._cluster.store, self._clock.now(), self._cluster.allowances
        crashing: SqliteStore = _Crashing(store, self)  # type: ignore[assignment]
        week = await self._blocking(lambda: start_week(store, MONDAY, now=max(now, MONDAY)))
        if not week.state.is_over and week.dispatched_at is None:
            week = await self._blocking(lambda: dispatch_run(crashing, week, now=now, allowances=agreed))
            for job, delay in await self._blocking(lambda: list(self._first_heads(week, now))):
                await self._send(job, delay)
        pace = self._cluster.pace
        heads = partial(tick, crashing, now=now, allowances=agreed, pace=pace)
        for job, delay in await self._blocking(lambda: list(heads())):
            await self._send(job, delay)
        settle = partial(settle_dead_letters, crashing, self._cluster.queue, now=now)
        for settled in await self._blocking(lambda: list(settle(keep=self._cluster.faults.keep_letters))):
            if settled.following is not None:
                await self._send(*settled.following)

    def _first_heads(self, week: Run, now: datetime) -> Iterator[tuple[JobRecord, timedelta]]:
        store, pace = self._cluster.store, self._cluster.pace
        if pace is None:
            return due_heads(store, week.run_id, now=now)
        return planned_heads(_Crashing(store, self), week, pace=pace, now=now)  # type: ignore[arg-type]

    async def _send(self, job: JobRecord, delay: timedelta) -> None:
        self._perhaps_crash()
        cluster = self._cluster
        if cluster.chance.random() < cluster.faults.lose:
            return
        copies = 2 if cluster.chance.random() < cluster.faults.duplicate else 1
        whole_seconds = timedelta(seconds=-(-delay // SECOND))  # as SQS: delays are whole seconds
        for _ in range(copies):
            jitter = timedelta(seconds=cluster.chance.choice([0, 0, 0, 2, 30]) if copies > 1 else 0)
            cluster.note_sent(job.message)
            cluster.queue.send([job.message], delay=min(whole_seconds + jitter, 900 * SECOND))
        self._perhaps_crash()

    async def _blocking(self, call: Callable[[], T], /) -> T:
        self._perhaps_crash()
        before = self._cluster.clock.now()
        result = call()
        assert self._cluster.clock.now() == before, "virtual time passed inside a commit"
        self._perhaps_crash()
        await asyncio.sleep(0)
        return result

    def _perhaps_crash(self) -> None:
        if self._dead:
            raise Crash
        cluster = self._cluster
        if cluster.chance.random() < cluster.faults.crash and cluster.clock.now() < MONDAY + CRASHES_END:
            self._dead = True
            self._cluster.crashes += 1
            raise Crash


class _Crashing:
    """A store whose user may die before and after every call of a use case that makes many."""

    def __init__(self, store: Store, process: Process) -> None:
        self._store = store
        self._process = process

    def __getattr__(self, name: str) -> Callable[..., object]:
        method = getattr(self._store, name)

        def call(*args: object, **kwargs: object) -> object:
            self._process._perhaps_crash()
            result = method(*args, **kwargs)
            self._process._perhaps_crash()
            return result

        return call


def check_invariants(cluster: Cluster) -> None:
    """What must hold after any week, however it went. Raises AssertionError saying what broke."""
    _politeness(cluster)
    _records(cluster)
    _ends(cluster)


def _politeness(cluster: Cluster) -> None:
    for host in cluster.internet.hosts():
        visits, allowed = cluster.internet.visits(host), cluster.allowances.get(host, 1)
        for number, later in enumerate(visits):
            near = [earlier for earlier in visits[:number] if later.started_at < earlier.ended_at + COOLDOWN]
            assert len(near) < allowed, f"{host} had {len(near) + 1} visits within its rest, {allowed} agreed"
        if cluster.faults.crash:
            continue  # a worker that dies with the answer in its hands takes the wait that it named with it
        for earlier in visits:
            began = [v.started_at for v in visits if v.started_at > earlier.ended_at]  # one may begin as another ends
            rested, wait = (
                min(began, default=datetime.max.replace(tzinfo=UTC)) - earlier.ended_at,
                earlier.asked_to_wait,
            )
            assert wait is None or rested >= wait, f"{host} asked for {wait} and was left alone for {rested}"


def _records(cluster: Cluster) -> None:
    store = cluster.store
    observations = list(store.observations())
    assert len({o.job_id for o in observations}) == len(observations), "a job has two observations"
    transitions = [t.id for t in store.transitions()]
    notices = [n.transition_id for n in store.notices()]
    assert sorted(transitions) == sorted(notices), "transitions and notices do not pair off"
    for link in store.links():
        seen = [o for o in observations if o.link_id == link.id]
        decided = [o.outcome for o in seen if o.outcome in (Outcome.REACHABLE, Outcome.BROKEN)]
        expected = decided[-1].value if decided else "unknown"
        assert link.state.value == expected, f"{link.id} is {link.state.value}, its last verdict was {expected}"


def _ends(cluster: Cluster) -> None:
    store = cluster.store
    runs = list(store.runs())
    assert runs, "the week has no run"
    for run in runs:
        assert run.state.is_over, f"run {run.run_id} is still {run.state.value} after {SIMULATED}"
        if not cluster.faults.crash:  # else a dispatch may take until then
            assert run.closed_at is not None, f"run {run.run_id} does not say when it was closed"
            assert run.closed_at < run.expires_at, f"run {run.run_id} only expired: what was lost was not sent again"
        jobs = list(store.jobs(run.run_id))
        pending = [job.job_id for job in jobs if job.status is JobStatus.PENDING]
        assert not pending, f"jobs never ended: {pending}"
        ends = Counter(job.outcome.value if job.outcome is not None else job.status.value for job in jobs)
        counts = count_chains(store.chains(run.run_id))
        assert dict(counts.by_end) == dict(ends), f"counters {dict(counts.by_end)} are not rows {dict(ends)}"
        assert counts.expected == len(jobs), "expected jobs are not the rows"
        assert run.totals is not None, "no totals were written"
        assert dict(run.totals.by_end) == dict(ends), "the totals are not the rows"


def simulate(seed: int, *, open_store: Callable[[], Store] = IN_MEMORY) -> Cluster:
    """Play one seed and check everything; a failure names the command that replays it.

    Args: open_store: gives an empty store.
    """
    cluster = Cluster(seed, open_store)
    try:
        cluster.run()
        check_invariants(cluster)
    except AssertionError as broken:
        command = f"python -m linkwatch_pipeline_tests.simulation {seed}"
        raise AssertionError(f"seed {seed}: {broken} (replay: {command})") from broken
    finally:
        cluster.store.close()
    return cluster
