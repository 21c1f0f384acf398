"""Telling owners: every notice that is due is claimed, its attempt written down, its mail handed over (SPEC 10).

A mail tells one notice, or all of an owner's notices of one run that are due together (a digest); the discipline is the
same for each notice of it. Mails about one link go in order, and what an owner was told last decides what is told next
(`domain.telling`).

The policy for a lost answer: the notice is `unknown`; unless the provider's own events say more, it is sent again
after an hour, at most until its fifth attempt, and that mail and its record admit to being a possible duplicate. Then a
person or a late event decides. A crash leaves a claim or a `sending` behind; `domain.notices` makes those claimable.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.breaker import BreakerRules
from linkwatch_pipeline.domain.errors import DeliveryError, DeliveryFailure
from linkwatch_pipeline.domain.links import Delivery, Owner
from linkwatch_pipeline.domain.notices import (
    LOST_ANSWER,
    Notice,
    NoticeStatus,
    digest_id,
    is_claimable,
    is_possible_duplicate,
    retry_wait,
    run_of_digest,
)
from linkwatch_pipeline.domain.redaction import fault_in_our_words
from linkwatch_pipeline.ports import Clock, Mail, Notifier, Store
from linkwatch_pipeline.use_cases.digests import compose_digest
from linkwatch_pipeline.use_cases.mails import compose
from linkwatch_pipeline.use_cases.mute import lift_mutes
from linkwatch_pipeline.use_cases.release import release_notices
from linkwatch_pipeline.use_cases.reopen import reopen_refused
from linkwatch_pipeline.use_cases.set_aside import End, error_of, has_to_wait, owner_of, set_aside

logger = logging.getLogger(__name__)

WAIT_FOR_WORD = timedelta(hours=1)
MOST_ATTEMPTS_WITHOUT_WORD = 5
MOST_IN_A_MAIL = 1000  # all of its notices are claimed and written down well within one claim
# What a mail may take: the longest call that a provider's adapter allows in a function, and three writes a notice.
CALL_TAKES = timedelta(seconds=20)
NOTICE_TAKES = timedelta(milliseconds=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReport:
    """How many notices a delivery brought to which end.

    `retried` were not accepted and will be tried again. `waiting` are the unsettled ones that it left alone: not due,
    in another sender's hands, given up earlier, or beyond the limit. `without_owner` have nobody to be told. `held`
    wait for a person's decision about their run. `muted` and `discarded` are settled without a mail.
    """

    sent: int = 0
    retried: int = 0
    failed: int = 0
    unknown: int = 0
    waiting: int = 0
    without_owner: int = 0
    held: int = 0
    muted: int = 0
    discarded: int = 0

    @property
    def unsent(self) -> int:
        """Notices that nobody has been told of for certain, and somebody should be."""
        return self.retried + self.failed + self.unknown + self.waiting + self.without_owner + self.held


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sender:
    store: Store
    notifier: Notifier
    clock: Clock
    address: str
    claimant: str
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


def deliver_notices(
    store: Store,
    notifier: Notifier,
    *,
    clock: Clock,
    sender: str,
    claimant: str,
    limit: int | None = None,
    life: timedelta | None = None,
    breaker: BreakerRules | None = None,
    refused_too: bool = False,
) -> DeliveryReport:
    """Send every notice that is due, oldest first, whatever day it was made. One bad notice never stops the others.

    Runs whose time has come are ruled on first, and mutes that are over lifted.

    Args:
        sender: the address that mails come from.
        claimant: names this sender; unique among all that may be at work.
        limit: how many notices to try at most; None for all.
        life: how long this process goes on at most; a mail that would outlast it is not begun, so that none is cut in
            the middle. None for as long as it takes.
        breaker: when a run is suspect; None for the usual rules.
        refused_too: whether those that were refused for good are tried again, though their address is the same.
    """
    ends_at = clock.monotonic() + life.total_seconds() if life is not None else None
    parts = _Sender(store=store, notifier=notifier, clock=clock, address=sender, claimant=claimant, ends_at=ends_at)
    prepare_delivery(store, breaker or BreakerRules(), now=clock.now())
    if refused_too:
        reopen_refused(store, now=clock.now(), whatever_address=True)
    ends: Counter[End] = Counter()
    tried = 0
    # Read whole, since what is read changes meanwhile; unsettled notices are few.
    for mail in _mails(store, list(store.notices(unsettled_only=True))):
        now = clock.now()
        claimable = [notice for notice in mail if is_claimable(notice, now)]
        due = claimable[: limit - tried] if limit is not None else claimable
        due = due if parts.has_time_for(len(due)) else []
        tried += len(due)
        ends.update(_left_alone(notice) for notice in mail if not is_claimable(notice, now))
        ends.update([End.WAITING] * (len(claimable) - len(due)))
        ends.update(_deliver_safely(parts, due))
    return DeliveryReport(**{end.value: ends[end] for end in End})


def prepare_delivery(store: Store, breaker: BreakerRules, *, now: datetime) -> None:
    """Rule on the runs whose time has come, release or hold their notices, lift the mutes that are over, and take up
    again what an address refused that was replaced since."""
    release_notices(store, breaker, now=now)
    lift_mutes(store, now=now)
    reopen_refused(store, now=now)


def due_notices(store: Store, *, now: datetime) -> list[Notice]:
    """The unsettled notices that a delivery would do something about now: not those that nobody can be told."""
    claimable = [notice for notice in store.notices(unsettled_only=True) if is_claimable(notice, now)]
    return [n for n in claimable if owner_of(store, n) is not None and not has_to_wait(store, n, now=now)]


def notices_of_mail(store: Store, mail_id: str) -> list[Notice]:
    """All notices that a mail told, by the id that it carried (`Mail.transition_id`); none if nobody knows it."""
    run_id = run_of_digest(mail_id)
    if run_id is not None:
        return [notice for notice in store.notices(run_id=run_id) if notice.mail_id == mail_id]
    notice = store.get_notice(mail_id)
    return [notice] if notice is not None else []


def _mails(store: Store, notices: Sequence[Notice]) -> list[list[Notice]]:
    """The notices that go together in one mail, in the order of the first of each; very long mails are cut."""
    mails: dict[tuple[str, ...], list[Notice]] = {}
    for notice in notices:
        mails.setdefault(_mail_key(store, notice), []).append(notice)
    return [mail[i : i + MOST_IN_A_MAIL] for mail in mails.values() for i in range(0, len(mail), MOST_IN_A_MAIL)]


def _mail_key(store: Store, notice: Notice) -> tuple[str, ...]:
    """What a notice has in common with those in its mail. Whoever was tried in one mail is tried again in that one."""
    if notice.mail_id is not None:
        return (notice.mail_id,)
    owner = owner_of(store, notice)
    if owner is None or owner.delivery is Delivery.EACH or notice.run_id is None:
        return (notice.transition_id,)
    return (owner.team, notice.run_id)


def _left_alone(notice: Notice) -> End:
    return End.HELD if notice.status is NoticeStatus.HELD else End.WAITING


def _deliver_safely(parts: _Sender, mail: Sequence[Notice]) -> list[End]:
    ids = [notice.transition_id for notice in mail]
    try:
        ends = _deliver(parts, mail)
    except Exception as fault:  # a notice that trips us up must not silence the others; its claim ends by itself
        _log_fault("notice not delivered", ids, fault)
        return [End.WAITING] * len(mail)
    for name, end in zip(ids, ends, strict=True):
        logger.info("notice handled", extra={"action": "deliver", "transition_id": name, "end": end.value})
    return ends


def _deliver(parts: _Sender, mail: Sequence[Notice]) -> list[End]:
    """Tell the notices of one mail; what became of each, in their order."""
    taken = [_take(parts, found) for found in mail]
    telling = [part for part in taken if isinstance(part, _Taken)]
    sent = iter(_send(parts, telling) if telling else ())
    return [next(sent) if isinstance(part, _Taken) else part for part in taken]


def _take(parts: _Sender, found: Notice) -> _Taken | End:
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


def _send(parts: _Sender, telling: Sequence[_Taken]) -> list[End]:
    """Write the attempts down, call the provider once, and write down what it said."""
    attempts = _write_attempts(parts, telling)
    held = [attempt for attempt in attempts if attempt is not None]
    outcomes = iter(_hand_over(parts, telling, held) if held else ())
    return [next(outcomes) if attempt is not None else End.WAITING for attempt in attempts]


def _write_attempts(parts: _Sender, telling: Sequence[_Taken]) -> list[Notice | None]:
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


def _hand_over(parts: _Sender, telling: Sequence[_Taken], attempts: Sequence[Notice]) -> list[End]:
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


def _composed(parts: _Sender, owner: Owner, attempts: Sequence[Notice]) -> Mail:
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


def _settle(parts: _Sender, notice: Notice) -> End:
    _save(parts, notice)
    return {
        NoticeStatus.SENT: End.SENT,
        NoticeStatus.PENDING: End.RETRIED,
        NoticeStatus.FAILED: End.FAILED,
    }.get(notice.status, End.UNKNOWN)


def _save(parts: _Sender, notice: Notice) -> None:
    """Give the notice back with its new status."""
    released = replace(notice, claimed_by=None, claim_until=None)
    if not parts.store.save_notice(released, claimed_by=parts.claimant):
        logger.warning(
            "another sender took the notice over meanwhile",
            extra={"action": "deliver", "transition_id": notice.transition_id, "status": notice.status.value},
        )
