"""When the store cannot serve: messages wait in the queue instead of using up their deliveries (docs/decisions/0044).

A message that fails five times is given up, and that is meant for messages that are at fault themselves. During an
outage all of them fail, so each is replaced by a copy that comes later, whose deliveries are counted anew.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from functools import partial
from typing import Any

from linkwatch_pipeline.domain.errors import QueueError, StaleWrite, StoreContended, StoreError, StoreUnavailable
from linkwatch_pipeline.domain.runs import CheckJob
from linkwatch_pipeline.ports import Queue
from linkwatch_pipeline.use_cases.visit import CheckParts

logger = logging.getLogger(__name__)

# A copy comes after one to two of these: longer than a dead worker's lease, and not all at the same moment.
POSTPONED_FOR = timedelta(seconds=60)
SHORTEST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(seconds=60)


async def store_is_out(parts: CheckParts, fault: Exception) -> bool:
    """Whether a check failed because the store serves nobody. What it only refuses in this one job is no outage."""
    if isinstance(fault, StoreUnavailable):
        return True
    if not isinstance(fault, StoreError) or isinstance(fault, StaleWrite | StoreContended):
        return False
    try:
        await parts.blocking(parts.store.verify)
    except StoreError:
        return True
    return False


async def postpone(parts: CheckParts, queue: Queue, message: CheckJob, why: Exception) -> bool:
    """Send a copy that comes later; whether the queue took it, so that the message may be acknowledged."""
    wait = POSTPONED_FOR * (1 + parts.chance.random())
    try:
        await parts.blocking(lambda: queue.send([message], delay=wait))
    except QueueError as refused:
        logger.warning("message not postponed", extra={**about(message, "postpone"), "error": str(refused)})
        return False
    logger.warning("store cannot serve: message postponed", extra={**about(message, "postpone"), "error": str(why)})
    return True


async def wait_for_store(parts: CheckParts, stopping: asyncio.Task[Any]) -> None:
    """Return when the store serves again, or `stopping` is done."""
    pause = SHORTEST_PAUSE
    while not stopping.done():
        try:
            await parts.blocking(parts.store.verify)
        except StoreError as error:
            told = {"action": "pause", "error": str(error)}
            logger.warning("store cannot serve: nothing is received", extra=told)
        else:
            logger.info("store serves: receiving again", extra={"action": "resume"})
            return
        sleeping = asyncio.ensure_future(parts.clock.sleep(pause))
        await asyncio.wait({stopping, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        sleeping.cancel()
        pause = min(pause * 2, LONGEST_PAUSE)


async def let_go(parts: CheckParts) -> None:
    """Tell the store of the visits that ended while it could not serve; what it does not take now stays for later."""
    while parts.left_behind:
        left = parts.left_behind[0]
        release = partial(parts.store.release_host, left.host, token=left.token, departure=left.departure)
        try:
            await parts.blocking(partial(release, cooldown=parts.cooldown, chance=parts.chance))
        except StoreError:
            return
        parts.left_behind.remove(left)


def about(message: CheckJob, action: str) -> dict[str, str]:
    """What a log line says about a message."""
    return {
        "action": action,
        "run_id": message.run_id,
        "job_id": message.job_id,
        "link_id": message.link_id,
    }
