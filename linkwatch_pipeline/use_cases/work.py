"""Work on a run in this process: up to `concurrency` visits at once, the hosts with the most work left first.

The queue lives and dies with the process; the truth is in the store. So beginning again means: send the heads again,
those of the longest chains first, and of the others when their turn comes (`host_window`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from linkwatch_pipeline.domain.errors import StoreError
from linkwatch_pipeline.domain.redaction import fault_in_our_words
from linkwatch_pipeline.domain.runs import DEFER_SLACK, RESEND_AFTER, CheckJob, HostChain, JobRecord, JobStatus
from linkwatch_pipeline.domain.scheduling import WorkBook
from linkwatch_pipeline.ports import Progress, Queue, Receipt, Store
from linkwatch_pipeline.use_cases.check import check_job
from linkwatch_pipeline.use_cases.dead_letters import settle_dead_letters
from linkwatch_pipeline.use_cases.dispatch import due_head
from linkwatch_pipeline.use_cases.host_window import MOST_HELD, HostWindow, count_jobs
from linkwatch_pipeline.use_cases.sleeping import sleep_until_changed
from linkwatch_pipeline.use_cases.tick import mended_heads
from linkwatch_pipeline.use_cases.visit import CheckParts

logger = logging.getLogger(__name__)

TICK_EVERY = timedelta(minutes=1)
# How soon a message comes back after a failure of ours; the queue gives up after its own number of deliveries.
FAILED_COMES_BACK_AFTER = timedelta(seconds=10)


class LocalOrder:
    """Which visible message a worker should take: the in-memory queue asks it (`WorkOrder`)."""

    def __init__(self, book: WorkBook) -> None:
        self._book = book
        self._hosts: dict[str, str] = {}
        self.busy = 0

    def expect_message(self, job: JobRecord) -> None:
        """Remember the host of a message: messages do not carry it."""
        self._hosts[job.job_id] = job.host

    def host_of(self, message: CheckJob) -> str:
        """Its host; empty for one more copy of a job that is over."""
        return self._hosts.get(message.job_id, "")

    def forget(self, message: CheckJob) -> None:
        """The job is over."""
        self._hosts.pop(message.job_id, None)

    def urgency(self, message: CheckJob) -> float:
        """Seconds of work left on the message's host."""
        return self._book.work_left(self.host_of(message))

    def admits(self, message: CheckJob) -> bool:
        """Whether the most urgent message may take a slot now, or the last one is kept for a critical host."""
        return self._book.is_critical(self.host_of(message)) or not self._book.keeps_last_slot(self.busy)


class _Watching:
    """Passes progress on and counts the jobs that ended: those of one visit, and all of them in the window."""

    def __init__(self, watcher: Progress, window: HostWindow) -> None:
        self._watcher = watcher
        self._window = window
        self.jobs_ended = 0

    def job_ended(self, job: JobRecord, end: str) -> None:
        self.jobs_ended += 1
        self._window.job_ended(job.host)
        self._watcher.job_ended(job, end)

    def note(self, text: str) -> None:
        self._watcher.note(text)


