"""The processor: each message becomes a status in Redis and a row in PostgreSQL, whatever the others do (SPEC 13).

A message is done when both have it. If one of them is down the other one still gets its write, and the message comes
back; both writes may be repeated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.errors import InvalidInput, QueueError, StoreError
from linkwatch_pipeline.domain.service_status import StatusMessage, StatusRecord, record_of
from linkwatch_pipeline.ports import Clock, RowEnd, RunBlocking, StatusCache, StatusHistory, StatusQueue

logger = logging.getLogger(__name__)

IDLE = timedelta(milliseconds=200)
AFTER_TROUBLE = timedelta(seconds=2)
PRUNED_TOGETHER = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReport:
    """What became of some messages. `failed` are the ids of those that have to come back.

    `written` have both their status and their row; `gone` belong to a service that is not there any more.
    """

    written: int
    gone: int
    malformed: int
    failed: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorParts:
    """What a processor is made of."""

    queue: StatusQueue
    cache: StatusCache
    history: StatusHistory
    clock: Clock
    blocking: RunBlocking


def process_statuses(messages: Sequence[StatusMessage], *, cache: StatusCache, history: StatusHistory) -> ProcessReport:
    """Write what the messages say. Every message has its own fate; it never raises for what is in one."""
    records: dict[str, StatusRecord] = {}
    malformed: set[str] = set()
    for message in messages:
        try:
            records[message.message_id] = record_of(message)
        except InvalidInput as error:
            malformed.add(message.message_id)
            _log("message refused: %s", error, message_id=message.message_id)
    cached = _put(cache, list(records.values()))
    ends = _add(history, list(records.values()))
    fates = dict(zip(records, ends, strict=True))
    failed = malformed | {name for name, end in fates.items() if end in (None, RowEnd.REFUSED)}
    if not cached:
        failed |= {name for name, end in fates.items() if end is not RowEnd.GONE}
    return ProcessReport(
        written=sum(end is RowEnd.WRITTEN and name not in failed for name, end in fates.items()),
        gone=sum(end is RowEnd.GONE for end in ends),
        malformed=len(malformed),
        failed=frozenset(failed),
    )


async def process_next(parts: ProcessorParts) -> ProcessReport | None:
    """Work on the messages that are waiting; None if none is. Raises QueueError."""
    messages = await parts.blocking(parts.queue.receive)
    if not messages:
        return None
    report = await parts.blocking(lambda: process_statuses(messages, cache=parts.cache, history=parts.history))
    done = [message for message in messages if message.message_id not in report.failed]
    await parts.blocking(lambda: parts.queue.acknowledge(done))
    return report


async def keep_processing(parts: ProcessorParts, stop: asyncio.Event) -> None:
    """Work on messages as they come, until told to stop: to be cancelled in mid-call would hide what was received."""
    while not stop.is_set():
        try:
            pause = timedelta(0) if await process_next(parts) is not None else IDLE
        except QueueError as error:
            _log("queue does not answer: %s", error)
            pause = AFTER_TROUBLE
        if pause:
            await parts.clock.sleep(pause)


async def process_rest(parts: ProcessorParts) -> None:
    """Work on what is waiting now, before a queue in this process's memory ends with it."""
    while await process_next(parts) is not None:
        pass


def prune_history(history: StatusHistory, *, now: datetime, keep: timedelta) -> int:
    """Delete rows older than `keep`; how many. Never called unless pruning is switched on."""
    deleted = 0
    while (some := history.prune(before=now - keep, most=PRUNED_TOGETHER)) > 0:
        deleted += some
    return deleted


def _put(cache: StatusCache, records: list[StatusRecord]) -> bool:
    try:
        cache.put(records)
    except StoreError as error:
        _log("statuses not in Redis: %s", error)
        return False
    return True


def _add(history: StatusHistory, records: list[StatusRecord]) -> list[RowEnd | None]:
    """The end of each row; None if the database does not answer."""
    try:
        return list(history.add(records))
    except StoreError as error:
        _log("statuses not in PostgreSQL: %s", error)
        return [None] * len(records)


def _log(sentence: str, error: Exception, **details: str) -> None:
    logger.error(sentence, error, extra={"action": "process", **details})
