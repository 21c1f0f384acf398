"""The real engine on a real store in virtual time, over a scripted internet."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from linkwatch_pipeline.adapters.queue.memory import MemoryQueue
from linkwatch_pipeline.adapters.store.sqlite import SqliteStore
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.runs import JobRecord, Run
from linkwatch_pipeline.domain.urls import host_key
from linkwatch_pipeline.use_cases.host_window import MOST_HELD
from linkwatch_pipeline.use_cases.observe_week import begin_week, current_run, finish_run, observe_hosts
from linkwatch_pipeline.use_cases.visit import CheckParts
from linkwatch_pipeline_tests.simulation.scripted_internet import Script, ScriptedInternet
from linkwatch_pipeline_tests.virtual_clock import VirtualClock, run_virtual

T = TypeVar("T")
MONDAY = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)


@dataclass(slots=True)
class Ended:
    """Progress that remembers how each job ended."""

    ends: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def job_ended(self, job: JobRecord, end: str) -> None:
        assert job.job_id not in self.ends, f"{job.job_id} ended twice"
        self.ends[job.job_id] = end

    def note(self, text: str) -> None:
        self.notes.append(text)


class Engine:
    """One home: a store, a clock and an internet. Everything runs on the loop's thread, so time is exact."""

    def __init__(self, folder: Path, script: Script, *, seed: int = 1, concurrency: int = 20) -> None:
        self.clock = VirtualClock(MONDAY)
        self.store = SqliteStore.open(folder / "linkwatch.sqlite3")
        self.internet = ScriptedInternet(clock=self.clock, script=script)
        self.progress = Ended()
        self.chance = random.Random(seed)
        self.concurrency = concurrency
        self.worker = "worker-1"
        self.allowances: dict[str, int] = {}
        self.most_held = MOST_HELD

    def parts(self) -> CheckParts:
        async def blocking(call: Callable[[], T], /) -> T:
            before = self.clock.now()
            result = call()
            assert self.clock.now() == before, "virtual time passed inside a commit"
            return result

        return CheckParts(
            store=self.store,
            fetcher=self.internet,
            clock=self.clock,
            chance=self.chance,
            blocking=blocking,
            progress=self.progress,
            worker=self.worker,
            cooldown=timedelta(seconds=1),
            skew=timedelta(0),
            default_confirm=1,
            allowances=self.allowances,
        )

    def register(self, urls: Iterable[str]) -> None:
        for number, url in enumerate(urls):
            link = Link(
                id=f"link-{number:05d}",
                url=url,
                host=host_key(url),
                owner="docs",
                active_since=MONDAY - timedelta(days=1),
                allocations={},
            )
            self.store.save_link(link, replaces=None)

    def observe(self, *, hosts: Iterable[str] | None = None, week: datetime = MONDAY) -> Run:
        """Begin or resume the week's current run, work on it, and close it if it is over."""
        run = begin_week(self.store, week, now=self.clock.now(), allowances=self.allowances)
        if run.state.is_over:
            return run
        run_virtual(self.work(run, hosts), self.clock)
        return finish_run(self.store, run.run_id, now=self.clock.now())

    async def work(self, run: Run, hosts: Iterable[str] | None = None) -> None:
        await observe_hosts(
            self.parts(),
            run,
            hosts,
            concurrency=self.concurrency,
            make_queue=lambda order: MemoryQueue(self.clock, order=order),
            most_held=self.most_held,
        )

    def week_is_over(self, week: datetime = MONDAY) -> bool:
        weekly = begin_week(self.store, week, now=self.clock.now())
        return current_run(self.store, weekly).state.is_over
