"""What the provider tells afterwards is brought to the notices: idempotent, and in any order (SPEC 10)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from linkwatch_pipeline.domain.errors import StaleWrite
from linkwatch_pipeline.domain.mail_events import MailEvent, MailEventKind, after_event, is_about_owner
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.ports import Store
from linkwatch_pipeline.use_cases.deliver import notices_of_mail

logger = logging.getLogger(__name__)

MOST_TRIES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BadNews:
    """A mail that came back, was not sent after all, or was unwelcome.

    `teams` are those whose address it is, never the address itself; empty if it is nobody's any more.
    """

    transition_id: str
    kind: MailEventKind
    teams: tuple[str, ...]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileReport:
    """What events brought: how many changed a notice, said nothing new, or are about mails that nobody here knows.

    `unmatched` are the ids of those mails, the provider's where a mail carried none of ours.
    """

    changed: int = 0
    unchanged: int = 0
    unmatched: tuple[str, ...] = ()
    bad_news: tuple[BadNews, ...] = ()


def reconcile_mail_events(store: Store, events: Iterable[MailEvent]) -> ReconcileReport:
    """Bring each event to the notices that its mail told. Raises StaleWrite if a notice never stands still."""
    finder = _Finder(store)
    changed, unchanged = 0, 0
    unmatched: list[str] = []
    bad_news: list[BadNews] = []
    for event in events:
        told = finder.notices_of(event)
        if not told:
            unmatched.append(event.mail_id or event.provider_id)
            logger.info("mail event of an unknown mail", extra={"action": "reconcile", "kind": event.kind.value})
            continue
        moved = [_bring(store, transition_id, event) for transition_id in told]
        changed += any(moved)
        unchanged += not any(moved)
        if event.kind.is_bad_news:
            bad_news += [_bad_news(store, transition_id, event) for transition_id in told]
    return ReconcileReport(changed=changed, unchanged=unchanged, unmatched=tuple(unmatched), bad_news=tuple(bad_news))


class _Finder:
    """Which notices a mail told: the one it is named after, or all that were accepted under the provider's id."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._by_provider_id: dict[str, list[str]] | None = None

    def notices_of(self, event: MailEvent) -> Sequence[str]:
        if event.mail_id is not None and (told := notices_of_mail(self._store, event.mail_id)):
            return [notice.transition_id for notice in told]
        if self._by_provider_id is None:
            self._by_provider_id = {}
            for notice in self._store.notices():
                if notice.provider_id is not None:
                    self._by_provider_id.setdefault(notice.provider_id, []).append(notice.transition_id)
        return self._by_provider_id.get(event.provider_id, [])


def _bring(store: Store, transition_id: str, event: MailEvent) -> bool:
    """Whether the event changed the notice. A sender may be writing at the same time: then it is read again."""
    for _ in range(MOST_TRIES):
        notice = store.get_notice(transition_id)
        if notice is None:
            return False
        standing = after_event(notice, event)
        if standing == notice:
            return False
        if store.update_notice(standing, replaces=notice):
            _log(notice, standing, event)
            return True
    raise StaleWrite(f"notice {transition_id} changed {MOST_TRIES} times while an event was brought to it; try again.")


def _log(before: Notice, after: Notice, event: MailEvent) -> None:
    logger.info(  # no warning: whoever brings events is told of bad news by the report
        "mail event",
        extra={
            "action": "reconcile",
            "transition_id": before.transition_id,
            "kind": event.kind.value,
            "from_status": before.status.value,
            "to_status": after.status.value,
        },
    )


def _bad_news(store: Store, transition_id: str, event: MailEvent) -> BadNews:
    notice = store.get_notice(transition_id)
    owner = notice.owner if notice is not None else None
    whose = {address.lower() for address in event.recipients}
    teams = [team.team for team in store.owners() if team.address.lower() in whose]
    if not teams and owner is not None and notice is not None and is_about_owner(notice, event):
        teams = [owner]
    return BadNews(transition_id=transition_id, kind=event.kind, teams=tuple(teams), detail=event.detail)
