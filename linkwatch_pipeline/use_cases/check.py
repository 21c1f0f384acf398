"""Check one job from the queue: admit, fetch, release, record, send the next, acknowledge (ARCHITECTURE 2)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from linkwatch_pipeline.domain.errors import ConflictingContent, DamagedRecord
from linkwatch_pipeline.domain.fetching import FetchResult, HopDeferred
from linkwatch_pipeline.domain.hosts import LONGEST_DEFERRAL, WORKER_LIFE, Deferred, Departure
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.markers import marker_in_body
from linkwatch_pipeline.domain.observations import Observation, RedirectHop, body_hash
from linkwatch_pipeline.domain.outcomes import RULES_VERSION, classify
from linkwatch_pipeline.domain.page_hints import page_hints
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.recording import Recorded, RecordKind
from linkwatch_pipeline.domain.redaction import redacted_url
from linkwatch_pipeline.domain.runs import (
    DEATHS_UNTIL_ABANDONED,
    DEFERRALS_UNTIL_UNCERTAIN,
    SEND_NEXT_AGAIN_AFTER,
    THROTTLED_IN_A_ROW,
    CheckJob,
    HostChain,
    JobRecord,
    JobStatus,
    Run,
)
from linkwatch_pipeline.domain.sequences import MAX_SEQUENCE, no_sequence_left
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.dispatch import SendHead, due_head
from linkwatch_pipeline.use_cases.visit import CheckParts, Visit

logger = logging.getLogger(__name__)

_EXPIRED_TOGETHER = 500  # jobs that are read at once


@dataclass(frozen=True, slots=True)
class _Known:
    """What the store says about a message's job, read together: each trip to the store costs as much as the reads."""

    job: JobRecord
    run: Run | None = None
    link: Link | None = None
    chain: HostChain | None = None
    damage: DamagedRecord | None = None  # of the link


async def check_job(parts: CheckParts, message: CheckJob, send: SendHead) -> None:
    """Do what the message asks for, if it is still to be done. When this returns, the message may be acknowledged."""
    known = await parts.blocking(lambda: _look_up(parts.store, message))
    if known is None:
        logger.warning("message of an unknown job", extra={"action": "drop", "job_id": message.job_id})
        return
    job, link = known.job, known.link
    if job.status.is_terminal:
        await _mend_chain(parts, job, send)
        return
    if known.run is None or known.run.state.is_over:
        return
    if known.damage is not None:
        told = {"action": "check_failed", "run_id": job.run_id, "job_id": job.job_id, "link_id": job.link_id}
        logger.error("link not checked: %s", known.damage, extra=told)
        await end_job(parts, job, JobStatus.ABANDONED, Reason.LINK_DAMAGED, send)
        return
    if link is None or link.retired_at is not None or link.config_version != job.config_version:
        retired = link is None or link.retired_at is not None
        reason = Reason.RETIRED if retired else Reason.CONFIG_CHANGED
        await end_job(parts, job, JobStatus.CANCELLED, reason, send)
        return
    if job.deaths >= DEATHS_UNTIL_ABANDONED:
        await end_job(parts, job, JobStatus.ABANDONED, Reason.POISON, send)
        return
    if _host_gave_up_on_us(job, known.chain):
        await expire_chain(parts, job, Reason.HOST_THROTTLED, send)
        return
    await _visit(parts, job, link, send)


def _look_up(store: Store, message: CheckJob) -> _Known | None:
    job = store.get_job(message.run_id, message.link_id)
    if job is None:
        return None
    if job.status.is_terminal:
        return _Known(job)
    run, chain = store.get_run(job.run_id), store.get_chain(job.run_id, job.host)
    try:
        link = store.get_link(job.link_id, brief=True)
        if link is not None and job.sequence > MAX_SEQUENCE:  # of an earlier version: it could not be recorded
            raise no_sequence_left(link)
        return _Known(job, run, link, chain)
    except DamagedRecord as damage:
        return _Known(job, run, None, chain, damage)


def _host_gave_up_on_us(job: JobRecord, chain: HostChain | None) -> bool:
    return chain is not None and chain.head == job.link_id and chain.streak >= THROTTLED_IN_A_ROW


