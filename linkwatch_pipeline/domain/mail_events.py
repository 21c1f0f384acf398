"""What a mail provider tells about a mail later on, and what that makes of a notice (SPEC 10).

Events may come twice, late and in any order. So each kind has a rank, and a notice only ever rises: a late `delivery`
never hides a `bounce`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from linkwatch_pipeline.domain.notices import Notice, NoticeStatus


class MailEventKind(StrEnum):
    """What happened to a mail, in the words of Amazon SES."""

    SEND = "send"  # accepted, and on its way
    REJECT = "reject"  # accepted, then found unfit and not sent
    DELIVERY = "delivery"  # taken by the recipient's server
    BOUNCE = "bounce"  # came back
    COMPLAINT = "complaint"  # reported as unwanted

    @property
    def is_bad_news(self) -> bool:
        """Whether somebody was not told, or does not want to be."""
        return self in (MailEventKind.REJECT, MailEventKind.BOUNCE, MailEventKind.COMPLAINT)


# In rising order: the later one stands, whichever came first.
_STANDING = {
    MailEventKind.SEND: NoticeStatus.SENT,
    MailEventKind.REJECT: NoticeStatus.FAILED,
    MailEventKind.DELIVERY: NoticeStatus.DELIVERED,
    MailEventKind.BOUNCE: NoticeStatus.BOUNCED,
    MailEventKind.COMPLAINT: NoticeStatus.COMPLAINED,
}
# Begins what `last_error` says of somebody who is not the owner.
COPY_CAME_BACK = "of somebody who got a copy"
_RANKS = {status: rank for rank, status in enumerate(_STANDING.values(), start=1)}
_DECIDED_BY_PEOPLE = frozenset({NoticeStatus.HELD, NoticeStatus.MUTED, NoticeStatus.DISCARDED})


@dataclass(frozen=True, slots=True, kw_only=True)
class MailEvent:
    """One event of a provider.

    `mail_id` is the id that the mail carried (None if it carried none), `provider_id` the provider's own. `recipients`
    are the addresses that it concerns; none means all of them. `detail` says why, without anybody's address.
    """

    kind: MailEventKind
    mail_id: str | None
    provider_id: str
    at: datetime
    recipients: tuple[str, ...] = ()
    detail: str = ""


def is_about_owner(notice: Notice, event: MailEvent) -> bool:
    """Whether the event concerns the notice's own recipient, and not only somebody who got a copy.

    An address that has changed since the attempt counts as somebody else's.
    """
    if not event.recipients or notice.recipient is None:
        return True
    return notice.recipient.lower() in {address.lower() for address in event.recipients}


def after_event(notice: Notice, event: MailEvent) -> Notice:
    """The notice as it stands after the event: the same one if that says nothing new.

    Whatever happened to a copy proves that the mail was accepted, and no more. A notice that no provider was ever
    called for is left alone, and so is one that a person has decided about.
    """
    if notice.attempts == 0 or notice.status in _DECIDED_BY_PEOPLE:
        return notice
    own = is_about_owner(notice, event)
    status = _STANDING[event.kind if own else MailEventKind.SEND]
    risen = _risen(notice, event, status) if _RANKS[status] > _RANKS.get(notice.status, 0) else notice
    if own or not event.kind.is_bad_news or event.detail in (risen.last_error or ""):
        return risen
    return replace(risen, last_error=_joined(risen.last_error, f"{COPY_CAME_BACK}: {event.detail}"))


def copy_trouble(notice: Notice) -> str | None:
    """What happened to a copy of the notice's mail; None if nothing is known to have."""
    _, found, told = (notice.last_error or "").partition(COPY_CAME_BACK)
    return f"{found}{told}" if found else None


def _risen(notice: Notice, event: MailEvent, status: NoticeStatus) -> Notice:
    # A single attempt that turns out to have been accepted was never in doubt; several may be several mails.
    known = notice.last_error if notice.attempts > 1 else copy_trouble(notice)
    return replace(
        notice,
        status=status,
        provider_id=notice.provider_id or event.provider_id,
        sent_at=notice.sent_at or event.at,
        last_error=_joined(event.detail, copy_trouble(notice))
        if status is _STANDING[event.kind] and event.detail
        else known,
        next_attempt_at=None,
        claimed_by=None,
        claim_until=None,
    )


def _joined(*parts: str | None) -> str:
    return "; ".join(part for part in parts if part)
