"""What health has to read everything for: all links, all notices. Seldom, so that 600,000 links do not cost all day.

A look every five minutes reads runs, chains and unsettled notices. What changes by the day (links that nothing was
observed of, mutes that nobody needs, damaged history) is surveyed once a day, what mail providers told once an hour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice

from linkwatch_pipeline.domain.errors import DamagedRecord
from linkwatch_pipeline.domain.health import FRESH_FOR
from linkwatch_pipeline.domain.health_facts import AddressTrouble, UnseenLinks
from linkwatch_pipeline.domain.links import Link
from linkwatch_pipeline.domain.mail_events import copy_trouble
from linkwatch_pipeline.domain.mutes import Mute, MuteView
from linkwatch_pipeline.domain.notices import Notice, NoticeStatus
from linkwatch_pipeline.domain.runs import RunState, weekly_part
from linkwatch_pipeline.domain.sequences import has_next_sequence, no_sequence_left
from linkwatch_pipeline.domain.timestamps import parse_utc
from linkwatch_pipeline.ports import Damaged, Store
from linkwatch_pipeline.use_cases.damage import Damage, each_alone
from linkwatch_pipeline.use_cases.mute import list_mutes

LINKS_EVERY = timedelta(days=1)
MAILS_EVERY = timedelta(hours=1)
MAIL_TROUBLE_COUNTS_FOR = timedelta(days=30)
# Counting stops here: each is a query of its own, and after a thousand the number says no more.
MOST_UNSEEN_COUNTED = 1000
# The same holds for observations: those of more links are left to the weekly report, which reads them all.
MOST_OBSERVATIONS_READ = 10_000
EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSurvey:
    """What all links say. `watched_since` is when the first active one was registered, None without any."""

    taken_at: datetime
    muted: tuple[Mute, ...]
    watched_since: datetime | None
    unseen: UnseenLinks
    mutes: tuple[MuteView, ...]
    damaged: tuple[DamagedRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSurvey:
    """What all notices say about addresses."""

    taken_at: datetime
    address_troubles: tuple[AddressTrouble, ...]
    lost_copies: tuple[Notice, ...]
    damaged: tuple[DamagedRecord, ...]


class Surveyor:
    """Surveys a store, and remembers what it saw until that is too old. One for each store and process."""

    def __init__(self) -> None:
        self._links: LinkSurvey | None = None
        self._mails: MailSurvey | None = None

    def links(self, store: Store, *, now: datetime, damaged: Damaged) -> LinkSurvey:
        """As of the last day; anew if mutes changed, or if nothing was watched: that may have changed any minute.

        As of the last hour where a record was damaged: somebody may have mended it.

        Args: damaged: is told of the damaged mutes, which are read every time.
        """
        known, muted = self._links, tuple(store.mutes(damaged=damaged))
        every = MAILS_EVERY if known is not None and known.damaged else LINKS_EVERY
        if known is None or known.watched_since is None or known.muted != muted or _is_old(known, now, every):
            self._links = known = survey_links(store, muted, now=now)
        return known

    def mails(self, store: Store, *, now: datetime) -> MailSurvey:
        """As of the last hour."""
        known = self._mails
        if known is None or _is_old(known, now, MAILS_EVERY):
            self._mails = known = survey_mails(store, now=now)
        return known


def _is_old(survey: LinkSurvey | MailSurvey, now: datetime, every: timedelta) -> bool:
    return not timedelta(0) <= now - survey.taken_at < every


def survey_links(store: Store, muted: tuple[Mute, ...], *, now: datetime) -> LinkSurvey:
    """Read every link once (with mutes twice), the history of those that a run may have left out, and what is new."""
    watched_since: datetime | None = None
    unseen: list[Link] = []
    damage = Damage()
    for link in store.links(damaged=damage):
        if link.retired_at is not None:
            continue
        watched_since = min(watched_since or link.active_since, link.active_since)
        if not has_next_sequence(link):
            damage(no_sequence_left(link))
            continue
        if len(unseen) < MOST_UNSEEN_COUNTED and _is_unseen(store, link, now - FRESH_FOR, damage):
            unseen.append(link)
    _read_history(store, damage)
    return LinkSurvey(
        taken_at=now,
        muted=muted,
        watched_since=watched_since,
        unseen=UnseenLinks(
            count=len(unseen),
            examples=tuple(link.id for link in unseen[:EXAMPLES]),
            since=min((link.active_since for link in unseen), default=None),
            is_more=len(unseen) == MOST_UNSEEN_COUNTED,
        ),
        mutes=tuple(list_mutes(store, damaged=damage)) if muted else (),
        damaged=damage.records,
    )


def _read_history(store: Store, damaged: Damaged) -> None:
    """Find what is damaged among the transitions, and among the observations of open runs and of the newest week.

    Older ones are in the warehouse, or the report that would bring them there names them.
    """
    _read(store.transitions(damaged=damaged))
    runs = [run for run in store.runs(damaged=damaged) if run.state is not RunState.MISSED]
    newest = max((run.intended_at for run in runs), default=None)
    latest = [run for run in reversed(runs) if run.intended_at == newest or not run.state.is_over]
    observations = chain.from_iterable(store.observations(run_id=run.run_id, damaged=damaged) for run in latest)
    each_alone([islice(observations, MOST_OBSERVATIONS_READ)], _read, damaged)  # in a table, jobs lead to them


def _read(records: Iterable[object]) -> None:
    for _ in records:
        pass


def _is_unseen(store: Store, link: Link, since: datetime, damaged: Damaged) -> bool:
    """Whether a link was watched all the time since then, and nothing was observed of it.

    What a run allocated to it and it has passed was observed: almost all links are cleared without a query.
    """
    if link.active_since > since:
        return False
    passed = (a.run_id for a in link.allocations.values() if a.sequence <= link.last_sequence)
    if any(parse_utc(weekly_part(run_id)) >= since for run_id in passed):
        return False
    try:
        return not any(islice(store.observations(link_id=link.id, since=since), 1))
    except DamagedRecord as error:
        damaged(error)
        return False


def survey_mails(store: Store, *, now: datetime) -> MailSurvey:
    """Read every notice once."""
    damage = Damage()
    everything = store.notices(damaged=damage)
    notices = [n for n in everything if n.status in _ABOUT_ADDRESSES or copy_trouble(n) is not None]
    return MailSurvey(
        taken_at=now,
        address_troubles=tuple(_address_troubles(store, notices, now)),
        lost_copies=tuple(n for n in notices if copy_trouble(n) is not None and _is_recent(n, now)),
        damaged=damage.records,
    )


_ABOUT_ADDRESSES = frozenset({NoticeStatus.DELIVERED, NoticeStatus.BOUNCED, NoticeStatus.COMPLAINED})


def _address_troubles(store: Store, notices: Iterable[Notice], now: datetime) -> Iterator[AddressTrouble]:
    """By team, the bounces and complaints that still count: to its present address, with no later delivery to it."""
    teams = {owner.address.lower(): owner.team for owner in store.owners()}
    bad: dict[tuple[str, NoticeStatus], list[Notice]] = {}
    for notice in notices:
        address = (notice.recipient or "").lower()
        if notice.status is NoticeStatus.DELIVERED:
            bad.pop((address, NoticeStatus.BOUNCED), None)
        complained = notice.status is NoticeStatus.COMPLAINED and _is_recent(notice, now)
        if notice.status is NoticeStatus.BOUNCED or complained:
            bad.setdefault((address, notice.status), []).append(notice)
    for (address, status), told in sorted(bad.items()):
        if address in teams:
            yield AddressTrouble(team=teams[address], status=status, notices=tuple(told))


def _is_recent(notice: Notice, now: datetime) -> bool:
    return (notice.sent_at or notice.created_at) > now - MAIL_TROUBLE_COUNTS_FOR
