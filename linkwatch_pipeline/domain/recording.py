"""What recording one observation does to everything: decided here, committed by every store in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from linkwatch_pipeline.domain.errors import ConflictingContent
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.notices import Notice, notice_for
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.redaction import redacted_url
from linkwatch_pipeline.domain.runs import HostChain, JobRecord, JobStatus
from linkwatch_pipeline.domain.transitions import Transition, advance


class RecordKind(StrEnum):
    """What became of an observation offered to the store."""

    APPLIED = "applied"  # newer than everything before: the state followed it
    HISTORY = "history"  # older than the last applied one: kept as evidence only
    DUPLICATE = "duplicate"  # the same content was committed before: nothing changed
    JOB_ENDED = "job_ended"  # its job is terminal without an observation: nothing changed
    CONFIG_CHANGED = "config_changed"  # the link is configured otherwise now: the job was cancelled
    SEQUENCE_TAKEN = "sequence_taken"  # another job holds the sequence: this job was cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The committed result: the link as stored, in brief, and, on a change worth telling, its transition.

    `chain` is the host's chain after the commit (None for a hand check): its `head` is the next job to send.
    """

    kind: RecordKind
    link: Link
    transition: Transition | None = None
    chain: HostChain | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPlan:
    """All that one transaction writes. None means: that item stays as it is. An absent observation is not appended."""

    kind: RecordKind
    link: Link
    observation: Observation | None = None
    transition: Transition | None = None
    notice: Notice | None = None
    job: JobRecord | None = None
    chain: HostChain | None = None


def plan_record(
    observation: Observation,
    *,
    link: Link,
    held_by: Observation | None,
    job: JobRecord | None,
    chain: HostChain | None,
    next_allowed_at: datetime | None,
    default_confirm: int,
    now: datetime,
) -> RecordPlan:
    """Decide what to commit, from the items as read.

    Args:
        held_by: the observation stored under (link, sequence), None if there is none.
        job, chain: the run's items for this job; both None for a hand check.
        next_allowed_at: the host's, for the chain's next head.
        now: when it is committed (UTC).
    Raises: ConflictingContent when a job id, a link id or a sequence is reused with other content.
    """
    if job is not None and job.status is not JobStatus.PENDING:
        return _replay_or_ended(observation, link, job)
    if held_by is not None and held_by.job_id == observation.job_id:
        _check_same_content(observation, held_by.content_digest)
        return RecordPlan(kind=RecordKind.DUPLICATE, link=link)
    if held_by is not None:
        if job is None or chain is None:
            raise ConflictingContent(
                f"sequence {observation.sequence} of link {link.id!r} is already held by job {held_by.job_id!r}; "
                "use a sequence that is not taken."
            )
        return _cancel(
            RecordKind.SEQUENCE_TAKEN,
            Reason.SEQUENCE_TAKEN,
            link,
            job,
            chain,
            next_allowed_at,
        )
    changed = observation.config_version != link.config_version or link.retired_at is not None
    if job is not None and chain is not None and changed:
        reason = Reason.RETIRED if link.retired_at is not None else Reason.CONFIG_CHANGED
        return _cancel(RecordKind.CONFIG_CHANGED, reason, link, job, chain, next_allowed_at)
    if observation.url != link.url:
        raise ConflictingContent(
            f"link {link.id!r} is registered with another URL ({redacted_url(link.url)}); "
            "register the other URL under an id of its own."
        )
    if changed:
        raise ConflictingContent(f"link {link.id!r} was changed or retired meanwhile; look at it and try again.")
    return _append(observation, link, job, chain, next_allowed_at, default_confirm, now)


def end_job(
    job: JobRecord,
    chain: HostChain,
    *,
    status: JobStatus,
    reason: Reason,
    next_allowed_at: datetime | None,
) -> tuple[JobRecord, HostChain]:
    """The job and its chain after the job ended without an observation."""
    ended = replace(job, status=status, reason=reason)
    return ended, count_end(chain, job, status.value, next_allowed_at)


def count_end(chain: HostChain, job: JobRecord, end: str, next_allowed_at: datetime | None) -> HostChain:
    """The chain after one job ended: counted once; the head moves on only if it was this job."""
    counts = dict(chain.counts)
    counts[end] = counts.get(end, 0) + 1
    chain = replace(chain, remaining=chain.remaining - 1, counts=counts)
    return step_head(chain, job, next_allowed_at)


def step_head(chain: HostChain, job: JobRecord, next_allowed_at: datetime | None) -> HostChain:
    """The chain with its head past this job, if this job was its head."""
    if chain.head != job.link_id:
        return chain
    ready_at = max(chain.head_ready_at, next_allowed_at) if next_allowed_at is not None else chain.head_ready_at
    return replace(chain, head=job.next, head_ready_at=ready_at, resends=0)


def _replay_or_ended(observation: Observation, link: Link, job: JobRecord) -> RecordPlan:
    if job.status is not JobStatus.DONE:
        return RecordPlan(kind=RecordKind.JOB_ENDED, link=link)
    _check_same_content(observation, job.content_digest)
    return RecordPlan(kind=RecordKind.DUPLICATE, link=link)


def _check_same_content(observation: Observation, committed_digest: str | None) -> None:
    if observation.content_digest != committed_digest:
        raise ConflictingContent(
            f"job {observation.job_id!r} is already committed with other content; a repetition must say the same, "
            "a new observation needs a new sequence."
        )


def _cancel(
    kind: RecordKind,
    reason: Reason,
    link: Link,
    job: JobRecord,
    chain: HostChain,
    next_allowed_at: datetime | None,
) -> RecordPlan:
    ended, after = end_job(
        job,
        chain,
        status=JobStatus.CANCELLED,
        reason=reason,
        next_allowed_at=next_allowed_at,
    )
    return RecordPlan(kind=kind, link=link, job=ended, chain=after)


def _append(
    observation: Observation,
    link: Link,
    job: JobRecord | None,
    chain: HostChain | None,
    next_allowed_at: datetime | None,
    default_confirm: int,
    now: datetime,
) -> RecordPlan:
    newer = observation.sequence > link.last_sequence
    after, transition = advance(
        link,
        outcome=observation.outcome,
        sequence=observation.sequence,
        job_id=observation.job_id,
        at=observation.observed_at,
        default_confirm=default_confirm,
    )
    return RecordPlan(
        kind=RecordKind.APPLIED if newer else RecordKind.HISTORY,
        link=after,
        observation=observation,
        transition=transition,
        notice=notice_for(after, transition, observation, now=now) if transition is not None else None,
        job=_done(job, observation) if job is not None else None,
        chain=_observed(chain, job, observation, next_allowed_at) if chain is not None and job is not None else None,
    )


def _done(job: JobRecord, observation: Observation) -> JobRecord:
    return replace(
        job,
        status=JobStatus.DONE,
        outcome=observation.outcome,
        reason=observation.reason,
        content_digest=observation.content_digest,
    )


def _observed(
    chain: HostChain,
    job: JobRecord,
    observation: Observation,
    next_allowed_at: datetime | None,
) -> HostChain:
    throttled = observation.outcome is Outcome.THROTTLED
    first, last = chain.first_observed_at, chain.last_observed_at
    chain = replace(
        chain,
        streak=chain.streak + 1 if throttled else 0,
        first_observed_at=min(first or observation.started_at, observation.started_at),
        last_observed_at=max(last or observation.observed_at, observation.observed_at),
    )
    return count_end(chain, job, observation.outcome.value, next_allowed_at)
