"""Runs over a shared queue: planned starts, the tick, dead letters, workers. On the emulator's SQS, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest

from linkwatch_pipeline.adapters.queue.sqs import SqsQueue
from linkwatch_pipeline.domain.errors import InvalidInput, QueueError, StoreContended, StoreError, StoreUnavailable
from linkwatch_pipeline.domain.planning import Pace
from linkwatch_pipeline.domain.runs import CheckJob, JobRecord, JobStatus, Run, RunState
from linkwatch_pipeline.ports import Queue, Receipt
from linkwatch_pipeline.use_cases.dispatch import dispatch_run
from linkwatch_pipeline.use_cases.start_week import start_week
from linkwatch_pipeline.use_cases.visit import CheckParts
from linkwatch_pipeline.use_cases.work_on_queue import (
    begin_on_queue,
    check_messages,
    send_heads,
    tick_on_queue,
    work_on_queue,
)
from linkwatch_pipeline_tests.cloud.timed_sqs import TimedSqs, make_queues
from linkwatch_pipeline_tests.simulation.engine import MONDAY, Engine
from linkwatch_pipeline_tests.simulation.scripted_internet import Answer
from linkwatch_pipeline_tests.virtual_clock import VirtualClock, run_virtual

T = TypeVar("T")
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
PACE = Pace(concurrency=20, mean_service=2 * SECOND, cooldown=SECOND)
# One visit at a time, a minute each: most hosts are planned to start later, some beyond the longest delay of a message.
SLOW = Pace(concurrency=1, mean_service=MINUTE, cooldown=SECOND)


_STATUSES = {"gone": 404, "busy": 429}


class Case:
    """A home, a queue, and one clock for both."""

    def __init__(self, folder: Path, sqs: TimedSqs) -> None:
        self.engine = Engine(folder, lambda url, asked: Answer(status=_STATUSES.get(url.rpartition("/")[2], 200)))
        self.sqs = sqs.client
        self.clock: VirtualClock = sqs.new_clock()
        self.engine.clock = self.engine.internet.clock = self.clock
        url, dead = make_queues(sqs.client, f"work-{uuid4().hex}")
        self.queue = SqsQueue(sqs.client, queue_url=url, dead_letter_url=dead, wait=timedelta(0))
        self.store = self.engine.store

    def begin(self, pace: Pace = PACE, week: datetime = MONDAY) -> Run:
        return begin_on_queue(self.store, self.queue, week, pace=pace, now=self.clock.now())

    def tick(self, pace: Pace = PACE) -> int:
        return asyncio.run(tick_on_queue(self.engine.parts(), self.queue, pace=pace))

    def work(self) -> int:
        """Check and acknowledge what is visible; how many messages there were."""
        receipts = self.queue.receive(limit=10)
        done = asyncio.run(check_messages(self.engine.parts(), self.queue, [receipt.job for receipt in receipts]))
        for receipt, ended in zip(receipts, done, strict=True):
            if ended:
                self.queue.acknowledge(receipt)
        return len(receipts)

    def run(self) -> Run:
        """The week's first run."""
        return next(iter(self.store.runs()))

    def work_to_the_end(self, pace: Pace = PACE, *, minutes: int = 60) -> Run:
        for second in range(minutes * 60):
            if second % 60 == 0:
                self.tick(pace)
            if self.run().state.is_over:
                break
            self.work()
            self.clock.advance(SECOND)
        return self.run()


@pytest.fixture
def case(tmp_path: Path, timed_sqs: TimedSqs) -> Iterator[Case]:
    made = Case(tmp_path, timed_sqs)
    yield made
    made.store.close()


def urls(*per_host: int) -> list[str]:
    return [f"http://h{host}.example/{n}" for host, links in enumerate(per_host) for n in range(links)]


def test_a_week_goes_over_the_queue_to_its_end(case: Case) -> None:
    case.engine.register([*urls(3, 2, 2), "http://h0.example/gone"])
    begun = case.begin()
    assert (begun.run_id, begun.state, begun.expected) == ("2026-09-28T09:00:00Z", RunState.OPEN, 8)
    run = case.work_to_the_end()
    assert run.totals is not None
    assert dict(run.totals.by_end) == {"reachable": 7, "broken": 1}
    assert case.queue.receive() == []


