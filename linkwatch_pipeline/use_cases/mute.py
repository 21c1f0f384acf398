"""Acknowledge a break, mute a link or a host for a while, and tell afterwards what was not told meanwhile (SPEC 10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from linkwatch_pipeline.domain.errors import ConflictingContent, DamagedRecord, InvalidInput, NotFound, StaleWrite
from linkwatch_pipeline.domain.links import Ack, Link, LinkState, check_link_id, check_person, check_reason
from linkwatch_pipeline.domain.mutes import Mute, MuteView, check_until, host_target, link_target, mute_of, targets_of
from linkwatch_pipeline.domain.notices import NoticeStatus
from linkwatch_pipeline.domain.telling import untold_difference
from linkwatch_pipeline.domain.urls import RefusedUrl, host_key
from linkwatch_pipeline.ports import Damaged, Store
from linkwatch_pipeline.use_cases.damage import Damage, each_alone, unless_mute_of

ATTEMPTS = 20  # each fails only because another writer succeeded
_KINDS = ("link:", "host:")


def acknowledge(store: Store, link_id: str, *, reason: str, by: str | None, now: datetime) -> Link:
    """Say that somebody knows of a link's break. Raises InvalidInput, NotFound, ConflictingContent (not broken)."""
    check_link_id(link_id)
    why, person = check_reason(reason), check_person(by)
    for _ in range(ATTEMPTS):
        link = store.get_link(link_id)
        if link is None:
            raise NotFound(f"there is no link {link_id!r}; 'linkwatch links' shows them.")
        if link.state is not LinkState.BROKEN:
            raise ConflictingContent(f"link {link_id!r} is {link.state.value}; only a broken one is acknowledged.")
        known = replace(link, ack=Ack(version=link.version, reason=why, by=person, at=now))
        try:
            store.save_link(known, replaces=link)
        except StaleWrite:
            continue
        return known
    raise StaleWrite(f"link {link_id!r} changes all the time; nothing was written, try again later.")


def mute(store: Store, target: str, *, until: str, reason: str, by: str | None, now: datetime) -> Mute:
    """Tell nobody of a link, or of a host's links, until then. A mute that is there already is replaced.

    Args:
        target: a link id or a host name; `link:...` or `host:...` where both exist.
        until: a day or a moment, as written.
    Raises: InvalidInput, NotFound.
    """
    wanted = Mute(
        target=_target(store, target),
        reason=check_reason(reason),
        muted_by=check_person(by),
        since=now,
        until=check_until(until, now=now),
    )
    for _ in range(ATTEMPTS):
        stored = _stored(store, wanted.target)
        # A mute that is only prolonged goes on; one whose end nobody has looked at yet is taken over with its links.
        goes_on = stored is not None and stored.lifted_at is None
        after = replace(wanted, since=stored.since) if stored is not None and goes_on else wanted
        if store.save_mute(after, replaces=stored):
            return after
    raise StaleWrite(f"the mute of {target!r} changes all the time; nothing was written, try again later.")


def unmute(store: Store, target: str, *, now: datetime) -> Mute:
    """End a mute now and tell what differs. Raises InvalidInput, NotFound if nothing is muted."""
    name = _written_target(store, target, now)
    for _ in range(ATTEMPTS):
        stored = _stored(store, name) if name is not None else None
        if stored is None or not stored.is_active(now):
            raise NotFound(f"{target!r} is not muted; 'linkwatch mutes' shows what is.")
        ended = replace(stored, ended_at=now)
        if store.save_mute(ended, replaces=stored):
            lift_mutes(store, now=now, damaged=Damage())
            return ended
    raise StaleWrite(f"the mute of {target!r} changes all the time; nothing was written, try again later.")


