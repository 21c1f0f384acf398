"""Both halves in one process: the monitor's cycles, and the processor beside them (`linkwatch status run`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from linkwatch_pipeline.domain.cycles import CycleStart
from linkwatch_pipeline.domain.errors import LinkwatchError
from linkwatch_pipeline.use_cases.monitor_services import CycleReport, Monitor, MonitorParts
from linkwatch_pipeline.use_cases.process_statuses import ProcessorParts, keep_processing, process_rest

logger = logging.getLogger(__name__)

FAREWELL = timedelta(seconds=10)
TELL_EVERY = timedelta(seconds=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusHalves:
    """The two halves. `ends_with_process` is whether the queue between them does, so that it has to be emptied.

    `tell` brings changes into the outbox (blocking, on the processor's thread); None where nobody is to be told.
    """

    monitor: MonitorParts
    processor: ProcessorParts
    ends_with_process: bool
    tell: Callable[[], object] | None = None


async def keep_status(halves: StatusHalves, tell: Callable[[CycleReport], None]) -> None:
    """Cycles, and their statuses written, until cancelled; what was seen by then is written too."""
    stop = asyncio.Event()
    processing = asyncio.ensure_future(keep_processing(halves.processor, stop))
    telling = asyncio.ensure_future(_keep_telling(halves))
    monitoring = asyncio.ensure_future(Monitor(halves.monitor).run(tell))
    try:
        await asyncio.wait({processing, monitoring}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        monitoring.cancel()
        telling.cancel()
        await asyncio.wait({monitoring, telling})
        stop.set()
        await asyncio.wait({processing})
        await _write_rest(halves)
        await _tell(halves)
    for half in (monitoring, processing):  # whichever ended by itself says why
        if not half.cancelled():
            half.result()


async def one_cycle(halves: StatusHalves) -> CycleReport:
    """One cycle now, and all of it written."""
    clock = halves.monitor.clock
    try:
        return await Monitor(halves.monitor).cycle(CycleStart(number=0, due=clock.monotonic()))
    finally:  # also what was answered before an interruption
        await process_rest(halves.processor)
        await _tell(halves)


async def _write_rest(halves: StatusHalves) -> None:
    if not halves.ends_with_process:
        return
    try:
        async with asyncio.timeout(FAREWELL.total_seconds()):
            await process_rest(halves.processor)
    except TimeoutError:
        logger.error("some statuses were not written before the end", extra={"action": "process"})


async def _keep_telling(halves: StatusHalves) -> None:
    while True:
        await halves.monitor.clock.sleep(TELL_EVERY)
        await _tell(halves)


async def _tell(halves: StatusHalves) -> None:
    if halves.tell is None:
        return
    try:
        await halves.processor.blocking(halves.tell)
    except LinkwatchError as error:  # changes stay where they are, and are told next time
        logger.error("changes not told: %s", error, extra={"action": "tell"})
