"""Telling owners: every notice that is due is claimed, its attempt written down, its mail handed over (SPEC 10).

The policy for a lost answer: the notice is `unknown`; unless the provider's own events say more, it is sent again
after an hour, at most until its fifth attempt, and that mail and its record admit to being a possible duplicate. Then a
person or a late event decides. A crash leaves a claim or a `sending` behind; `domain.notices` makes those claimable.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from linkwatch_pipeline.domain.errors import DeliveryError, DeliveryFailure
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus, is_claimable, retry_wait
from linkwatch_pipeline.domain.redaction import fault_in_our_words
from linkwatch_pipeline.ports import Clock, Notifier, Store
from linkwatch_pipeline.use_cases.mails import compose

logger = logging.getLogger(__name__)

WAIT_FOR_OWNER = timedelta(minutes=5)
WAIT_FOR_WORD = timedelta(hours=1)
MOST_ATTEMPTS_WITHOUT_WORD = 5
# Begins `last_error` from the first lost answer on: from then on every mail may be a duplicate.
LOST_ANSWER = "an earlier attempt ended without an answer, so the owner may have this mail twice"


class _End(StrEnum):
    """What became of one notice in one delivery."""

    SENT = "sent"
    RETRIED = "retried"
    FAILED = "failed"
    UNKNOWN = "unknown"
    WAITING = "waiting"
    WITHOUT_OWNER = "without_owner"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReport:
    """How many notices a delivery brought to which end.

    `retried` were not accepted and will be tried again. `waiting` are the unsettled ones that it left alone: not due,
    in another sender's hands, given up earlier, or beyond the limit. `without_owner` have nobody to be told.
    """

    sent: int = 0
    retried: int = 0
    failed: int = 0
    unknown: int = 0
    waiting: int = 0
    without_owner: int = 0

    @property
    def unsent(self) -> int:
        """Notices that nobody has been told of for certain."""
        return self.retried + self.failed + self.unknown + self.waiting + self.without_owner


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sender:
    store: Store
    notifier: Notifier
    clock: Clock
    address: str
    claimant: str


def deliver_notices(
    store: Store,
    notifier: Notifier,
    *,
    clock: Clock,
    sender: str,
    claimant: str,
    limit: int | None = None,
) -> DeliveryReport:
    """Send every notice that is due, oldest first, whatever day it was made. One bad notice never stops the others.

    Args:
        sender: the address that mails come from.
        claimant: names this sender; unique among all that may be at work.
        limit: how many notices to try at most; None for all.
    """
    parts = _Sender(store=store, notifier=notifier, clock=clock, address=sender, claimant=claimant)
    ends = dict.fromkeys(_End, 0)
    tried = 0
    # Read whole, since what is read changes meanwhile; unsettled notices are few.
    for notice in list(store.notices(unsettled_only=True)):
        due = is_claimable(notice, clock.now()) and (limit is None or tried < limit)
        tried += due
        ends[_deliver_safely(parts, notice) if due else _End.WAITING] += 1
    return DeliveryReport(**{end.value: count for end, count in ends.items()})


def _deliver_safely(parts: _Sender, notice: Notice) -> _End:
    try:
        end = _deliver(parts, notice)
    except Exception as fault:  # a notice that trips us up must not silence the others; its claim ends by itself
        _log_fault("notice not delivered", notice, fault)
        return _End.WAITING
    logger.info("notice handled", extra={"action": "deliver", "transition_id": notice.transition_id, "end": end.value})
    return end


def _deliver(parts: _Sender, found: Notice) -> _End:
    notice = parts.store.claim_notice(found.transition_id, by=parts.claimant, now=parts.clock.now())
    if notice is None:
        return _End.WAITING
    recipient = _address_of(parts.store, notice)
    if recipient is None:
        return _release_without_owner(parts, notice)
    repeated = found.status in (NoticeStatus.SENDING, NoticeStatus.UNKNOWN) or _is_possible_duplicate(notice)
    if repeated and notice.attempts >= MOST_ATTEMPTS_WITHOUT_WORD:
        return _settle(
            parts, replace(notice, status=NoticeStatus.UNKNOWN, last_error=LOST_ANSWER, next_attempt_at=None)
        )
    copies = [address for address in _copies(parts.store, notice) if address != recipient]
    mail = compose(notice, recipient, copies, sender=parts.address, now=parts.clock.now(), repeated=repeated)
    attempt = replace(
        notice,
        status=NoticeStatus.SENDING,
        attempts=notice.attempts + 1,
        recipient=recipient,
        next_attempt_at=None,
        last_error=LOST_ANSWER if repeated else notice.last_error,
    )
    if not parts.store.save_notice(attempt, claimed_by=parts.claimant):
        return _End.WAITING
    try:
        provider_id = parts.notifier.send(mail)
    except DeliveryError as error:
        return _settle(parts, _after_failure(attempt, error, now=parts.clock.now()))
    except Exception as fault:  # a fault of ours in mid-call: the provider may have the mail, so this is unknown
        _log_fault("sending failed", notice, fault)
        lost = DeliveryError(f"internal fault while sending: {type(fault).__name__}", DeliveryFailure.UNKNOWN)
        return _settle(parts, _after_failure(attempt, lost, now=parts.clock.now()))
    return _settle(parts, _after_acceptance(attempt, provider_id, now=parts.clock.now()))


def _log_fault(what: str, notice: Notice, fault: Exception) -> None:
    extra = {"action": "deliver", "transition_id": notice.transition_id, "error": type(fault).__name__}
    logger.error("%s: %s", what, fault_in_our_words(fault), extra=extra)


def _address_of(store: Store, notice: Notice) -> str | None:
    """Where the notice goes now. A notice made before its link had an owner goes to the owner set since."""
    team = notice.owner
    if team is None:
        link = store.get_link(notice.link_id)
        team = link.owner if link is not None else None
    owner = store.get_owner(team) if team is not None else None
    return owner.address if owner is not None else None


def _copies(store: Store, notice: Notice) -> Iterator[str]:
    """The addresses of the other teams, each once."""
    owners = (store.get_owner(team) for team in notice.also_used_by)
    yield from dict.fromkeys(owner.address for owner in owners if owner is not None)


def _is_possible_duplicate(notice: Notice) -> bool:
    return notice.last_error is not None and notice.last_error.startswith(LOST_ANSWER)


def _release_without_owner(parts: _Sender, notice: Notice) -> _End:
    missing = f"team {notice.owner!r} has no address" if notice.owner is not None else "the link has no owner"
    waiting = replace(
        notice,
        status=NoticeStatus.PENDING,
        last_error=_error(notice, f"{missing}, so nobody can be told"),
        next_attempt_at=parts.clock.now() + WAIT_FOR_OWNER,
    )
    _save(parts, waiting)
    return _End.WITHOUT_OWNER


def _after_acceptance(attempt: Notice, provider_id: str, *, now: datetime) -> Notice:
    return replace(
        attempt,
        status=NoticeStatus.SENT,
        provider_id=provider_id,
        sent_at=now,
        last_error=attempt.last_error if _is_possible_duplicate(attempt) else None,
    )


def _after_failure(attempt: Notice, error: DeliveryError, *, now: datetime) -> Notice:
    if error.kind is DeliveryFailure.NOT_ACCEPTED:
        status, due = NoticeStatus.PENDING, now + retry_wait(attempt.attempts)
    elif error.kind is DeliveryFailure.PERMANENT:
        return replace(attempt, status=NoticeStatus.FAILED, last_error=_error(attempt, str(error)))
    else:
        status, due = NoticeStatus.UNKNOWN, now + WAIT_FOR_WORD
        attempt = replace(attempt, last_error=LOST_ANSWER)
    return replace(attempt, status=status, last_error=_error(attempt, str(error)), next_attempt_at=due)


def _error(notice: Notice, message: str) -> str:
    """The message, behind the admission that must not be lost."""
    return f"{LOST_ANSWER}; {message}" if _is_possible_duplicate(notice) else message


def _settle(parts: _Sender, notice: Notice) -> _End:
    _save(parts, notice)
    return {
        NoticeStatus.SENT: _End.SENT,
        NoticeStatus.PENDING: _End.RETRIED,
        NoticeStatus.FAILED: _End.FAILED,
    }.get(notice.status, _End.UNKNOWN)


def _save(parts: _Sender, notice: Notice) -> None:
    """Give the notice back with its new status."""
    released = replace(notice, claimed_by=None, claim_until=None)
    if not parts.store.save_notice(released, claimed_by=parts.claimant):
        logger.warning(
            "another sender took the notice over meanwhile",
            extra={"action": "deliver", "transition_id": notice.transition_id, "status": notice.status.value},
        )