def lift_mutes(store: Store, *, now: datetime, damaged: Damaged) -> None:
    """Look through the links of every mute that is over, once; a crash in the middle has it done again.

    So has a damaged record: what it may have to tell is told once it is mended. A damaged mute may go on.
    """
    unread_mutes: list[DamagedRecord] = []
    mutes = list(store.mutes(damaged=unread_mutes.append))
    for error in unread_mutes:
        damaged(error)
    for ended in mutes:
        if ended.lifted_at is not None or ended.is_active(now):
            continue
        unread: list[DamagedRecord] = []

        def look(link: Link) -> None:
            for mute_error in unread_mutes:
                unless_mute_of(targets_of(link.id, link.host))(mute_error)
            if mute_of(mutes, link.id, link.host, now=now) is None:
                tell_difference(store, link.id, now=now)

        each_alone(_covered(store, ended, unread.append), look, unread.append)
        for error in unread:
            damaged(error)
        if not unread:
            store.save_mute(replace(ended, lifted_at=now), replaces=ended)


def tell_difference(store: Store, link_id: str, *, now: datetime) -> None:
    """Make the last muted notice of a link due if the link is not as its owner was told last."""
    for _ in range(ATTEMPTS):
        link = store.get_link(link_id)
        untold = untold_difference(link, list(store.notices(link_id=link_id))) if link is not None else None
        if untold is None:
            return
        due = replace(untold, status=NoticeStatus.PENDING, release_at=now, next_attempt_at=None, last_error=None)
        if store.update_notice(due, replaces=untold):
            return


def active_mutes(
    store: Store, links: Iterable[Link], *, now: datetime, damaged: Damaged | None = None
) -> dict[str, Mute]:
    """The mute that keeps each muted one of these links quiet now, by link id."""
    mutes = list(store.mutes(damaged=damaged))
    found = ((link.id, mute_of(mutes, link.id, link.host, now=now)) for link in links)
    return {link_id: known for link_id, known in found if known is not None}


def list_mutes(store: Store, *, damaged: Damaged | None = None) -> list[MuteView]:
    """All mutes in target order, those that ended included, with what they cover."""
    mutes = list(store.mutes(damaged=damaged))
    covered: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    for link in store.links(damaged=damaged) if mutes else ():
        if link.retired_at is None:
            targets = [known.target for known in mutes if known.covers(link.id, link.host)]
            covered.update(targets)
            broken.update(targets if link.state is LinkState.BROKEN else ())
    return [MuteView(mute=known, links=covered[known.target], broken=broken[known.target]) for known in mutes]


def _covered(store: Store, muted: Mute, damaged: Damaged) -> Iterator[Link]:
    if muted.link_id is None:
        yield from (link for link in store.links(damaged=damaged) if link.host == muted.host)
        return
    try:
        link = store.get_link(muted.link_id)
    except DamagedRecord as error:
        damaged(error)
    else:
        yield from [link] if link is not None else []


def _stored(store: Store, target: str) -> Mute | None:
    return next((known for known in store.mutes(damaged=unless_mute_of([target])) if known.target == target), None)


def _target(store: Store, written: str) -> str:
    """What somebody means: an existing link, or the host of one."""
    if written.startswith(_KINDS):
        named = _named(store, written)
        if named is None:
            raise NotFound(f"there is no link and no host of a link that {written!r} names.")
        return named
    found = [target for kind in _KINDS if (target := _named(store, f"{kind}{written}")) is not None]
    if not found:
        raise NotFound(f"there is no link {written!r} and no link on such a host; 'linkwatch links' shows them.")
    if len(found) > 1:
        raise InvalidInput("target", f"{written!r} is a link and a host", f"Write {' or '.join(found)}.")
    return found[0]


def _named(store: Store, written: str) -> str | None:
    """The target of an existing link or host, written with its kind."""
    kind, _, name = written.partition(":")
    if kind == "link":
        return link_target(name) if store.get_link(name) is not None else None
    try:
        host = host_key(f"https://{name}/")
    except RefusedUrl:
        return None
    return host_target(host) if any(link.host == host for link in store.links(damaged=Damage())) else None


def _written_target(store: Store, written: str, now: datetime) -> str | None:
    """The active mute that somebody means, whether its link still exists or not."""
    names = [written] if written.startswith(_KINDS) else [link_target(written), host_target(written.lower())]
    mutes = store.mutes(damaged=unless_mute_of(names))
    active = [known.target for known in mutes if known.target in names and known.is_active(now)]
    if len(active) > 1:
        raise InvalidInput("target", f"{written!r} is a link and a host", f"Write {' or '.join(active)}.")
    return active[0] if active else None