def test_a_dispatcher_whose_time_ends_leaves_the_rest_to_the_next(case: Case) -> None:
    """Each host of the run is dispatched once, whichever call it falls to, and nothing is sent before all are there."""
    case.engine.register(urls(3, 2, 2, 1, 4))
    calls = iter((True, True, False))  # three calls: of two hosts, of none, of the rest
    parts, store = case.engine.parts(), case.store
    begun = begin_on_queue(
        store, case.queue, MONDAY, pace=PACE, now=case.clock.now(), has_time=partial(next, calls, False)
    )
    assert (begun.state, begun.dispatched, begun.cursor) == (RunState.DISPATCHING, 5, "h1.example")
    assert asyncio.run(tick_on_queue(parts, case.queue, pace=PACE, has_time=lambda: False)) == 0
    assert case.run() == begun
    assert case.queue.receive() == []
    assert case.tick() == 5
    run = case.work_to_the_end()
    assert run.totals is not None
    assert dict(run.totals.by_end) == {"reachable": 12}
    assert [seen.sequence for seen in store.observations()] == [0] * 12


def test_a_host_has_one_message_at_a_time(case: Case) -> None:
    case.engine.register(urls(5, 4))
    case.begin()
    assert len(case.queue.receive(limit=10)) == 2


def test_beginning_again_sends_nothing_twice(case: Case) -> None:
    case.engine.register(urls(2, 2))
    case.begin()
    case.begin()
    assert len(case.queue.receive(limit=10)) == 2
    assert case.tick() == 0


def test_a_late_trigger_of_an_old_week_sends_nothing(case: Case) -> None:
    case.engine.register(urls(1))
    assert case.begin(week=MONDAY - timedelta(days=7)).state is RunState.MISSED
    assert case.queue.receive() == []
    with pytest.raises(InvalidInput, match="has not begun"):
        case.begin(week=MONDAY + timedelta(days=7))


def test_a_run_whose_time_is_up_is_left_to_the_tick(case: Case) -> None:
    case.engine.register(urls(1))
    case.begin()
    case.clock.advance(timedelta(hours=7))
    assert case.begin().state is RunState.OPEN
    case.tick()
    assert case.store.get_run("2026-09-28T09:00:00Z").state is RunState.CLOSED  # type: ignore[union-attr]


def test_long_chains_begin_at_once_and_short_ones_when_there_is_room(case: Case) -> None:
    case.engine.register(urls(10, 1, 1, 1))
    case.begin(SLOW)
    (first,) = case.queue.receive(limit=10)
    assert case.store.get_job(first.job.run_id, first.job.link_id).host == "h0.example"  # type: ignore[union-attr]
    ready = [chain.head_ready_at - MONDAY for chain in case.store.chains(first.job.run_id)]
    assert ready[0] == timedelta(0)
    assert all(wait > MINUTE for wait in ready[1:])


def test_a_start_beyond_the_longest_delay_is_sent_by_a_later_tick_and_is_not_taken_for_lost(case: Case) -> None:
    case.engine.register(urls(30, 1))
    run = case.begin(SLOW)
    (_, short) = case.store.chains(run.run_id)
    assert short.awaits_start
    sent: list[int] = []
    while not sent or not sent[-1]:
        case.clock.advance(MINUTE)
        (_, short) = case.store.chains(run.run_id)
        sent.append(sum(job == short.head for job in _ticked(case, SLOW)))
    assert len(sent) > 5
    (_, short) = case.store.chains(run.run_id)
    assert short.planned_sent_at == case.clock.now()
    assert timedelta(minutes=14) < short.head_ready_at - case.clock.now() <= timedelta(minutes=15)


def _ticked(case: Case, pace: Pace) -> list[str]:
    """The links that a tick sends."""
    noting = Noting(case.queue)
    asyncio.run(tick_on_queue(case.engine.parts(), noting, pace=pace))  # type: ignore[arg-type]
    return [job.link_id for job in noting.sent]


