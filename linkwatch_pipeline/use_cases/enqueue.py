"""Put a link's check on the queue now: the pending job of an open run, else a check by hand (docs/decisions/0034)."""

from __future__ import annotations

import logging
from datetime import timedelta

from linkwatch_pipeline.domain.errors import ConflictingContent, DamagedRecord, InvalidInput, LinkwatchError, NotFound
from linkwatch_pipeline.domain.hosts import LONGEST_DEFERRAL
from linkwatch_pipeline.domain.links import check_link_id
from linkwatch_pipeline.domain.runs import CheckJob, JobStatus, hand_job_id
from linkwatch_pipeline.domain.sequences import next_sequence
from linkwatch_pipeline.ports import Queue, Store
from linkwatch_pipeline.use_cases.check import log_checked
from linkwatch_pipeline.use_cases.hand_check import HostBusy, check_by_hand
from linkwatch_pipeline.use_cases.visit import CheckParts

logger = logging.getLogger(__name__)


def enqueue(store: Store, queue: Queue | None, *, link_id: str) -> CheckJob:
    """Send the link's pending job in the latest open run; without one, a check by hand. A copy more does no harm.

    Args: queue: None where messages live only in the process that works on the run, which sends every pending job.
    Returns: the message that is on its way, or, without a queue, that the process will send.
    Raises: InvalidInput, NotFound (no such link; without a queue, no pending job), ConflictingContent (retired link),
        DamagedRecord (no sequence is left).
    """
    link = store.get_link(check_link_id(link_id))
    if link is None:
        raise NotFound(f"there is no link {link_id!r}; 'linkwatch links' shows them.")
    message = _pending(store, link_id)
    if message is None and queue is None:
        raise NotFound(
            f"link {link_id!r} has no pending job in an open run. 'linkwatch run' begins the week's run; "
            f"'linkwatch check {link_id}' looks at the link now."
        )
    if message is None and link.retired_at is not None:
        raise ConflictingContent(f"link {link_id!r} is retired; register it again to watch it.")
    if message is None:
        sequence = next_sequence(link)
        message = CheckJob(
            job_id=hand_job_id(sequence, link.id),
            run_id="",
            link_id=link.id,
            sequence=sequence,
            config_version=link.config_version,
        )
    if queue is not None:
        queue.send([message])
    return message


def _pending(store: Store, link_id: str) -> CheckJob | None:
    unread: list[DamagedRecord] = []
    run_ids = [run.run_id for run in store.runs(open_only=True, damaged=unread.append)]
    for error in unread:
        if error.key is None:
            raise error
        run_ids.append(error.key)  # it is open if a job of it is pending
    jobs = [store.get_job(run_id, link_id) for run_id in sorted(run_ids)]
    pending = [job.message for job in jobs if job is not None and job.status is JobStatus.PENDING]
    return pending[-1] if pending else None


async def check_enqueued(parts: CheckParts, queue: Queue, message: CheckJob) -> None:
    """Do a check by hand that came over the queue. When this returns, the message may be acknowledged.

    A host that may not be visited yet is waited for in the queue, by a copy, so that no delivery is used up.
    """
    link = await parts.blocking(lambda: parts.store.get_link(message.link_id))
    if link is None or link.config_version != message.config_version:
        _drop(message, "its link was changed since it was sent")
        return
    try:
        done = await check_by_hand(parts, link_id=message.link_id, sequence=message.sequence, waits=False)
    except HostBusy as busy:
        wait = min(max(busy.until - parts.clock.now(), timedelta(0)), LONGEST_DEFERRAL)
        await parts.blocking(lambda: queue.send([message], delay=wait))
    except (ConflictingContent, InvalidInput, NotFound) as why:  # InvalidInput: of its sequence
        _drop(message, why)
    else:
        log_checked(done.observation, done.kind.value if done.is_replay else done.observation.outcome.value)


def _drop(message: CheckJob, why: str | LinkwatchError) -> None:
    logger.warning("check by hand is not made", extra={"action": "drop", "job_id": message.job_id, "error": str(why)})
