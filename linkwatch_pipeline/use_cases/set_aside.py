"""What is not told now, and why: muted, out of turn, never to be told, or nobody there to be told."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from enum import StrEnum

from linkwatch_pipeline.domain.links import Owner
from linkwatch_pipeline.domain.mutes import mute_of, targets_of
from linkwatch_pipeline.domain.notices import LOST_ANSWER, Notice, NoticeStatus, is_possible_duplicate, is_waiting
from linkwatch_pipeline.domain.telling import is_lone_recovery, is_overtaken, waits_for_earlier
from linkwatch_pipeline.domain.urls import host_key
from linkwatch_pipeline.ports import Clock, Store
from linkwatch_pipeline.use_cases.damage import unless_mute_of
from linkwatch_pipeline.use_cases.mute import tell_difference

NEVER_TOLD = "nobody was told of the break, so its end is not announced alone"
OUTLIVED = "refused for good, and the link changed again before that was mended"
OVERTAKEN = "a later change of this link was settled without telling it"
MOST_ERROR_CHARACTERS = 2_000


class End(StrEnum):
    """What became of one notice in one delivery."""

    SENT = "sent"
    RETRIED = "retried"
    FAILED = "failed"
    UNKNOWN = "unknown"
    WAITING = "waiting"
    WITHOUT_OWNER = "without_owner"
    HELD = "held"
    MUTED = "muted"
    DISCARDED = "discarded"


def set_aside(store: Store, clock: Clock, found: Notice, owner: Owner | None) -> End | None:
    """Why a notice is not told now, after settling it if it never will be; None if it is to be told."""
    now = clock.now()
    if has_to_wait(store, found, now=now):
        return End.WAITING
    if is_waiting(found, now):
        siblings = list(store.notices(link_id=found.link_id))
        if _is_muted(store, found, now):
            return _mute(store, clock, found)
        if is_overtaken(found, siblings):
            return _mute(store, clock, found, why=OVERTAKEN)
        if is_lone_recovery(found, siblings):
            return _discard(store, found)
    return _say_that_nobody_is_there(store, found) if owner is None else None


def has_to_wait(store: Store, found: Notice, *, now: datetime) -> bool:
    """Whether a notice can neither be told nor settled now: a mail in doubt under a mute, or one out of turn."""
    if _is_muted(store, found, now):
        return not is_waiting(found, now)
    siblings = list(store.notices(link_id=found.link_id))
    settles_now = is_waiting(found, now) and is_overtaken(found, siblings)
    return not settles_now and waits_for_earlier(found, siblings)


def _is_muted(store: Store, notice: Notice, now: datetime) -> bool:
    """Raises DamagedRecord where a mute that cannot be read may cover it."""
    link_id, host = notice.link_id, host_key(notice.url)
    mutes = store.mutes(damaged=unless_mute_of(targets_of(link_id, host)))
    return mute_of(mutes, link_id, host, now=now) is not None


def _discard(store: Store, found: Notice) -> End:
    settled = replace(_untouched(found), status=NoticeStatus.DISCARDED, last_error=error_of(found, NEVER_TOLD))
    return End.DISCARDED if store.update_notice(settled, replaces=found) else End.WAITING


def _mute(store: Store, clock: Clock, found: Notice, *, why: str | None = None) -> End:
    """Settle a notice as muted. If the mute ended at this very moment, nobody may look again: so look here."""
    muted = replace(
        _untouched(found),
        status=NoticeStatus.MUTED,
        last_error=error_of(found, why) if why is not None else found.last_error,
    )
    if not store.update_notice(muted, replaces=found):
        return End.WAITING
    if not _is_muted(store, found, clock.now()):
        tell_difference(store, found.link_id, now=clock.now())
    return End.MUTED


def _untouched(notice: Notice) -> Notice:
    """The notice in nobody's hands."""
    return replace(notice, claimed_by=None, claim_until=None, next_attempt_at=None)


def _say_that_nobody_is_there(store: Store, notice: Notice) -> End:
    """Leave a notice pending, so that an owner who is named later is told at once; say why, once."""
    missing = f"team {notice.owner!r} has no address" if notice.owner is not None else "the link has no owner"
    said = replace(notice, last_error=error_of(notice, f"{missing}, so nobody can be told"))
    if said != notice:
        store.update_notice(said, replaces=notice)
    return End.WITHOUT_OWNER


def owner_of(store: Store, notice: Notice) -> Owner | None:
    """Who is told now. A notice made before its link had an owner goes to the owner set since."""
    team = notice.owner
    if team is None:
        link = store.get_link(notice.link_id)
        team = link.owner if link is not None else None
    return store.get_owner(team) if team is not None else None


def error_of(notice: Notice, message: str) -> str:
    """The message, behind the admission that must not be lost. A mail server may say any number of lines."""
    message = message[:MOST_ERROR_CHARACTERS]
    return f"{LOST_ANSWER}; {message}" if is_possible_duplicate(notice) else message