@dataclass(slots=True)
class LocalWork:
    """One run being worked on in this process. Use `work_on`; a fresh one each time.

    Args:
        make_queue: builds the in-memory queue around the order.
        hosts: those that are waited for; None: all. The others are worked on meanwhile, so how hosts are grouped
            never changes the pace.
        most_held: how many hosts are held in memory before the others wait in the store.
    """

    parts: CheckParts
    run_id: str
    expires_at: datetime
    concurrency: int
    make_queue: Callable[[LocalOrder], Queue]
    hosts: frozenset[str] | None = None
    most_held: int = MOST_HELD
    book: WorkBook = field(init=False)
    order: LocalOrder = field(init=False)
    queue: Queue = field(init=False)
    window: HostWindow = field(init=False)
    _running: set[asyncio.Task[None]] = field(default_factory=set)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _taking_in: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.book = WorkBook(concurrency=self.concurrency, cooldown=self.parts.cooldown)
        self.order = LocalOrder(self.book)
        self.queue = self.make_queue(self.order)
        self.window = HostWindow(self.book, self.hosts, most=self.most_held)

    async def send(self, job: JobRecord, delay: timedelta) -> None:
        if not self.window.keeps(job.host):
            self.window.put_back(job.host)
            self._wake.set()
            return
        self.order.expect_message(job)
        visible_at = self.parts.clock.now() + delay
        self.window.sent(job.host, visible_at=visible_at, is_near=self._is_near(delay))
        if delay > self.parts.cooldown:
            self.book.pause(job.host)
        self.queue.send([job.message], delay=delay)
        self._wake.set()

    async def work_on(self) -> None:
        """Work until the hosts that are waited for have nothing left in this run, or its time is up.

        Visits that go on at the end are awaited. Cancelled, it cancels its visits, and each leaves its host.
        """
        await self._begin()
        ticking = asyncio.create_task(self._tick_for_ever())
        try:
            while not self.window.is_done and self.parts.clock.now() < self.expires_at:
                if self.window.wants_more:
                    await self._take_in(ready_by=self.parts.clock.now() + DEFER_SLACK)
                self._fill_slots()
                await self._pause(ticking)
            await self._drain()
        finally:
            ticking.cancel()
            for task in self._running:
                task.cancel()
            await asyncio.gather(ticking, *self._running, return_exceptions=True)

    async def _begin(self) -> None:
        await self._count()
        await self._take_in(ready_by=None)

    async def _count(self) -> None:
        store, held = self.parts.store, self.window.hosts()
        count = partial(count_jobs, watched=self.hosts, held=held)
        self.window.count(await self.parts.blocking(lambda: count(store.chains(self.run_id))))

    async def _take_in(self, *, ready_by: datetime | None) -> None:
        """Send the heads of the hosts that come next. Hosts that are held already are left alone."""
        async with self._taking_in:
            held, now = self.window.hosts(), self.parts.clock.now()
            limit = max(len(held) + self.most_held // 2, self.most_held)
            self.window.look_for_more()
            chains, due = await self.parts.blocking(lambda: self._next_heads(held, limit, ready_by, now))
            self.window.found(chains, limit=limit)
            for chain, job, delay in due:
                if self.window.is_full and not self._is_near(delay):
                    # Its turn comes when it may be visited.
                    await self.parts.blocking(partial(self.parts.store.defer_head, job, until=now + delay, now=now))
                else:
                    self.window.hold(chain, now=now)
                    await self.send(job, delay)

    def _is_near(self, delay: timedelta) -> bool:
        return delay <= max(self.parts.cooldown, DEFER_SLACK)

    def _next_heads(
        self, held: frozenset[str], limit: int, ready_by: datetime | None, now: datetime
    ) -> tuple[Sequence[HostChain], list[tuple[HostChain, JobRecord, timedelta]]]:
        store = self.parts.store
        chains = store.longest_chains(self.run_id, limit=limit, ready_by=ready_by)
        found = []
        for chain in (each for each in chains if each.host not in held):
            whole = chain if chain.head is not None else store.rechain(self.run_id, chain.host, now=now)
            if whole is not None and (due := due_head(store, whole, now=now)) is not None:
                found.append((whole, *due))
        return chains, found

    def _fill_slots(self) -> None:
        while len(self._running) < self.concurrency:
            self.order.busy = len(self._running)
            received = self.queue.receive(limit=1)
            if not received:
                return
            task = asyncio.create_task(self._visit(received[0]))
            self._running.add(task)
            task.add_done_callback(self._visit_ended)

    def _visit_ended(self, task: asyncio.Task[None]) -> None:
        self._wake.set()
        if task.cancelled() or task.exception() is None:
            self._running.discard(task)  # a failed one stays, to be raised by `_pause` or `_drain`

    async def _visit(self, receipt: Receipt) -> None:
        message, host = receipt.job, self.order.host_of(receipt.job)
        watching, started = self._watching(), self.parts.clock.monotonic()
        self.window.received(host)
        self.book.begin(host)
        try:
            await check_job(self.parts.watched_by(watching), message, self.send)
        except StoreError:
            raise  # the store is the truth: without it nothing may go on
        except Exception as fault:
            extra = {"action": "check_failed", "job_id": message.job_id, "error": type(fault).__name__}
            logger.error("check failed: %s", fault_in_our_words(fault), extra=extra)
            self.queue.change_visibility(receipt, delay=FAILED_COMES_BACK_AFTER)
        else:
            self.queue.acknowledge(receipt)
        finally:
            took = timedelta(seconds=self.parts.clock.monotonic() - started)
            self.book.end(host, took=took, jobs_done=watching.jobs_ended)
            self.window.visit_ended(host, now=self.parts.clock.now())
            if watching.jobs_ended or not self.window.holds(host):
                self.order.forget(message)

    def _watching(self) -> _Watching:
        return _Watching(self.parts.progress, self.window)

    async def _pause(self, ticking: asyncio.Task[None]) -> None:
        """Wait for a visit to end, a message to become visible, or the run's time to be up."""
        self._raise_failures(ticking)
        if self._wake.is_set():
            self._wake.clear()
            await asyncio.sleep(0)
            return
        wait = self.expires_at - self.parts.clock.now()
        visible_in = self.queue.next_visible_in()
        if visible_in is not None and visible_in > timedelta(0):
            wait = min(wait, visible_in)
        await sleep_until_changed(self.parts.clock, max(wait, timedelta(0)), self._wake)
        self._wake.clear()

    def _raise_failures(self, ticking: asyncio.Task[None]) -> None:
        for task in [*self._running, ticking]:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _drain(self) -> None:
        while self._running:
            done, self._running = await asyncio.wait(self._running)
            for task in done:
                task.result()

    async def _tick_for_ever(self) -> None:
        while True:
            await self.parts.clock.sleep(TICK_EVERY)
            await self._tick()

    async def _tick(self) -> None:
        store, now = self.parts.store, self.parts.clock.now()
        run = await self.parts.blocking(lambda: store.get_run(self.run_id))
        if run is None or run.state.is_over:
            return
        await self._send_lost_heads(now)
        # This queue dies with the process: the abandoned job in the store is what remains of a letter.
        settle = partial(settle_dead_letters, store, self.queue, now=now, keep=False)
        for settled in await self.parts.blocking(lambda: list(settle())):
            self._watching().job_ended(settled.job, JobStatus.ABANDONED.value)
            self.book.end_unvisited(settled.job.host)
            self.order.forget(settled.job.message)
            if settled.following is not None:
                await self.send(*settled.following)
        if self.window.is_idle and not self._running:
            await self._count()
        if self.window.may_want_more:
            await self._take_in(ready_by=now + 2 * TICK_EVERY)
        self._wake.set()  # nothing may be left after all

    async def _send_lost_heads(self, now: datetime) -> None:
        """Those of held hosts: the others have no message, and none of theirs can be lost."""
        store = self.parts.store
        for host in self.window.silent_since(now - RESEND_AFTER):
            chain = await self.parts.blocking(partial(store.get_chain, self.run_id, host))
            if chain is None or not chain.remaining:
                self.window.drop(host)
                continue
            for job, delay in await self.parts.blocking(partial(_mended_heads, store, chain, now)):
                await self.send(job, delay)


def _mended_heads(store: Store, chain: HostChain, now: datetime) -> list[tuple[JobRecord, timedelta]]:
    return list(mended_heads(store, [chain], now=now))
