"""A notice: the promise, made with a transition, that somebody will be told of it (the outbox entry)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256

from linkwatch_pipeline.domain.links import Link, LinkState, Place
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.transitions import Transition

# A claim outlives every provider call (bounded by seconds) and ends soon enough for the five-minute promise.
CLAIM_FOR = timedelta(minutes=2)
# Begins `last_error` from the first lost answer on: from then on every mail may be a duplicate.
LOST_ANSWER = "an earlier attempt ended without an answer, so the owner may have this mail twice"
_RETRY_WAITS = (
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(hours=1),
)


# A mail says no more of where a link stands, and goes to no more teams beside the owner (a mail takes 50 addresses).
MOST_PLACES_TOLD = 20
MOST_PLACE_CHARACTERS = 8_000
MOST_TEAMS_TOLD = 40


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

    `places` are the first where the link stands, `further_places` how many more there are. `also_used_by` are the first
    of the other teams, by name: who gets a copy.
    `release_at` is when it may first be sent (UTC), None until its run is released. `recipient` is resolved from the
    owner when an attempt begins. `mail_id` is that of the mail that told it, or tries to: its own transition id, or a
    digest's (`digest_id`); None before the first attempt.
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
    release_at: datetime | None
    status: NoticeStatus = NoticeStatus.PENDING
    attempts: int = 0
    claimed_by: str | None = None
    claim_until: datetime | None = None
    recipient: str | None = None
    mail_id: str | None = None
    provider_id: str | None = None
    last_error: str | None = None
    next_attempt_at: datetime | None = None
    sent_at: datetime | None = None
    further_places: int = 0


def notice_for(link: Link, transition: Transition, observation: Observation, *, now: datetime) -> Notice:
    """The notice that is committed together with its transition; a check by hand releases it at once."""
    notice = Notice(
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
        release_at=now if observation.run_id is None else None,
    )
    return bounded(notice)


def bounded(notice: Notice) -> Notice:
    """The notice with no more places and teams than are told, however many its link has."""
    told = tuple(_first_places(notice.places))
    return replace(
        notice,
        places=told,
        further_places=notice.further_places + len(notice.places) - len(told),
        also_used_by=notice.also_used_by[:MOST_TEAMS_TOLD],
    )


def _first_places(places: Sequence[Place]) -> Iterator[Place]:
    """The first places, at least one, until the names of their files become too long to be read."""
    characters = 0
    for place in places[:MOST_PLACES_TOLD]:
        if characters and characters + len(place.file) > MOST_PLACE_CHARACTERS:
            return
        characters += len(place.file)
        yield place


def is_claimable(notice: Notice, now: datetime) -> bool:
    """Whether a sender may take this notice now.

    A `pending` one when it is released and its wait is over; a `claimed` one whose claimant vanished before any
    attempt. `sending` and `unknown` may already be in a mailbox: only `is_retryable_unknown` lets those be repeated.
    """
    if notice.status is NoticeStatus.PENDING:
        released = notice.release_at is not None and notice.release_at <= now
        return released and (notice.next_attempt_at is None or notice.next_attempt_at <= now)
    if notice.status is NoticeStatus.CLAIMED:
        return notice.claim_until is not None and notice.claim_until <= now
    return is_retryable_unknown(notice, now)


def is_waiting(notice: Notice, now: datetime) -> bool:
    """Whether nobody works on it and no mail is in doubt: it can still be stopped for certain."""
    vanished = notice.status is NoticeStatus.CLAIMED and notice.claim_until is not None and notice.claim_until <= now
    return notice.status is NoticeStatus.PENDING or vanished


def is_retryable_unknown(notice: Notice, now: datetime) -> bool:
    """Whether an attempt of unknown result may be repeated, admitting a duplicate.

    `unknown` when its wait for a provider's word is over; `sending` when its claimant vanished in mid-call.
    """
    if notice.status is NoticeStatus.UNKNOWN:
        return notice.next_attempt_at is not None and notice.next_attempt_at <= now
    return notice.status is NoticeStatus.SENDING and notice.claim_until is not None and notice.claim_until <= now


def claimed(notice: Notice, *, by: str, now: datetime) -> Notice:
    """The notice in the hands of one sender. A doubt about an earlier attempt is written down with the claim."""
    in_doubt = notice.status in (NoticeStatus.SENDING, NoticeStatus.UNKNOWN) and not is_possible_duplicate(notice)
    return replace(
        notice,
        status=NoticeStatus.CLAIMED,
        claimed_by=by,
        claim_until=now + CLAIM_FOR,
        last_error=LOST_ANSWER if in_doubt else notice.last_error,
    )


def is_possible_duplicate(notice: Notice) -> bool:
    """Whether an earlier attempt may have reached the mailbox, whatever became of the notice since."""
    return notice.last_error is not None and notice.last_error.startswith(LOST_ANSWER)


def digest_id(owner: str, run_id: str, first: str) -> str:
    """`digest:RUN:0a1b2c3d4e5f`: the identity of one digest of an owner and a run.

    Args: first: the transition whose attempt was the first to be written down. It stands in one digest only, so that
        a second digest of the same owner and run (of notices made late) is never taken for the first.
    """
    return f"digest:{run_id}:{sha256(f'{owner}|{first}'.encode()).hexdigest()[:12]}"


def run_of_digest(mail_id: str) -> str | None:
    """The run that a digest's id names; None for the id of a mail that tells one transition."""
    kind, _, rest = mail_id.partition(":")
    run_id, _, _ = rest.rpartition(":")
    return run_id if kind == "digest" and run_id else None


def retry_wait(attempts: int) -> timedelta:
    """How long to wait after the given number of attempts (1 or more): 1, 5, 15, then 60 minutes."""
    return _RETRY_WAITS[min(attempts, len(_RETRY_WAITS)) - 1]
