"""Following a run that others work on: to its end, with numbers, through faults. The emulator's SQS, virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.adapters.queue.sqs import SqsQueue
from linkwatch_pipeline.domain.errors import LinkwatchError, QueueError, QueueUnusable, StoreUnavailable
from linkwatch_pipeline.domain.runs import RunState
from linkwatch_pipeline.ports import Queue
from linkwatch_pipeline.use_cases.follow_run import IDLE_AFTER, LONGEST_OUTAGE, LONGEST_PAUSE, TICK_EVERY, follow_run
from linkwatch_pipeline.use_cases.observe_week import begin_week
from linkwatch_pipeline.use_cases.work_on_queue import check_messages
from linkwatch_pipeline_tests.cloud.timed_sqs import TimedSqs
from linkwatch_pipeline_tests.simulation.engine import MONDAY
from linkwatch_pipeline_tests.simulation.scripted_internet import Answer
from linkwatch_pipeline_tests.use_cases.test_work_on_queue import PACE, SECOND, Case, urls
from linkwatch_pipeline_tests.virtual_clock import run_virtual

NOWHERE = "http://127.0.0.1/000000000000/nobody-made-it"
RUN = "2026-09-28T09:00:00Z"


@pytest.fixture
def case(tmp_path: Path, timed_sqs: TimedSqs) -> Iterator[Case]:
    made = Case(tmp_path, timed_sqs)
    yield made
    made.store.close()


def follow(
    case: Case,
    *hosts: str,
    queue: Queue | None = None,
    works: bool = True,
    works_after: timedelta = timedelta(0),
    warned: list[tuple[timedelta, int]] | None = None,
    outages: list[LinkwatchError | None] | None = None,
) -> list[tuple[int, int]]:
    """Follow while one worker works; (ended, expected) as it was told. `warned` gets when and of how many messages."""
    told: list[tuple[int, int]] = []
    warnings = warned if warned is not None else []
    began = case.clock.now()

    async def work() -> None:
        await case.clock.sleep(works_after)
        while True:
            for receipt in case.queue.receive(limit=10) if works else ():
                [done] = await check_messages(case.engine.parts(), case.queue, [receipt.job])
                if done:
                    case.queue.acknowledge(receipt)
            await case.clock.sleep(SECOND)

    async def both() -> None:
        worker = asyncio.create_task(work())
        await follow_run(
            case.engine.parts(),
            queue or case.queue,
            RUN,
            frozenset(hosts) or None,
            pace=PACE,
            tell=lambda _run, counts: told.append((counts.terminal, counts.expected)),
            warn=lambda waiting: warnings.append((case.clock.now() - began, waiting)),
            tell_outage=(outages if outages is not None else []).append,
        )
        worker.cancel()

    run_virtual(both(), case.clock)
    return told


def test_it_sends_the_heads_and_tells_how_far_the_run_is_until_nothing_is_left(case: Case) -> None:
    case.engine.register(urls(5, 3))
    begin_week(case.store, MONDAY, now=case.clock.now())
    assert case.queue.receive() == []  # dispatched, and nothing sent yet
    told = follow(case)
    assert (told[0], told[-1]) == ((0, 8), (8, 8))
    assert told == sorted(set(told))
    assert len(told) > 2


def test_it_returns_when_its_own_hosts_are_done_while_others_go_on(case: Case) -> None:
    case.engine.register(urls(1, 60))
    begin_week(case.store, MONDAY, now=case.clock.now())
    follow(case, "h0.example")
    left = {chain.host: chain.remaining for chain in case.store.chains(RUN)}
    assert left["h0.example"] == 0
    assert left["h1.example"] > 30


def test_it_adopts_what_a_dispatcher_began_and_asks_nobody_twice(case: Case) -> None:
    case.engine.register(urls(4, 2))
    case.begin()
    case.work()
    assert len(list(case.store.observations())) == 2
    assert follow(case)[0] == (2, 6)
    assert len(case.engine.internet.log) == 6


def test_a_run_that_nobody_works_on_ends_with_its_time(case: Case) -> None:
    case.engine.register(urls(1))
    case.begin()
    assert follow(case, works=False)[-1] == (1, 1)
    assert case.run().state is RunState.CLOSED
    assert case.clock.now() - MONDAY < timedelta(hours=6) + LONGEST_PAUSE + TICK_EVERY


def test_it_says_once_that_nobody_seems_to_work_while_messages_wait(case: Case) -> None:
    case.engine.register(urls(3, 1))
    case.begin()
    warned: list[tuple[timedelta, int]] = []
    assert follow(case, works_after=timedelta(minutes=20), warned=warned)[-1] == (4, 4)
    [(after, waiting)] = warned
    assert IDLE_AFTER <= after <= IDLE_AFTER + LONGEST_PAUSE
    assert waiting == 2


def test_it_does_not_take_a_host_that_rests_for_an_absent_worker(case: Case) -> None:
    case.engine.register(urls(1))
    case.engine.internet.script = lambda url, asked: Answer(status=429, retry_after="600") if not asked else Answer()
    case.begin()
    warned: list[tuple[timedelta, int]] = []
    follow(case, warned=warned)
    assert warned == []


def test_messages_that_were_lost_and_sent_again_are_no_sign_that_nobody_works(case: Case) -> None:
    case.engine.register(urls(2, 1))
    case.begin()
    for receipt in case.queue.receive(limit=10):
        case.queue.acknowledge(receipt)  # a purge, as the queue knows it
    warned: list[tuple[timedelta, int]] = []
    assert follow(case, warned=warned)[-1] == (3, 3)
    assert case.clock.now() > MONDAY + timedelta(minutes=4)
    assert warned == []


def test_who_may_not_look_into_the_queue_follows_all_the_same(case: Case) -> None:
    case.engine.register(urls(2))
    case.begin()
    queue = Faulty(case.queue, faults=0)  # it has no number of messages
    assert follow(case, queue=queue, works_after=timedelta(minutes=10))[-1] == (2, 2)  # type: ignore[arg-type]


def test_what_the_queue_lost_it_sends_again(case: Case) -> None:
    case.engine.register(urls(2))
    case.begin()
    for receipt in case.queue.receive(limit=10):
        case.queue.acknowledge(receipt)  # as if it had been purged
    assert follow(case)[-1] == (2, 2)


def test_a_long_outage_is_told_once_with_its_cause_and_waited_out(case: Case) -> None:
    case.engine.register(urls(2))
    begin_week(case.store, MONDAY, now=case.clock.now())
    outages: list[LinkwatchError | None] = []
    queue = Faulty(case.queue, faults=120)
    assert follow(case, queue=queue, outages=outages)[-1] == (2, 2)  # type: ignore[arg-type]
    assert [str(each) for each in outages] == ["not today", "None"]
    assert case.clock.now() - MONDAY > timedelta(minutes=45)


def test_a_queue_that_stays_away_is_told_in_the_end(case: Case) -> None:
    case.engine.register(urls(1))
    begin_week(case.store, MONDAY, now=case.clock.now())
    with pytest.raises(QueueError):
        follow(case, queue=Faulty(case.queue, faults=10_000), works=False)  # type: ignore[arg-type]
    assert LONGEST_OUTAGE <= case.clock.now() - MONDAY <= LONGEST_OUTAGE + LONGEST_PAUSE


def test_a_queue_that_is_not_there_is_told_at_once(case: Case) -> None:
    case.engine.register(urls(1))
    begin_week(case.store, MONDAY, now=case.clock.now())
    gone = SqsQueue(case.sqs, queue_url=NOWHERE, dead_letter_url=NOWHERE, wait=timedelta(0))
    outages: list[LinkwatchError | None] = []
    with pytest.raises(QueueUnusable, match="nobody-made-it"):
        follow(case, queue=gone, works=False, outages=outages)
    assert (outages, case.clock.now()) == ([], MONDAY)


def test_what_was_claimed_before_the_table_fell_out_is_sent_and_not_lost_for_minutes(case: Case) -> None:
    case.engine.register(urls(1, 1, 1))
    begin_week(case.store, MONDAY, now=case.clock.now())
    claim, claims = case.store.claim_start, iter((True, True))

    def fails_at_the_third(*args: Any, **given: Any) -> bool:
        if not next(claims, False):
            raise StoreUnavailable("not today")
        return claim(*args, **given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(case.store, "claim_start", fails_at_the_third)
        with pytest.raises(StoreUnavailable):
            case.tick()
    assert len(case.queue.receive(limit=10)) == 2
    assert case.tick() == 1


class Faulty:
    """A queue that fails the first calls of a tick."""

    def __init__(self, queue: Queue, *, faults: int) -> None:
        self._queue, self._faults = queue, faults
        self.send = queue.send

    def visible(self) -> int:
        raise QueueError("not yours to know")

    def dead_letters(self) -> object:
        self._faults -= 1
        if self._faults >= 0:
            raise QueueError("not today")
        return self._queue.dead_letters()
