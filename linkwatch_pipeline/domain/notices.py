"""A notice: the promise, made with a transition, that somebody will be told of it (the outbox entry)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from linkwatch_pipeline.domain.links import Link, LinkState, Place
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.transitions import Transition

# A claim outlives every provider call (bounded by seconds) and ends soon enough for the five-minute promise.
CLAIM_FOR = timedelta(minutes=2)
_RETRY_WAITS = (
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(hours=1),
)


class NoticeStatus(StrEnum):
    """How far the telling has come. `sent` means accepted by the provider, no more."""

    PENDING = "pending"
    CLAIMED = "claimed"
    SENDING = "sending"
    SENT = "sent"
    UNKNOWN = "unknown"
    DELIVERED = "delivered"
    BOUNCED = "bounced"
    COMPLAINED = "complained"
    FAILED = "failed"
    HELD = "held"
    MUTED = "muted"
    DISCARDED = "discarded"

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to do: no sender will touch it again. A failed one still needs a person."""
        return self in _SETTLED


_SETTLED = frozenset(
    {
        NoticeStatus.SENT,
        NoticeStatus.DELIVERED,
        NoticeStatus.BOUNCED,
        NoticeStatus.COMPLAINED,
        NoticeStatus.MUTED,
        NoticeStatus.DISCARDED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Everything that a mail says, so that it outlives its observation, and how its delivery stands.

    `release_at` is when it may first be sent (UTC). `recipient` is resolved from the owner when an attempt begins.
    """

    transition_id: str
    link_id: str
    url: str
    owner: str | None
    also_used_by: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    from_state: LinkState
    to_state: LinkState
    since: datetime | None = None
    run_id: str | None
    job_id: str
    observed_status: int | None
    observed_reason: Reason | None
    observed_at: datetime
    created_at: datetime
    release_at: datetime
    status: NoticeStatus = NoticeStatus.PENDING
    attempts: int = 0
    claimed_by: str | None = None
    claim_until: datetime | None = None
    recipient: str | None = None
    provider_id: str | None = None
    last_error: str | None = None
    next_attempt_at: datetime | None = None
    sent_at: datetime | None = None


def notice_for(link: Link, transition: Transition, observation: Observation, *, now: datetime) -> Notice:
    """The notice that is committed together with its transition; released at once."""
    return Notice(
        transition_id=transition.id,
        link_id=link.id,
        url=link.url,
        owner=link.owner,
        also_used_by=link.also_used_by,
        places=link.places,
        from_state=transition.from_state,
        to_state=transition.to_state,
        since=transition.since,
        run_id=observation.run_id,
        job_id=observation.job_id,
        observed_status=observation.status,
        observed_reason=observation.reason,
        observed_at=observation.observed_at,
        created_at=now,
        release_at=now,
    )


def is_claimable(notice: Notice, now: datetime) -> bool:
    """Whether a sender may take this notice now.

    A `pending` one when it is released and its wait is over; a `claimed` one whose claimant vanished before any
    attempt. `sending` and `unknown` may already be in a mailbox: only `is_retryable_unknown` lets those be repeated.
    """
    if notice.status is NoticeStatus.PENDING:
        return notice.release_at <= now and (notice.next_attempt_at is None or notice.next_attempt_at <= now)
    if notice.status is NoticeStatus.CLAIMED:
        return notice.claim_until is not None and notice.claim_until <= now
    return is_retryable_unknown(notice, now)


def is_retryable_unknown(notice: Notice, now: datetime) -> bool:
    """Whether an attempt of unknown result may be repeated, admitting a duplicate.

    `unknown` when its wait for a provider's word is over; `sending` when its claimant vanished in mid-call.
    """
    if notice.status is NoticeStatus.UNKNOWN:
        return notice.next_attempt_at is not None and notice.next_attempt_at <= now
    return notice.status is NoticeStatus.SENDING and notice.claim_until is not None and notice.claim_until <= now


def claimed(notice: Notice, *, by: str, now: datetime) -> Notice:
    """The notice in the hands of one sender."""
    return replace(notice, status=NoticeStatus.CLAIMED, claimed_by=by, claim_until=now + CLAIM_FOR)


def retry_wait(attempts: int) -> timedelta:
    """How long to wait after the given number of attempts (1 or more): 1, 5, 15, then 60 minutes."""
    return _RETRY_WAITS[min(attempts, len(_RETRY_WAITS)) - 1]
