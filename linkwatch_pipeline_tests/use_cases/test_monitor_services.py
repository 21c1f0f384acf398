"""One cycle a minute, side by side, never two at once; whoever is slow, down or wrong is nobody else's trouble."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from typing import TypeVar

import pytest

from linkwatch_pipeline.adapters.status_store.memory_queue import MemoryStatusQueue
from linkwatch_pipeline.domain.cycles import CycleStart
from linkwatch_pipeline.domain.errors import QueueError, StoreUnavailable, StoreUnusable
from linkwatch_pipeline.domain.fetching import FetchResult
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.service_status import Service, ServiceCheck, Status, decode_check
from linkwatch_pipeline.ports import HopGate, StatusQueue
from linkwatch_pipeline.use_cases.monitor_services import (
    WAIT_AT_START,
    CycleReport,
    LastKnown,
    Monitor,
    MonitorParts,
)
from linkwatch_pipeline_tests.use_cases.status_parts import ListDirectory, NoHistory, at_once
from linkwatch_pipeline_tests.virtual_clock import VirtualClock, run_virtual

T = TypeVar("T")
FIRST = CycleStart(number=0, due=0.0)


@dataclass
class ScriptedFetcher:
    """Answers by URL: (seconds, status or why there was none). Counts what goes on together."""

    clock: VirtualClock
    answers: dict[str, tuple[float, int | Reason | Exception]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    together: int = 0
    most_together: int = 0

    async def fetch(self, url: str, gate: HopGate) -> FetchResult:
        self.asked.append(url)
        seconds, answer = self.answers.get(url, (0.1, 200))
        began = self.clock.now()
        self.together += 1
        self.most_together = max(self.most_together, self.together)
        try:
            await self.clock.sleep(timedelta(seconds=seconds))
        finally:
            self.together -= 1
        if isinstance(answer, Exception):
            raise answer
        failure = answer if isinstance(answer, Reason) else None
        status = answer if isinstance(answer, int) and failure is None else None
        return FetchResult(status=status, failure=failure, final_url=url, started_at=began, ended_at=self.clock.now())

    async def aclose(self) -> None: ...


class Stage:
    """A monitor on a virtual clock, of services named by their URLs."""

    def __init__(self, *urls: str, concurrency: int = 50, begin_within: timedelta | None = None) -> None:
        self.clock = VirtualClock()
        self.directory = ListDirectory([service(url) for url in urls])
        self.fetcher = ScriptedFetcher(self.clock)
        numbers = count(1)
        self.memory = MemoryStatusQueue(self.clock, new_id=lambda: f"m{next(numbers)}")
        self.queue: StatusQueue = self.memory
        self.history = NoHistory()
        self.concurrency = concurrency
        self.begin_within = begin_within
        self.keep: timedelta | None = None

    def parts(self) -> MonitorParts:
        return MonitorParts(
            directory=self.directory,
            history=self.history,
            queue=self.queue,
            fetcher=self.fetcher,
            clock=self.clock,
            blocking=at_once,
            concurrency=self.concurrency,
            begin_within=self.begin_within,
            keep=self.keep,
        )

    def cycle(self, *, last_known: LastKnown | None = None) -> CycleReport:
        return run_virtual(Monitor(self.parts(), last_known).cycle(FIRST), self.clock)

    def run(self, *, minutes: float) -> list[CycleReport]:
        """Let it run for so long."""
        reports: list[CycleReport] = []

        async def for_a_while() -> None:
            async with asyncio.timeout(minutes * 60):
                await Monitor(self.parts()).run(reports.append)

        with pytest.raises(TimeoutError):
            run_virtual(for_a_while(), self.clock)
        return reports

    def sent(self) -> dict[str, ServiceCheck]:
        """The checks in the queue, by URL (one service each)."""
        checks: dict[str, ServiceCheck] = {}
        while messages := self.memory.receive():
            checks |= {(check := decode_check(message.body)).url: check for message in messages}
        return checks


def service(url: str, *, name: str = "", user_id: str = "u1") -> Service:
    return Service(id=name or f"s-{url}", user_id=user_id, name=name, url=url)


def test_each_service_gets_its_status_and_latency() -> None:
    stage = Stage("fast", "down", "gone")
    stage.fetcher.answers = {"fast": (0.0123456, 200), "down": (0.5, Reason.CONNECTION_REFUSED), "gone": (0.25, 404)}
    report = stage.cycle()
    sent = stage.sent()
    assert {url: (check.status, check.latency_ms) for url, check in sent.items()} == {
        "fast": (Status.UP, 12.35),
        "down": (Status.DOWN, 500.0),
        "gone": (Status.DOWN, 250.0),
    }
    assert (report.services, report.up, report.down, report.is_fine) == (3, 1, 2, True)


def test_a_slow_service_delays_nobody() -> None:
    urls = [f"u{number}" for number in range(50)]
    stage = Stage(*urls)
    stage.fetcher.answers = dict.fromkeys(urls[::10], (10.0, Reason.TIMEOUT))
    arrived: dict[str, float] = {}
    told = stage.memory.send

    class Watched:
        """Notes when each check is sent."""

        def send(self, checks: list[ServiceCheck]) -> list[ServiceCheck]:
            arrived.update({check.url: stage.clock.monotonic() for check in checks})
            return told(checks)

    stage.queue = Watched()  # type: ignore[assignment]  # only sending is looked at
    report = stage.cycle()
    assert report.took == timedelta(seconds=10)
    assert all(seconds == pytest.approx(10.0 if url in urls[::10] else 0.1) for url, seconds in arrived.items())


def test_no_more_than_fifty_are_asked_at_once() -> None:
    stage = Stage(*(f"u{number}" for number in range(170)))
    stage.cycle()
    assert stage.fetcher.most_together == 50
    assert len(stage.sent()) == 170


def test_a_cycle_ends_when_everything_is_sent_however_slow_the_queue_is() -> None:
    stage = Stage(*(f"u{number}" for number in range(25)))

    async def slowly(call: Callable[[], T], /) -> T:
        await stage.clock.sleep(timedelta(seconds=2))
        return call()

    report = run_virtual(Monitor(replace(stage.parts(), blocking=slowly)).cycle(FIRST), stage.clock)
    assert (report.up, report.unsent) == (25, 0)
    assert report.took >= timedelta(seconds=2 + 3 * 2)
    assert len(stage.sent()) == 25


def test_services_with_one_url_are_asked_once_and_each_gets_the_answer() -> None:
    stage = Stage()
    stage.directory.listed = [service("same", name=name, user_id=f"of-{name}") for name in ("a", "b", "a")]
    report = stage.cycle()
    checks = [decode_check(message.body) for message in stage.memory.receive()]
    assert stage.fetcher.asked == ["same"]
    assert [(check.service_id, check.user_id) for check in checks] == [("a", "of-a"), ("b", "of-b")]
    assert (report.services, report.asked, report.up) == (2, 1, 2)


def test_cycles_begin_every_sixty_seconds_whatever_they_take() -> None:
    stage = Stage("a", "b")
    stage.fetcher.answers = {"a": (7.3, 200)}
    reports = stage.run(minutes=10.5)
    assert [report.began_at for report in reports] == [
        stage.clock.start + number * timedelta(seconds=60) for number in range(11)
    ]
    assert all(report.is_fine and report.late == timedelta(0) for report in reports)


def test_a_cycle_that_takes_too_long_is_never_overlapped_and_the_next_one_says_so() -> None:
    stage = Stage("a", "b", "c", concurrency=1)
    stage.fetcher.answers = dict.fromkeys("abc", (25.0, 200))
    reports = stage.run(minutes=5)
    assert stage.fetcher.most_together == 1
    assert [(report.began_at - stage.clock.start).total_seconds() for report in reports] == [0, 120]
    assert [report.skipped for report in reports] == [0, 1]
    assert not reports[1].is_fine


def test_what_would_not_be_done_in_time_is_left_out_and_counted() -> None:
    stage = Stage("a", "b", "c", concurrency=1, begin_within=timedelta(seconds=15))
    stage.fetcher.answers = dict.fromkeys("abc", (10.0, 200))
    report = stage.cycle()
    assert (report.up, report.left_out, report.is_fine) == (2, 1, False)


def test_whoever_is_left_out_is_another_one_in_the_next_cycle() -> None:
    stage = Stage(*"abcd", concurrency=1, begin_within=timedelta(seconds=15))
    stage.fetcher.answers = dict.fromkeys("abcd", (10.0, 200))
    stage.run(minutes=3.9)
    assert set(stage.fetcher.asked) == set("abcd")


def test_a_fault_of_ours_is_no_status_and_ends_nobody_elses_check(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage("ours", "inside", "fine")
    stage.fetcher.answers = {"ours": (0.1, Reason.INTERNAL), "inside": (0.1, RuntimeError("trouble"))}
    report = stage.cycle()
    assert list(stage.sent()) == ["fine"]
    assert (report.faults, report.up, report.down, report.is_fine) == (2, 1, 0, False)
    assert "check failed inside" in caplog.text


def test_a_refused_address_is_down_with_a_logged_reason(caplog: pytest.LogCaptureFixture) -> None:
    stage, url = Stage(), "http://10.0.0.1/?token=s3cret"
    stage.directory.listed = [service(url, name="inner")]
    stage.fetcher.answers = {url: (0.0, Reason.BLOCKED_ADDRESS)}
    with caplog.at_level(logging.WARNING):
        stage.cycle()
    (message,) = stage.memory.receive()
    assert (decode_check(message.body).status, message.refused) == (Status.DOWN, True)
    (line,) = [record for record in caplog.records if getattr(record, "action", "") == "refused"]
    assert getattr(line, "reason", "") == "blocked_address"
    assert "s3cret" not in str(line.__dict__)


class _DeafQueue:
    """Takes nothing, or only the first of each call."""

    def __init__(self, *, takes_first: bool) -> None:
        self._takes_first = takes_first

    def send(self, checks: list[ServiceCheck]) -> list[ServiceCheck]:
        if not self._takes_first:
            raise QueueError("not there")
        return checks[1:]


@pytest.mark.parametrize("takes_first", [True, False])
def test_statuses_that_the_queue_did_not_take_are_counted(takes_first: bool) -> None:
    stage = Stage("a", "b", "c")
    stage.queue = _DeafQueue(takes_first=takes_first)  # type: ignore[assignment]  # only sending is looked at
    report = stage.cycle()
    assert report.up == (1 if takes_first else 0)
    assert (report.up + report.unsent, report.is_fine) == (3, False)


def test_without_the_database_the_last_known_services_go_on_being_checked() -> None:
    stage, last_known = Stage("a", "b"), LastKnown()
    stage.directory.trouble = StoreUnavailable("down")
    with pytest.raises(StoreUnavailable):
        stage.cycle(last_known=last_known)
    stage.directory.trouble = None
    stage.cycle(last_known=last_known)
    stage.directory.trouble = StoreUnavailable("down")
    report = stage.cycle(last_known=last_known)
    assert (report.up, report.from_memory, report.is_fine) == (2, True, False)


def test_a_database_that_is_started_after_the_monitor_is_waited_for() -> None:
    stage = Stage("a")
    stage.directory.trouble = StoreUnavailable("down")
    stage.directory.mended_after = 3
    reports = stage.run(minutes=2)
    assert [(report.began_at - stage.clock.start).total_seconds() for report in reports] == [15, 75]
    assert all(report.is_fine for report in reports)


def test_a_database_that_never_answers_ends_the_start_after_two_minutes() -> None:
    stage = Stage("a")
    stage.directory.trouble = StoreUnavailable("down")
    with pytest.raises(StoreUnavailable, match=r"down\. .*start the database or mend DATABASE_URL"):
        run_virtual(Monitor(stage.parts()).run(lambda report: None), stage.clock)
    assert stage.clock.now() - stage.clock.start == WAIT_AT_START


def test_a_database_that_is_not_as_it_should_be_is_not_waited_for() -> None:
    stage = Stage("a")
    stage.directory.trouble = StoreUnusable("no such table")
    with pytest.raises(StoreUnusable):
        run_virtual(Monitor(stage.parts()).run(lambda report: None), stage.clock)
    assert stage.clock.now() == stage.clock.start


def test_what_was_answered_before_an_interruption_is_sent() -> None:
    stage = Stage("fast", "slow")
    stage.fetcher.answers = {"slow": (10.0, 200)}

    async def interrupted() -> None:
        async with asyncio.timeout(5):
            await Monitor(stage.parts()).cycle(FIRST)

    with pytest.raises(TimeoutError):
        run_virtual(interrupted(), stage.clock)
    assert list(stage.sent()) == ["fast"]


@pytest.mark.parametrize(("keep", "pruned"), [(None, 0), (timedelta(hours=48), 2)])
def test_old_rows_are_deleted_once_an_hour_and_only_if_that_is_switched_on(keep: timedelta | None, pruned: int) -> None:
    stage = Stage("a")
    stage.keep = keep
    stage.run(minutes=60.5)
    assert stage.history.pruned == [
        stage.clock.start + timedelta(minutes=60 * number) + timedelta(seconds=0.1) - timedelta(hours=48)
        for number in range(pruned)
    ]
