"""Sending one mail: its notices are claimed, the attempt is written down, the mail handed over, its end written down.

The discipline is the same for each notice of a mail. The policy for a lost answer: the notice is `unknown`; unless the
provider's own events say more, it is sent again after an hour, at most until its fifth attempt, and that mail and its
record admit to being a possible duplicate. Then a person or a late event decides. A crash leaves a claim or a `sending`
behind; `domain.notices` makes those claimable.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.errors import DamagedRecord, DeliveryError, DeliveryFailure
from linkwatch_pipeline.domain.links import Delivery, Owner
from linkwatch_pipeline.domain.notices import (
    LOST_ANSWER,
    Notice,
    NoticeStatus,
    digest_id,
    is_possible_duplicate,
    retry_wait,
    run_of_digest,
)
from linkwatch_pipeline.domain.redaction import fault_in_our_words
from linkwatch_pipeline.ports import Clock, Damaged, Mail, Notifier, Store
from linkwatch_pipeline.use_cases.damage import refuse_damaged_run
from linkwatch_pipeline.use_cases.digests import compose_digest
from linkwatch_pipeline.use_cases.mails import compose
from linkwatch_pipeline.use_cases.set_aside import End, error_of, owner_of, set_aside

logger = logging.getLogger(__name__)

WAIT_FOR_WORD = timedelta(hours=1)
MOST_ATTEMPTS_WITHOUT_WORD = 5
# What a mail may take: the longest call that a provider's adapter allows in a function, and three writes a notice.
CALL_TAKES = timedelta(seconds=20)
NOTICE_TAKES = timedelta(milliseconds=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Whose notices are sent, and how.

    Args: as for `deliver_notices`; `address` is where mails come from, `ends_at` the monotonic time at which this
    process ends, None for as long as it takes. `damaged` is told what a notice waits for that cannot be read;
    `damaged_runs` are such runs.
    """

    store: Store
    notifier: Notifier
    clock: Clock
    address: str
    claimant: str
    damaged: Damaged
    damaged_runs: Sequence[DamagedRecord] = ()
    ends_at: float | None = None

    def has_time_for(self, notices: int) -> bool:
        """Whether a mail of so many notices that is begun now is told and written down before this process ends."""
        if self.ends_at is None:
            return True
        takes = CALL_TAKES + notices * NOTICE_TAKES
        return self.clock.monotonic() + takes.total_seconds() <= self.ends_at


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taken:
    """A notice in this sender's hands that may go into a mail now."""

    notice: Notice
    owner: Owner


def send_mail(parts: Sender, mail: Sequence[Notice]) -> list[End]:
    """Send one mail that tells these notices; what became of each, in their order. Never raises for one of them."""
    ids = [notice.transition_id for notice in mail]
    try:
        ends = _deliver(parts, mail)
    except Exception as fault:  # a notice that trips us up must not silence the others; its claim ends by itself
        _log_fault("notice not delivered", ids, fault)
        return [End.WAITING] * len(mail)
    for name, end in zip(ids, ends, strict=True):
        logger.info("notice handled", extra={"action": "deliver", "transition_id": name, "end": end.value})
    return ends


def _deliver(parts: Sender, mail: Sequence[Notice]) -> list[End]:
    """Tell the notices of one mail; what became of each, in their order."""
    taken = [_take_alone(parts, found) for found in mail]
    telling = [part for part in taken if isinstance(part, _Taken)]
    sent = iter(_send(parts, telling) if telling else ())
    return [next(sent) if isinstance(part, _Taken) else part for part in taken]


def _take_alone(parts: Sender, found: Notice) -> _Taken | End:
    """As `_take`; a notice about which a damaged record would have to be read waits, and the rest of its mail goes."""
    try:
        refuse_damaged_run(found.run_id, parts.damaged_runs)
        return _take(parts, found)
    except DamagedRecord as error:
        parts.damaged(error)
        return End.WAITING


def _take(parts: Sender, found: Notice) -> _Taken | End:
    """Claim a notice if it may be told now; otherwise settle or leave it, and say which."""
    owner = owner_of(parts.store, found)
    aside = set_aside(parts.store, parts.clock, found, owner)
    if aside is not None or owner is None:
        return aside or End.WITHOUT_OWNER
    notice = parts.store.claim_notice(found.transition_id, by=parts.claimant, now=parts.clock.now())
    if notice is None:
        return End.WAITING
    # A pending one was certainly not accepted the last time, or a person had it sent again.
    repeats = found.status is not NoticeStatus.PENDING and is_possible_duplicate(notice)
    if repeats and notice.attempts >= MOST_ATTEMPTS_WITHOUT_WORD:
        parked = replace(notice, status=NoticeStatus.UNKNOWN, last_error=LOST_ANSWER, next_attempt_at=None)
        return _settle(parts, parked)
    return _Taken(notice=notice, owner=owner)


def _send(parts: Sender, telling: Sequence[_Taken]) -> list[End]:
    """Write the attempts down, call the provider once, and write down what it said."""
    attempts = _write_attempts(parts, telling)
    held = [attempt for attempt in attempts if attempt is not None]
    outcomes = iter(_hand_over(parts, telling, held) if held else ())
    return [next(outcomes) if attempt is not None else End.WAITING for attempt in attempts]