async def _visit(parts: CheckParts, job: JobRecord, link: Link, send: SendHead) -> None:
    parts.require_time()
    visit = Visit(parts, job.job_id)
    answer = await visit.ask(job.host)
    if isinstance(answer, Deferred):
        await _defer(parts, job, answer.until, send)
        return
    if answer.died_job_id == job.job_id and job.deaths + 1 >= DEATHS_UNTIL_ABANDONED:
        await visit.leave(Departure(at=parts.clock.now(), answered=False))
        await end_job(parts, job, JobStatus.ABANDONED, Reason.POISON, send)
        return
    try:
        result = await fetch_within_life(parts, link.url, visit)
    except HopDeferred as busy:
        if job.deferrals < DEFERRALS_UNTIL_UNCERTAIN:
            await parts.blocking(lambda: parts.store.count_deferral(job))
            await _defer(parts, job, max(busy.until, visit.next_allowed_at or busy.until), send)
            return
        result = no_answer(link.url, Reason.REDIRECT_HOST_BUSY, parts.clock.now())
    parts.lines.forget(job.job_id)
    await _record(parts, job, observe(link, result, sequence=job.sequence, job_id=job.job_id, job=job), send)


async def fetch_within_life(parts: CheckParts, url: str, visit: Visit) -> FetchResult:
    """Fetch, but never longer than a worker lives; no host is held afterwards.

    Raises HopDeferred when a redirect's host is busy.
    """
    started_at = parts.clock.now()
    try:
        left = parts.fetched_by - parts.clock.monotonic()
        async with asyncio.timeout(min(left, WORKER_LIFE.total_seconds())):
            return await parts.fetcher.fetch(url, visit)
    except TimeoutError:
        return no_answer(url, Reason.TIMEOUT, started_at, ended_at=parts.clock.now())
    finally:
        # A URL that our own policy refuses is never visited, yet its host was admitted to before.
        await visit.leave(Departure(at=parts.clock.now(), answered=False))


def no_answer(url: str, reason: Reason, at: datetime, ended_at: datetime | None = None) -> FetchResult:
    """The result of a look that brought nothing, for a reason of ours."""
    return FetchResult(status=None, failure=reason, final_url=url, started_at=at, ended_at=ended_at or at)


def observe(
    link: Link, result: FetchResult, *, sequence: int, job_id: str, job: JobRecord | None = None
) -> Observation:
    """Judge what the fetch brought back. `job` is None for a check by hand."""
    success = result.status is not None and 200 <= result.status <= 299
    found = marker_in_body(link.marker, result.body, result.charset) if link.marker is not None and success else None
    verdict = classify(
        result.status,
        marker_found=found,
        content_complete=result.content_complete,
        failure=result.failure,
        challenged=result.challenged,
    )
    return Observation(
        job_id=job_id,
        run_id=job.run_id if job is not None else None,
        link_id=link.id,
        url=link.url,
        sequence=sequence,
        config_version=link.config_version,
        rules_version=RULES_VERSION,
        retry_of=job.retry_of if job is not None else None,
        started_at=result.started_at,
        observed_at=result.ended_at,
        status=result.status,
        outcome=verdict.outcome,
        reason=verdict.reason,
        content_hash=body_hash(result.body) if result.status is not None else None,
        content_complete=result.content_complete,
        marker_found=found,
        bytes_read=result.bytes_read,
        latency_ms=result.network_ms,
        content_type=result.content_type,
        final_url=redacted_url(result.final_url),
        redirects=tuple(RedirectHop(url=redacted_url(hop.url), status=hop.status) for hop in result.redirects),
        tls_not_after=result.tls_not_after,
        page_hints=_hints_of(result) if success else (),
    )


def _hints_of(result: FetchResult) -> tuple[str, ...]:
    return page_hints(result.body, content_type=result.content_type, charset=result.charset)


async def _record(parts: CheckParts, job: JobRecord, observation: Observation, send: SendHead) -> None:
    try:
        recorded, following = await parts.blocking(lambda: _commit(parts, job, observation))
    except ConflictingContent:
        # Another worker committed this job first, and its response differed: the first commit is the truth.
        await _mend_chain(parts, job, send)
        return
    if recorded.kind in (RecordKind.DUPLICATE, RecordKind.JOB_ENDED):
        await _mend_chain(parts, job, send)
        return
    _tell(parts, job, recorded, observation)
    if following is not None:
        await send(*following)


