"""Runs whose work goes over a durable queue that many workers share: beginning one, the tick, and a worker (SPEC 7).

The queue holds ready work only; what it loses, the tick sends again. So nothing here has to be done exactly once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from enum import Enum, auto
from functools import partial
from itertools import chain, islice

from linkwatch_pipeline.domain.allowances import NO_ALLOWANCES, Allowances
from linkwatch_pipeline.domain.errors import LinkwatchError, QueueError, QueueUnusable, StoreError
from linkwatch_pipeline.domain.hosts import LONGEST_DEFERRAL
from linkwatch_pipeline.domain.planning import Pace
from linkwatch_pipeline.domain.runs import CheckJob, JobRecord, Run
from linkwatch_pipeline.ports import Queue, Receipt, Store
from linkwatch_pipeline.use_cases.check import check_job
from linkwatch_pipeline.use_cases.damage import Damage
from linkwatch_pipeline.use_cases.dead_letters import settle_dead_letters
from linkwatch_pipeline.use_cases.dispatch import HasTime, SendHead, always, dispatch_run, planned_heads
from linkwatch_pipeline.use_cases.enqueue import check_enqueued
from linkwatch_pipeline.use_cases.outages import about, let_go, postpone, store_is_out, wait_for_store
from linkwatch_pipeline.use_cases.start_week import start_week
from linkwatch_pipeline.use_cases.tick import tick
from linkwatch_pipeline.use_cases.visit import CheckParts

logger = logging.getLogger(__name__)

MOST_PER_RECEIVE = 10
QUEUE_FAILED_PAUSE = timedelta(seconds=5)
# Heads claimed before any of them is sent: a crash in between loses them until the tick finds them lost.
_SENT_TOGETHER = 100
_SECOND = timedelta(seconds=1)


def begin_on_queue(
    store: Store,
    queue: Queue,
    intended_at: datetime,
    *,
    pace: Pace,
    now: datetime,
    allowances: Allowances = NO_ALLOWANCES,
    has_time: HasTime = always,
) -> Run:
    """The week's run, dispatched, with the heads on their way that are planned to start soon.

    Repeating it, or a tick, resumes what is half done, and nothing is sent twice on purpose. A run that is over is
    returned as it is; one for which there is no time left (`has_time`), dispatching.

    Raises: InvalidInput for a week that has not begun, StoreError, QueueError.
    """
    run = start_week(store, intended_at, now=now)
    if run.state.is_over or now >= run.expires_at:
        return run
    run = dispatch_run(store, run, now=now, allowances=allowances, has_time=has_time)
    send_heads(queue, planned_heads(store, run, pace=pace, now=now))
    return run


async def tick_on_queue(parts: CheckParts, queue: Queue, *, pace: Pace, has_time: HasTime = always) -> int:
    """See to every open run: send what is due or was lost, end what became a dead letter, close what is over.

    Returns: how many messages were sent; nothing is done without an open run.
    """
    store, now = parts.store, parts.clock.now()
    if not await parts.blocking(lambda: any(store.runs(open_only=True, damaged=Damage()))):
        return 0
    settled = await parts.blocking(lambda: list(settle_dead_letters(store, queue, now=now, keep=True)))
    following = [letter.following for letter in settled if letter.following is not None]
    due = partial(tick, store, now=now, allowances=parts.allowances, pace=pace, has_time=has_time)
    return await parts.blocking(lambda: send_heads(queue, chain(following, due())))


def send_heads(queue: Queue, due: Iterable[tuple[JobRecord, timedelta]]) -> int:
    """Send jobs with their delays, those with the same whole second together; how many.

    What the queue does not take stops nothing else and is offered once more at the end, since a claimed head that
    nobody sends waits for four minutes until the tick takes it for lost: what was claimed before the store failed is
    sent too. Raises QueueError if it is not taken then, QueueUnusable at once, StoreError.
    """
    sent, waiting = 0, iter(due)
    refused: list[tuple[list[CheckJob], timedelta]] = []
    fault: StoreError | None = None
    while fault is None:
        some, fault = _claimed(waiting)
        if not some:
            break
        by_delay: dict[timedelta, list[CheckJob]] = {}
        for job, delay in some:
            by_delay.setdefault(-(-delay // _SECOND) * _SECOND, []).append(job.message)
        for delay, jobs in by_delay.items():
            try:
                queue.send(jobs, delay=delay)
            except QueueUnusable:
                raise
            except QueueError as error:
                logger.warning("queue did not take messages", extra={"action": "send", "error": str(error)})
                refused.append((jobs, delay))
        sent += len(some)
    for jobs, delay in refused:
        queue.send(jobs, delay=delay)
    if fault is not None:
        raise fault
    return sent


def _claimed(due: Iterator[tuple[JobRecord, timedelta]]) -> tuple[list[tuple[JobRecord, timedelta]], StoreError | None]:
    """The next heads, each claimed as it is taken; and what the store failed with, if it did before they were all."""
    some: list[tuple[JobRecord, timedelta]] = []
    try:
        some.extend(islice(due, _SENT_TOGETHER))  # keeps what came before a fault
    except StoreError as error:
        return some, error
    return some, None


def sender_to(parts: CheckParts, queue: Queue) -> SendHead:
    """How a check puts its host's next job on its way.

    Whoever receives it adds the skew of clocks to the host's rest: without it here, each message would come too early
    by that, be deferred, and cost a second one.
    """

    async def send(job: JobRecord, delay: timedelta) -> None:
        rest = min(delay + parts.skew, LONGEST_DEFERRAL) if delay else delay
        await parts.blocking(lambda: queue.send([job.message], delay=rest))

    return send


async def check_messages(parts: CheckParts, queue: Queue, messages: Sequence[CheckJob]) -> list[bool]:
    """Check side by side; for each whether it may be acknowledged. What failed has been logged."""
    await let_go(parts)
    ends = await asyncio.gather(*(_checked(parts, queue, message) for message in messages))
    return [end in _ACKNOWLEDGED for end in ends]


class _End(Enum):
    """What became of a message in our hands."""

    DONE = auto()
    FAILED = auto()
    POSTPONED = auto()  # the store cannot serve: a copy comes later
    STRANDED = auto()  # the store cannot serve, and the queue did not take the copy


_ACKNOWLEDGED = (_End.DONE, _End.POSTPONED)


async def _checked(parts: CheckParts, queue: Queue, message: CheckJob) -> _End:
    try:
        if message.is_by_hand:
            await check_enqueued(parts, queue, message)
        else:
            await check_job(parts, message, sender_to(parts, queue))
    except Exception as fault:
        if await store_is_out(parts, fault):
            return _End.POSTPONED if await postpone(parts, queue, message, fault) else _End.STRANDED
        # a fault of ours: the message comes back, and in the end becomes a dead letter
        logger.exception("check failed", extra=about(message, "check_failed"))
        return _End.FAILED
    return _End.DONE


async def work_on_queue(parts: CheckParts, queue: Queue, *, concurrency: int, stop: asyncio.Event) -> int:
    """Receive and check up to `concurrency` messages side by side until `stop` is set; then end what was begun.

    While the store cannot serve nothing is received, and what was received is postponed: no message uses up its
    deliveries for that. A receive that goes on when `stop` is set is awaited, and what it brings is given back at once.

    Returns: how many messages were acknowledged.
    """
    return await _QueueWorker(parts, queue, concurrency).work_until(stop)


class _QueueWorker:
    """One process working on the queue. Not reused."""

    def __init__(self, parts: CheckParts, queue: Queue, concurrency: int) -> None:
        self._parts = parts
        self._queue = queue
        self._concurrency = concurrency
        self._running: set[asyncio.Task[None]] = set()
        self._acknowledged = 0
        self._store_is_out = False

    async def work_until(self, stop: asyncio.Event) -> int:
        stopping = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                if self._store_is_out:
                    await wait_for_store(self._parts, stopping)
                    await let_go(self._parts)
                    self._store_is_out = False
                    continue
                free = self._concurrency - len(self._running)
                if not free:
                    await asyncio.wait({stopping, *self._running}, return_when=asyncio.FIRST_COMPLETED)
                    continue
                for receipt in await self._receive(min(free, MOST_PER_RECEIVE)):
                    await self._begin(receipt, give_back=stop.is_set())
            await asyncio.gather(*self._running)
        finally:
            stopping.cancel()
        return self._acknowledged

    async def _begin(self, receipt: Receipt, *, give_back: bool) -> None:
        if give_back:
            with suppress(LinkwatchError):  # it comes back by itself, a little later
                await asyncio.to_thread(self._queue.change_visibility, receipt, delay=timedelta(0))
        else:
            task = asyncio.create_task(self._handle(receipt))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _receive(self, most: int) -> list[Receipt]:
        try:
            # In a thread of its own: a long poll must hold up neither the loop nor the store.
            return await asyncio.to_thread(self._queue.receive, limit=most)
        except QueueError as error:
            logger.warning("queue cannot serve", extra={"action": "receive", "error": str(error)})
            await self._parts.clock.sleep(QUEUE_FAILED_PAUSE)
            return []

    async def _handle(self, receipt: Receipt) -> None:
        end = await _checked(self._parts, self._queue, receipt.job)
        self._store_is_out |= end in (_End.POSTPONED, _End.STRANDED)
        if end not in _ACKNOWLEDGED:
            return
        with suppress(LinkwatchError):  # it comes back, is found done, and is acknowledged then
            await asyncio.to_thread(self._queue.acknowledge, receipt)
            self._acknowledged += 1