def _write_attempts(parts: Sender, telling: Sequence[_Taken]) -> list[Notice | None]:
    """Each notice as written down before the call; None for one that another sender took over meanwhile."""
    attempts: list[Notice | None] = []
    mail_id = telling[0].notice.mail_id
    for part in telling:
        attempt = _attempt(part, mail_id or _new_mail_id(part))
        saved = parts.store.save_notice(attempt, claimed_by=parts.claimant)
        # The first that is written down names the mail: it stands in no other.
        mail_id = mail_id or (attempt.mail_id if saved else None)
        attempts.append(attempt if saved else None)
    return attempts


def _new_mail_id(part: _Taken) -> str:
    notice = part.notice
    if part.owner.delivery is Delivery.DIGEST and notice.run_id is not None:
        return digest_id(part.owner.team, notice.run_id, notice.transition_id)
    return notice.transition_id


def _attempt(part: _Taken, mail_id: str) -> Notice:
    return replace(
        part.notice,
        status=NoticeStatus.SENDING,
        attempts=part.notice.attempts + 1,
        recipient=part.owner.address,
        mail_id=mail_id,
        next_attempt_at=None,
        last_error=LOST_ANSWER if is_possible_duplicate(part.notice) else part.notice.last_error,
    )


def _hand_over(parts: Sender, telling: Sequence[_Taken], attempts: Sequence[Notice]) -> list[End]:
    doing, kind = "composing", DeliveryFailure.NOT_ACCEPTED
    try:
        mail = _composed(parts, telling[0].owner, attempts)
        doing, kind = "sending", DeliveryFailure.UNKNOWN  # from here on a fault of ours may leave a mail behind
        provider_id = parts.notifier.send(mail)
    except DeliveryError as error:
        failure = error
    except Exception as fault:
        _log_fault(f"{doing} failed", [attempt.transition_id for attempt in attempts], fault)
        failure = DeliveryError(f"internal fault while {doing}: {type(fault).__name__}", kind)
    else:
        return [_settle(parts, _after_acceptance(n, provider_id, now=parts.clock.now())) for n in attempts]
    return [_settle(parts, _after_failure(attempt, failure, now=parts.clock.now())) for attempt in attempts]


def _log_fault(what: str, ids: Sequence[str], fault: Exception) -> None:
    extra = {"action": "deliver", "transition_id": ", ".join(ids), "error": type(fault).__name__}
    logger.error("%s: %s", what, fault_in_our_words(fault), extra=extra)


def _composed(parts: Sender, owner: Owner, attempts: Sequence[Notice]) -> Mail:
    first = attempts[0]
    mail_id = first.mail_id or first.transition_id
    copies = [address for address in _copies(parts.store, attempts) if address != owner.address]
    repeated = any(is_possible_duplicate(attempt) for attempt in attempts)
    now = parts.clock.now()
    if run_of_digest(mail_id) is None:
        return compose(first, owner.address, copies, sender=parts.address, now=now, repeated=repeated)
    return compose_digest(attempts, owner, copies, mail_id=mail_id, sender=parts.address, now=now, repeated=repeated)


def _copies(store: Store, notices: Sequence[Notice]) -> Iterator[str]:
    """The addresses of the other teams, each once."""
    owners = (store.get_owner(team) for notice in notices for team in notice.also_used_by)
    yield from dict.fromkeys(owner.address for owner in owners if owner is not None)


def _after_acceptance(attempt: Notice, provider_id: str, *, now: datetime) -> Notice:
    return replace(
        attempt,
        status=NoticeStatus.SENT,
        provider_id=provider_id,
        sent_at=now,
        last_error=attempt.last_error if is_possible_duplicate(attempt) else None,
    )


def _after_failure(attempt: Notice, error: DeliveryError, *, now: datetime) -> Notice:
    if error.kind is DeliveryFailure.NOT_ACCEPTED:
        status, due = NoticeStatus.PENDING, now + retry_wait(attempt.attempts)
    elif error.kind is DeliveryFailure.PERMANENT:
        return replace(attempt, status=NoticeStatus.FAILED, last_error=error_of(attempt, str(error)))
    else:
        status, due = NoticeStatus.UNKNOWN, now + WAIT_FOR_WORD
        attempt = replace(attempt, last_error=LOST_ANSWER)
    return replace(attempt, status=status, last_error=error_of(attempt, str(error)), next_attempt_at=due)


def _settle(parts: Sender, notice: Notice) -> End:
    _save(parts, notice)
    return {
        NoticeStatus.SENT: End.SENT,
        NoticeStatus.PENDING: End.RETRIED,
        NoticeStatus.FAILED: End.FAILED,
    }.get(notice.status, End.UNKNOWN)


def _save(parts: Sender, notice: Notice) -> None:
    """Give the notice back with its new status."""
    released = replace(notice, claimed_by=None, claim_until=None)
    if not parts.store.save_notice(released, claimed_by=parts.claimant):
        logger.warning(
            "another sender took the notice over meanwhile",
            extra={"action": "deliver", "transition_id": notice.transition_id, "status": notice.status.value},
        )