class Noting:
    """A queue that remembers what was sent."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.sent: list[CheckJob] = []

    def send(self, jobs: list[CheckJob], *, delay: timedelta = timedelta(0)) -> None:
        self.sent += jobs
        self._queue.send(jobs, delay=delay)

    def dead_letters(self) -> list[CheckJob]:
        return self._queue.dead_letters()


def test_a_queue_that_lost_everything_is_filled_again(case: Case) -> None:
    case.engine.register(urls(3, 3))
    case.begin()
    for receipt in case.queue.receive(limit=10):
        case.queue.acknowledge(receipt)  # nobody checked it: as if the queue had been purged
    assert case.tick() == 0
    run = case.work_to_the_end()
    assert run.totals is not None
    assert dict(run.totals.by_end) == {"reachable": 6}


class Refusing:
    """Refuses what is to be sent at once, so many times, and hands everything else on."""

    def __init__(self, queue: Queue, times: int) -> None:
        self._queue = queue
        self._times = times

    def send(self, jobs: list[CheckJob], *, delay: timedelta = timedelta(0)) -> None:
        if not delay and self._times:
            self._times -= 1
            raise QueueError("not today")
        self._queue.send(jobs, delay=delay)


def heads_one_second_apart(case: Case) -> list[tuple[JobRecord, timedelta]]:
    case.engine.register(urls(1, 1))
    now = case.clock.now()
    run = dispatch_run(case.store, start_week(case.store, MONDAY, now=now), now=now)
    return [(job, SECOND * n) for n, job in enumerate(case.store.jobs(run.run_id))]


def test_heads_that_the_queue_does_not_take_are_offered_again_in_the_same_call(case: Case) -> None:
    assert send_heads(Refusing(case.queue, times=1), heads_one_second_apart(case)) == 2  # type: ignore[arg-type]
    case.clock.advance(SECOND)
    assert len(case.queue.receive(limit=10)) == 2


def test_a_head_that_is_refused_again_keeps_no_other_back_and_is_told(case: Case) -> None:
    heads = heads_one_second_apart(case)
    with pytest.raises(QueueError, match="not today"):
        send_heads(Refusing(case.queue, times=2), heads)  # type: ignore[arg-type]
    case.clock.advance(SECOND)
    assert [receipt.job for receipt in case.queue.receive(limit=10)] == [heads[1][0].message]


def test_without_an_open_run_the_tick_is_idle(case: Case) -> None:
    silent = replace(case.engine.parts())

    class Unused:
        """Nothing may be asked of the queue."""

    assert asyncio.run(tick_on_queue(silent, Unused(), pace=PACE)) == 0  # type: ignore[arg-type]


def test_a_dead_letter_ends_its_job_and_its_host_goes_on(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    case.engine.register(urls(2))
    run = case.begin()
    for _ in range(5):
        assert case.queue.receive()
        case.clock.advance(timedelta(seconds=180))
    assert case.queue.receive() == []
    case.tick()
    jobs = {job.link_id: job.status for job in case.store.jobs(run.run_id)}
    assert jobs == {"link-00000": JobStatus.ABANDONED, "link-00001": JobStatus.PENDING}
    assert [letter.link_id for letter in case.queue.dead_letters()] == ["link-00000"]  # it stays, for people
    run = case.work_to_the_end()
    assert run.totals is not None
    assert dict(run.totals.by_end) == {"reachable": 1, "abandoned": 1}


def test_redelivery_of_a_committed_job_finds_it_done_and_asks_nobody(case: Case) -> None:
    case.engine.register(urls(1))
    case.begin()
    (receipt,) = case.queue.receive()
    assert asyncio.run(check_messages(case.engine.parts(), case.queue, [receipt.job])) == [True]
    # A crash before the acknowledgement: the message comes back.
    case.clock.advance(timedelta(seconds=180))
    (again,) = case.queue.receive()
    assert (again.job, again.receive_count) == (receipt.job, 2)
    assert asyncio.run(check_messages(case.engine.parts(), case.queue, [again.job])) == [True]
    assert len(case.engine.internet.log) == len(list(case.store.observations())) == 1


def test_a_message_of_a_closed_run_is_refused(case: Case) -> None:
    case.engine.register(urls(2))
    case.begin()
    (receipt,) = case.queue.receive()
    case.clock.advance(timedelta(hours=6))
    case.tick()
    assert case.run().state.is_over
    assert asyncio.run(check_messages(case.engine.parts(), case.queue, [receipt.job])) == [True]
    assert case.engine.internet.log == []


def test_what_fails_in_our_hands_is_told_and_not_acknowledged(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    case.engine.register(urls(1, 1))
    case.begin()

    def break_down(url: str, asked: int) -> Answer:
        if "h0" in url:
            raise RuntimeError("a fault of ours")
        return Answer()

    case.engine.internet.script = break_down
    receipts = sorted(case.queue.receive(limit=10), key=lambda receipt: receipt.job.link_id)
    with caplog.at_level(logging.ERROR):
        done = asyncio.run(check_messages(case.engine.parts(), case.queue, [receipt.job for receipt in receipts]))
    assert done == [False, True]
    (told,) = [record for record in caplog.records if record.getMessage() == "check failed"]
    assert vars(told)["job_id"] == receipts[0].job.job_id


class Outage:
    """A store that serves nobody for a while."""

    def __init__(self, case: Case, *, lasts: timedelta) -> None:
        self._store, self._clock = case.store, case.clock
        self.begin(lasts)

    def begin(self, lasts: timedelta) -> None:
        self._until = self._clock.now() + lasts

    @property
    def is_over(self) -> bool:
        return self._clock.now() >= self._until

    def __getattr__(self, name: str) -> Any:
        if not self.is_over:
            raise StoreUnavailable("not today")
        return getattr(self._store, name)


def test_an_outage_of_the_store_gives_no_job_up_however_long_it_lasts(case: Case) -> None:
    case.engine.register(urls(2, 1))
    case.begin()
    parts = replace(case.engine.parts(), store=Outage(case, lasts=40 * MINUTE))
    deliveries = 0
    while case.clock.now() < MONDAY + 40 * MINUTE:
        for receipt in case.queue.receive(limit=10):
            assert receipt.receive_count == 1
            assert asyncio.run(check_messages(parts, case.queue, [receipt.job])) == [True]
            case.queue.acknowledge(receipt)
            deliveries += 1
        case.clock.advance(20 * SECOND)
    assert 2 * 20 <= deliveries <= 2 * 40
    run = case.work_to_the_end()
    assert run.totals is not None
    assert dict(run.totals.by_end) == {"reachable": 3}
    assert case.queue.dead_letters() == []


@pytest.mark.parametrize(("left", "end"), [(12.0, "uncertain"), (9.0, None)])
def test_a_fetch_ends_when_its_call_has_to_and_is_not_begun_when_it_would_be_cut(
    case: Case, left: float, end: str | None
) -> None:
    case.engine.register(urls(1))
    case.begin()
    case.engine.internet.script = lambda url, asked: Answer(takes=timedelta(hours=1))
    (receipt,) = case.queue.receive()
    began = case.clock.monotonic()
    parts = replace(case.engine.parts(), fetched_by=began + left)
    assert run_virtual(check_messages(parts, case.queue, [receipt.job]), case.clock) == [True]
    assert case.clock.monotonic() - began == (left if end else 0)
    assert [seen.outcome.value for seen in case.store.observations()] == ([end] if end else [])
    host = case.store.get_host("h0.example")
    assert host is None or host.owner_token is None  # nobody is taken for dead later
    case.clock.advance(2 * MINUTE)
    case.queue.acknowledge(receipt)
    assert [again.receive_count for again in case.queue.receive()] == ([] if end else [1])  # the copy


@pytest.mark.parametrize("refusal", [StoreError, StoreContended])
def test_what_the_store_only_refuses_in_one_job_is_given_up_in_the_end(case: Case, refusal: type[StoreError]) -> None:
    case.engine.register(urls(1))
    case.begin()

    class Refusing:
        verify = case.store.verify

        def get_job(self, run_id: str, link_id: str) -> JobRecord:
            raise refusal("a request is refused")

    (receipt,) = case.queue.receive()
    parts = replace(case.engine.parts(), store=Refusing())  # type: ignore[arg-type]
    assert asyncio.run(check_messages(parts, case.queue, [receipt.job])) == [False]
    assert case.queue.receive() == []  # no copy was sent


def test_a_message_that_cannot_be_postponed_comes_back_by_itself(case: Case) -> None:
    case.engine.register(urls(1))
    case.begin()
    (receipt,) = case.queue.receive()

    class Full:
        def send(self, jobs: list[CheckJob], *, delay: timedelta) -> None:
            raise QueueError("not today")

    parts = replace(case.engine.parts(), store=Outage(case, lasts=MINUTE))
    assert asyncio.run(check_messages(parts, Full(), [receipt.job])) == [False]  # type: ignore[arg-type]


def test_the_next_message_of_a_host_comes_when_every_clock_agrees_that_it_has_rested(case: Case) -> None:
    case.engine.register(urls(2))
    case.begin()
    parts = replace(case.engine.parts(), skew=2 * SECOND)
    (first,) = case.queue.receive()
    assert asyncio.run(check_messages(parts, case.queue, [first.job])) == [True]
    while not (received := case.queue.receive()):
        case.clock.advance(SECOND)
    assert asyncio.run(check_messages(parts, case.queue, [received[0].job])) == [True]
    assert len(list(case.store.observations())) == 2  # at its first delivery: it was not deferred


class TestWorker:
    def test_it_works_until_it_is_told_to_end(self, case: Case) -> None:
        case.engine.register(urls(1, 1, 1))
        case.begin()
        assert work_until_quiet(case.engine.parts(), Polled(case, checks=3), concurrency=2) == 3
        case.clock.advance(timedelta(hours=1))
        assert case.queue.receive() == []

    def test_while_the_store_serves_nobody_it_receives_nothing_and_then_goes_on(
        self, case: Case, caplog: pytest.LogCaptureFixture
    ) -> None:
        case.engine.register(urls(1, 1, 1))
        case.begin()
        outage = Outage(case, lasts=20 * MINUTE)
        parts = replace(case.engine.parts(), store=outage)
        polled = Polled(case, checks=3, outage=outage)
        with caplog.at_level(logging.INFO):
            assert work_until_quiet(parts, polled) == 4  # one was postponed, three checked
        assert polled.receipts == [(True, 1)] + [(False, 1)] * 3
        assert case.queue.dead_letters() == []
        pauses = [r for r in caplog.records if r.getMessage() == "store cannot serve: nothing is received"]
        assert 10 < len(pauses) < 30
        assert [r for r in caplog.records if r.getMessage() == "store serves: receiving again"]

    def test_an_outage_in_the_middle_of_a_visit_is_no_death_of_a_worker(self, case: Case) -> None:
        case.engine.register(urls(1))
        run = case.begin()
        outage = Outage(case, lasts=timedelta(0))
        parts = replace(case.engine.parts(), store=outage)

        def fall_out(url: str, asked: int) -> Answer:
            if not asked:
                outage.begin(20 * MINUTE)
            return Answer()

        case.engine.internet.script = fall_out
        assert work_until_quiet(parts, Polled(case, checks=1)) == 2
        [job] = case.store.jobs(run.run_id)
        assert (job.status, job.deaths) == (JobStatus.DONE, 0)
        assert parts.left_behind == []

    def test_it_ends_at_once_while_it_waits_for_the_store(self, case: Case) -> None:
        case.engine.register(urls(1))
        case.begin()
        waits = 0

        async def work() -> int:
            stop = asyncio.Event()

            class NeverBack(Outage):
                def verify(self) -> None:
                    nonlocal waits
                    waits += 1
                    if waits == 5:
                        stop.set()
                    raise StoreUnavailable("not today")

            parts = replace(case.engine.parts(), store=NeverBack(case, lasts=timedelta(days=365)))
            return await work_on_queue(parts, case.queue, concurrency=1, stop=stop)

        assert asyncio.run(work()) == 1
        assert waits == 5

    def test_what_arrives_while_it_ends_is_given_back_at_once(self, case: Case) -> None:
        case.engine.register(urls(1))
        case.begin()

        async def work() -> int:
            stop = asyncio.Event()
            ending = Ending(case.queue, stop, asyncio.get_running_loop())
            return await work_on_queue(case.engine.parts(), ending, concurrency=2, stop=stop)  # type: ignore[arg-type]

        assert asyncio.run(work()) == 0
        assert case.engine.internet.log == []
        assert len(case.queue.receive()) == 1

    def test_a_queue_that_cannot_serve_for_a_while_ends_nothing(
        self, case: Case, caplog: pytest.LogCaptureFixture
    ) -> None:
        case.engine.register(urls(1))
        case.begin()

        async def work() -> int:
            stop = asyncio.Event()
            flaky = Ending(case.queue, stop, asyncio.get_running_loop(), fails=True)
            return await work_on_queue(case.engine.parts(), flaky, concurrency=2, stop=stop)  # type: ignore[arg-type]

        with caplog.at_level(logging.WARNING):
            assert asyncio.run(work()) == 0
        assert "queue cannot serve" in caplog.text


class Polled:
    """A queue whose answer takes a second of virtual time when it has nothing and nobody is at work.

    Time that passed beside the worker, in a thread, would outrun it on a slow machine: messages would come back that
    are being worked on. Once there are `checks` observations it tells the worker to end.
    """

    def __init__(self, case: Case, *, checks: int, outage: Outage | None = None) -> None:
        self._case, self._checks = case, checks
        self._outage = outage or Outage(case, lasts=timedelta(0))
        self._at_work = 0
        self.end: Callable[[], object]
        self.receipts: list[tuple[bool, int]] = []  # of each delivery: whether during the outage, and its receive count
        self.send = case.queue.send

    def receive(self, *, limit: int = 1) -> list[Receipt]:
        during = not self._outage.is_over
        received = self._case.queue.receive(limit=limit)
        self.receipts += [(during, receipt.receive_count) for receipt in received]
        self._at_work += len(received)
        if not self._at_work:
            if len(list(self._case.store.observations())) >= self._checks:
                self.end()
            self._case.clock.advance(SECOND)
        return received

    def acknowledge(self, receipt: Receipt) -> None:
        self._case.queue.acknowledge(receipt)
        self._at_work -= 1


def work_until_quiet(parts: CheckParts, polled: Polled, *, concurrency: int = 1) -> int:
    """How many messages a worker acknowledged until `polled` ended it."""

    async def work() -> int:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        polled.end = partial(loop.call_soon_threadsafe, stop.set)
        return await work_on_queue(parts, polled, concurrency=concurrency, stop=stop)  # type: ignore[arg-type]

    return asyncio.run(work())


class Ending:
    """A queue during whose receive the worker is told to end."""

    def __init__(
        self, queue: Queue, stop: asyncio.Event, loop: asyncio.AbstractEventLoop, *, fails: bool = False
    ) -> None:
        self._queue = queue
        self._stop = stop
        self._loop = loop
        self._fails = fails

    def receive(self, *, limit: int = 1) -> list[Receipt]:
        received = self._queue.receive(limit=limit)
        self._loop.call_soon_threadsafe(self._stop.set)
        if self._fails:
            raise QueueError("not today")
        return received

    def change_visibility(self, receipt: Receipt, *, delay: timedelta) -> None:
        self._queue.change_visibility(receipt, delay=delay)


class TestAHostThatThrottlesAndHasVeryManyLinks:
    """Each call of the store takes its time, and a worker lives for 20 s of it."""

    LIFE, CALL = 20 * SECOND, timedelta(milliseconds=250)
    LINKS = 300

    def work(self, case: Case) -> timedelta:
        """Check one message; how long that took."""
        began_at = case.clock.now()

        async def blocking(call: Callable[[], T], /) -> T:
            case.clock.advance(self.CALL)
            return call()

        fetched_by = case.clock.monotonic() + self.LIFE.total_seconds()
        parts = replace(case.engine.parts(), blocking=blocking, fetched_by=fetched_by)
        (receipt,) = case.queue.receive(limit=10)
        assert asyncio.run(check_messages(parts, case.queue, [receipt.job])) == [True]
        case.queue.acknowledge(receipt)
        return case.clock.now() - began_at

    def pending(self, case: Case) -> int:
        return sum(job.status is JobStatus.PENDING for job in case.store.jobs(case.run().run_id))

    @pytest.fixture
    def throttled(self, case: Case) -> Case:
        """The host answered 429 three times; the next message is about to expire the others."""
        case.engine.register(f"http://busy.example/{n}/busy" for n in range(self.LINKS))
        case.begin()
        while self.pending(case) > self.LINKS - 3:
            case.work()
            case.clock.advance(SECOND)
        case.clock.advance(timedelta(minutes=15))
        return case

    def test_each_visit_ends_in_good_order_and_the_next_one_goes_on(self, throttled: Case) -> None:
        left = [self.pending(throttled)]
        while left[-1]:
            assert self.work(throttled) <= self.LIFE + 6 * self.CALL
            left.append(self.pending(throttled))
            throttled.clock.advance(SECOND)
        assert len(left) > 3
        assert left == sorted(set(left), reverse=True)
        assert throttled.queue.receive() == []
        throttled.tick()
        run = throttled.run()
        assert run.state is RunState.CLOSED
        assert run.totals is not None
        assert dict(run.totals.by_end) == {"throttled": 3, "expired": self.LINKS - 3}

    def test_a_worker_that_dies_in_between_is_made_good_by_a_tick(self, throttled: Case) -> None:
        class PowerCut(BaseException):
            pass

        calls = iter(range(10_000))

        async def blocking(call: Callable[[], T], /) -> T:
            if next(calls) == 40:
                raise PowerCut
            return call()

        (receipt,) = throttled.queue.receive(limit=10)
        with pytest.raises(PowerCut):
            asyncio.run(
                check_messages(replace(throttled.engine.parts(), blocking=blocking), throttled.queue, [receipt.job])
            )
        assert 0 < self.pending(throttled) < self.LINKS - 3
        assert dict(throttled.work_to_the_end().totals.by_end) == {"throttled": 3, "expired": self.LINKS - 3}  # type: ignore[union-attr]