def _commit(
    parts: CheckParts, job: JobRecord, observation: Observation
) -> tuple[Recorded, tuple[JobRecord, timedelta] | None]:
    """Record, and look up what has to be sent next if the host's chain moved on."""
    store = parts.store
    recorded = store.record(observation, default_confirm=parts.default_confirm, now=parts.clock.now())
    if recorded.chain is None or recorded.chain.head != job.next:
        return recorded, None
    return recorded, due_head(store, recorded.chain, now=parts.clock.now())


def _tell(parts: CheckParts, job: JobRecord, recorded: Recorded, observation: Observation) -> None:
    observed = recorded.kind in (RecordKind.APPLIED, RecordKind.HISTORY)
    end = observation.outcome.value if observed else JobStatus.CANCELLED.value
    parts.progress.job_ended(job, end)
    log_checked(observation, end)


def log_checked(observation: Observation, end: str) -> None:
    """The one line of a check that was made (SPEC 7.5). Args: end: its outcome, or how its job ended instead."""
    logger.info(
        "link checked",
        extra={
            "action": "check",
            "run_id": observation.run_id,
            "job_id": observation.job_id,
            "link_id": observation.link_id,
            "duration_ms": observation.latency_ms,
            "outcome": end,
            "reason": observation.reason.value if observation.reason is not None else None,
        },
    )


async def end_job(parts: CheckParts, job: JobRecord, status: JobStatus, reason: Reason, send: SendHead) -> None:
    """End a pending job without an observation and send its successor; nothing if it is terminal already."""
    chain = await parts.blocking(lambda: parts.store.end_job(job, status=status, reason=reason))
    if chain is None:
        return
    parts.progress.job_ended(job, status.value)
    if chain.head == job.next:
        await _send_next(parts, chain, send)


async def expire_chain(parts: CheckParts, job: JobRecord, reason: Reason, send: SendHead) -> None:
    """End the pending jobs of this job's host in its run as expired, one transaction each: resumable anywhere.

    A worker that cannot end all within its life sends the host's next job, whose worker goes on.
    """
    ends_at = min(parts.fetched_by, parts.clock.monotonic() + WORKER_LIFE.total_seconds())
    pending = (j for j in parts.store.jobs(job.run_id, host=job.host) if j.status is JobStatus.PENDING)
    first = True
    while some := await parts.blocking(lambda: list(islice(pending, _EXPIRED_TOGETHER))):
        for other in some:
            if not first and parts.clock.monotonic() >= ends_at:
                await _hand_on(parts, job, send)
                return
            first = False
            end = partial(parts.store.end_job, other, status=JobStatus.EXPIRED, reason=reason)
            if await parts.blocking(end) is not None:
                parts.progress.job_ended(other, JobStatus.EXPIRED.value)


async def _hand_on(parts: CheckParts, job: JobRecord, send: SendHead) -> None:
    """Send the head of this job's host, at once: it is going to end without a visit, which the host's rest is for."""
    chain = await parts.blocking(lambda: parts.store.get_chain(job.run_id, job.host))
    head = chain.head if chain is not None else None
    following = await parts.blocking(lambda: parts.store.get_job(job.run_id, head)) if head is not None else None
    if following is not None:
        await send(following, timedelta(0))


async def _defer(parts: CheckParts, job: JobRecord, until: datetime, send: SendHead) -> None:
    now = parts.clock.now()
    if await parts.blocking(lambda: parts.store.defer_head(job, until=until, now=now)):
        await send(job, min(max(until - now, timedelta(0)), LONGEST_DEFERRAL))


async def _mend_chain(parts: CheckParts, job: JobRecord, send: SendHead) -> None:
    """The job is terminal, yet its message came: mend what a crash between commit and send left behind."""
    stepped = await parts.blocking(lambda: parts.store.step_chain(job))
    if stepped is not None:
        await _send_next(parts, stepped, send)
        return
    chain = await parts.blocking(lambda: parts.store.get_chain(job.run_id, job.host))
    overdue = chain is not None and parts.clock.now() > chain.head_ready_at + SEND_NEXT_AGAIN_AFTER
    if chain is not None and chain.head is not None and chain.head == job.next and overdue:
        await _send_next(parts, chain, send)


async def _send_next(parts: CheckParts, chain: HostChain, send: SendHead) -> None:
    now = parts.clock.now()
    due = await parts.blocking(lambda: due_head(parts.store, chain, now=now))
    if due is not None:
        await send(*due)
