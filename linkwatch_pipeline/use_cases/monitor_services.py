"""The monitor: one cycle a minute, in which every active service is asked once, side by side (SPEC 13).

Each answer is sent as soon as it is there, so a slow service delays nobody, and whoever is stopped in mid-cycle has
told what it knew.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.cycles import CycleStart, Grid
from linkwatch_pipeline.domain.errors import QueueError, StoreError, StoreUnavailable
from linkwatch_pipeline.domain.fetching import FetchResult
from linkwatch_pipeline.domain.hosts import Departure
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.redaction import redacted_url
from linkwatch_pipeline.domain.service_status import (
    CYCLE,
    Service,
    ServiceCheck,
    check_of,
    grouped_by_url,
    turned,
)
from linkwatch_pipeline.ports import Clock, Fetcher, RunBlocking, ServiceDirectory, StatusHistory, StatusQueue
from linkwatch_pipeline.use_cases.process_statuses import prune_history

logger = logging.getLogger(__name__)

CONCURRENCY = 50
PRUNE_EVERY = 60  # cycles
WAIT_AT_START = timedelta(minutes=2)
LOOK_AGAIN_AFTER = timedelta(seconds=5)
_START_AGAIN = "start the database or mend DATABASE_URL, then start this again."
_SENT_TOGETHER = 10  # what SQS takes in one call


class OpenGate:
    """Every hop is admitted at once: a team's own services are asked once a minute, and expect it."""

    async def enter(self, host: str) -> None:
        """Let in."""

    async def leave(self, departure: Departure) -> None:
        """Nothing to remember."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorParts:
    """What a monitor is made of.

    `concurrency` is how many URLs are asked at once. `begin_within` is how long after its beginning a cycle still asks
    (None: to its end): where a process is killed at a fixed time, what would not be done by then is better left out.
    `keep` is how old rows get before they are deleted; None deletes none, ever.
    """

    directory: ServiceDirectory
    history: StatusHistory
    queue: StatusQueue
    fetcher: Fetcher
    clock: Clock
    blocking: RunBlocking
    concurrency: int = CONCURRENCY
    begin_within: timedelta | None = None
    keep: timedelta | None = None


@dataclass(slots=True)
class LastKnown:
    """Whom a process watched last, for when the database does not answer. None before the first time."""

    services: list[Service] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleReport:
    """One cycle: how many services were to be checked, and what became of each.

    `up`, `down` and `unsent` (their message was not accepted) had an answer; `faults` had none by our own fault,
    `left_out` were not asked for want of time. `asked` is how many URLs were fetched. `late` is how long after it was
    due the cycle began, `skipped` how many cycles went by since the one before. `from_memory`: the services are those
    of an earlier cycle, since the database does not answer.
    """

    number: int
    began_at: datetime
    services: int
    asked: int
    up: int
    down: int
    unsent: int
    faults: int
    left_out: int
    took: timedelta
    late: timedelta
    skipped: int
    from_memory: bool

    @property
    def is_fine(self) -> bool:
        """Whether every service got its status on time."""
        return not (self.unsent or self.faults or self.left_out or self.skipped or self.from_memory)


class Monitor:
    """Checks all services, again and again.

    Args: last_known: shared by monitors of one process that follow each other.
    """

    def __init__(self, parts: MonitorParts, last_known: LastKnown | None = None) -> None:
        self._parts = parts
        self._last_known = last_known if last_known is not None else LastKnown()

    async def run(self, tell: Callable[[CycleReport], None]) -> None:
        """Cycles on a grid of 60 s until cancelled. Raises StoreError if the services were never readable."""
        await self._wait_for_services()
        clock = self._parts.clock
        grid = Grid(anchor=clock.monotonic(), length=CYCLE)
        start = grid.first
        while True:
            await clock.sleep(timedelta(seconds=max(start.due - clock.monotonic(), 0.0)))
            tell(await self.cycle(start))
            start = grid.after(start, clock.monotonic())

    async def cycle(self, start: CycleStart) -> CycleReport:
        """Check every service once and hand the results over."""
        clock = self._parts.clock
        began_at, began = clock.now(), clock.monotonic()
        services, from_memory = await self._services()
        groups = turned(grouped_by_url(services), start.number)
        round_ = _Round(self._parts, began)
        await round_.ask(groups)
        report = CycleReport(
            number=start.number,
            began_at=began_at,
            services=sum(map(len, groups)),
            asked=round_.asked,
            up=round_.counts["UP"],
            down=round_.counts["DOWN"],
            unsent=round_.counts["unsent"],
            faults=round_.counts["fault"],
            left_out=round_.counts["left_out"],
            took=timedelta(seconds=clock.monotonic() - began),
            late=timedelta(seconds=max(began - start.due, 0.0)),
            skipped=start.skipped,
            from_memory=from_memory,
        )
        _log_cycle(report)
        await self._prune(start.number)
        return report

    async def _wait_for_services(self) -> None:
        """Read them once: the database may be started together with this process, and be later."""
        clock, directory = self._parts.clock, self._parts.directory
        gives_up = clock.monotonic() + WAIT_AT_START.total_seconds()
        while self._last_known.services is None:
            try:
                self._last_known.services = await self._parts.blocking(directory.services)
            except StoreUnavailable as error:
                if clock.monotonic() >= gives_up:
                    raise StoreUnavailable(f"{error}. It was waited for; {_START_AGAIN}") from error
                logger.warning("not begun yet: %s; waiting for it", error, extra={"action": "monitor"})
                await clock.sleep(LOOK_AGAIN_AFTER)

    async def _services(self) -> tuple[list[Service], bool]:
        try:
            services = await self._parts.blocking(self._parts.directory.services)
        except StoreError as error:
            if self._last_known.services is None:
                raise
            logger.error("services cannot be read, the last known are checked: %s", error, extra={"action": "monitor"})
            return self._last_known.services, True
        self._last_known.services = services
        return services, False

    async def _prune(self, cycle: int) -> None:
        keep, history, now = self._parts.keep, self._parts.history, self._parts.clock.now()
        if keep is None or cycle % PRUNE_EVERY:
            return
        try:
            await self._parts.blocking(lambda: prune_history(history, now=now, keep=keep))
        except StoreError as error:
            logger.error("old rows not deleted: %s", error, extra={"action": "prune"})


class _Round:
    """One pass over all URLs. `counts` is by end."""

    def __init__(self, parts: MonitorParts, began: float) -> None:
        self._parts = parts
        self._began = began
        self._answers: asyncio.Queue[ServiceCheck | None] = asyncio.Queue()
        self.counts: Counter[str] = Counter()
        self.asked = 0

    async def ask(self, groups: Sequence[tuple[Service, ...]]) -> None:
        """Ask each URL once, and send what is answered, also if it is cancelled meanwhile."""
        sending = asyncio.ensure_future(self._send_all())
        waiting = iter(groups)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._parts.concurrency, len(groups))):
                    group.create_task(self._ask_in_turn(waiting))
        finally:
            self._answers.put_nowait(None)
            await sending

    async def _ask_in_turn(self, waiting: Iterator[tuple[Service, ...]]) -> None:
        for services in waiting:
            if self._is_too_late:
                self.counts["left_out"] += len(services)
                continue
            await self._ask(services)

    @property
    def _is_too_late(self) -> bool:
        within = self._parts.begin_within
        return within is not None and self._parts.clock.monotonic() - self._began > within.total_seconds()

    async def _ask(self, services: tuple[Service, ...]) -> None:
        """One URL, for all services that have it."""
        clock, first = self._parts.clock, services[0]
        self.asked += 1
        began = clock.monotonic()
        try:
            result = await self._parts.fetcher.fetch(first.url, OpenGate())
        except Exception:  # one service that trips us up must not end the cycle of all others
            logger.exception("check failed inside", extra={"action": "monitor", "service_id": first.id})
            self.counts["fault"] += len(services)
            return
        latency = timedelta(seconds=clock.monotonic() - began)
        if result.failure is Reason.INTERNAL:  # our fault says nothing about the service
            self.counts["fault"] += len(services)
            return
        for service in services:
            check = check_of(service, result, latency)
            _log_check(check, result)
            self._answers.put_nowait(check)

    async def _send_all(self) -> None:
        """Send answers as they come, those that wait together."""
        is_over = False
        while not is_over:
            checks = [await self._answers.get()]
            while len(checks) < _SENT_TOGETHER and not self._answers.empty():
                checks.append(self._answers.get_nowait())
            is_over = checks[-1] is None
            await self._send([check for check in checks if check is not None])

    async def _send(self, checks: list[ServiceCheck]) -> None:
        if not checks:
            return
        try:
            unsent = await self._parts.blocking(lambda: self._parts.queue.send(checks))
        except QueueError as error:
            logger.error("statuses not sent: %s", error, extra={"action": "monitor", "count": len(checks)})
            unsent = checks
        self.counts["unsent"] += len(unsent)
        lost = {check.service_id for check in unsent}
        self.counts.update(check.status.value for check in checks if check.service_id not in lost)


def _log_check(check: ServiceCheck, result: FetchResult) -> None:
    reason = result.failure.value if result.failure is not None else None
    logger.log(
        logging.WARNING if check.refused else logging.DEBUG,
        "service %s is %s in %.2f ms: %s",
        check.service_id,
        check.status.value,
        check.latency_ms,
        reason or result.status,
        extra={
            "action": "refused" if check.refused else "check",
            "service_id": check.service_id,
            "url": redacted_url(check.url),
            "status": check.status.value,
            "http_status": result.status,
            "reason": reason,
            "latency_ms": check.latency_ms,
        },
    )


def _log_cycle(report: CycleReport) -> None:
    logger.log(
        logging.INFO if report.is_fine else logging.ERROR,
        "cycle %d: %d services, %d up, %d down, %.1f s",
        report.number,
        report.services,
        report.up,
        report.down,
        report.took.total_seconds(),
        extra={
            "action": "cycle",
            "asked": report.asked,
            "unsent": report.unsent,
            "faults": report.faults,
            "left_out": report.left_out,
            "late_s": round(report.late.total_seconds(), 3),
            "skipped": report.skipped,
            "from_memory": report.from_memory,
        },
    )
