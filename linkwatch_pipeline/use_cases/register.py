"""Register, update and retire links, and say where a team's notices go (SPEC 6). Nothing here visits a URL.

Every function checks all it is given before it writes, and reads again when somebody else wrote meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, StrEnum
from functools import partial
from typing import Final

from linkwatch_pipeline.domain.errors import ConflictingContent, InvalidInput, NotFound, StaleWrite
from linkwatch_pipeline.domain.links import (
    Delivery,
    Link,
    LinkState,
    Owner,
    check_address,
    check_confirm,
    check_link_id,
    check_marker,
    check_team,
    check_url,
)
from linkwatch_pipeline.domain.redaction import redacted_url
from linkwatch_pipeline.domain.urls import host_key
from linkwatch_pipeline.ports import Damaged, Store
from linkwatch_pipeline.use_cases.damage import unless_one_of

ATTEMPTS = 20  # each fails only because another writer succeeded


class Keep(Enum):
    """Says that a value stays as it is, where None has a meaning of its own."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP


class Change(StrEnum):
    """What became of a link."""

    REGISTERED = "registered"
    REVIVED = "revived"
    UPDATED = "updated"
    RETIRED = "retired"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """The link as stored now, and what was done to it."""

    link: Link
    change: Change


def set_owner(store: Store, *, team: str, address: str | None, delivery: Delivery | None = None) -> Owner:
    """Say where a team's notices go from now on, and how, those that are still pending included.

    Args: address, delivery: None keeps what is known; without anything known, a mail goes out for each change.
    Raises: InvalidInput, NotFound for a new team without an address.
    """
    known = store.get_owner(check_team(team))
    if address is not None:
        owner = Owner(team=team, address=check_address(address), delivery=known.delivery if known else Delivery.EACH)
    elif known is not None:
        owner = known
    else:
        raise NotFound(f"there is no owner {team!r}; give its address too: 'linkwatch owner {team} ADDRESS'.")
    owner = replace(owner, delivery=delivery or owner.delivery)
    store.put_owner(owner)
    return owner


def register_link(
    store: Store,
    *,
    link_id: str,
    url: str,
    owner: str,
    notify: str | None = None,
    marker: str | None = None,
    confirm: int | None = None,
    now: datetime,
) -> Registered:
    """Watch a URL for a team.

    A repetition changes nothing; the same id and URL revives a retired link and completes one without an owner.

    Args:
        notify: the address of a new owner; one that is known already has its own.
        marker: text that the page must contain, None expects nothing.
        confirm: failing observations that make it broken, None for the setting of all links.
        now: aware UTC.
    Raises: InvalidInput, NotFound (no such owner), ConflictingContent (another URL, address or configuration).
    """
    check_link_id(link_id)
    url = check_url(url)
    check_team(owner)
    wanted = Link(
        id=link_id,
        url=url,
        host=host_key(url),
        owner=owner,
        marker=check_marker(marker),
        confirm=check_confirm(confirm),
        active_since=now,
        allocations={},
    )
    return _save(
        store,
        link_id,
        lambda stored: registration(stored, wanted, rival_of=partial(_rival, store), now=now),
        make_owner=lambda: owner_to_write(store, owner, notify),
    )


def update_link(
    store: Store,
    *,
    link_id: str,
    url: str | None = None,
    owner: str | None = None,
    notify: str | None = None,
    marker: str | Keep | None = KEEP,
    confirm: int | Keep | None = KEEP,
    now: datetime,
) -> Registered:
    """Change a link's configuration; what is not given stays.

    A new URL is a new page: its state is unknown again, without a transition. A new URL or marker makes jobs that were
    planned before end as cancelled.

    Raises: InvalidInput, NotFound, ConflictingContent (retired, or the URL belongs to another link).
    """
    check_link_id(link_id)
    url = check_url(url) if url is not None else None
    marker = marker if isinstance(marker, Keep) else check_marker(marker)
    confirm = confirm if isinstance(confirm, Keep) else check_confirm(confirm)
    if owner is None and notify is not None:
        raise InvalidInput(
            "notify", "an address alone changes nothing", "Name the owner too, or use 'linkwatch owner'."
        )

    def decide(stored: Link | None) -> Registered:
        link = _existing(stored, link_id)
        if link.retired_at is not None:
            raise ConflictingContent(f"link {link_id!r} is retired; register it again to revive it.")
        after = _configured(link, url=url, owner=owner, marker=marker, confirm=confirm, now=now)
        if after.url != link.url:
            _check_url_is_free(after, partial(_rival, store))
        return Registered(link=after, change=Change.UNCHANGED if after == link else Change.UPDATED)

    def make_owner() -> Owner | None:
        return owner_to_write(store, owner, notify) if owner is not None else None

    return _save(store, link_id, decide, make_owner=make_owner)


def retire_link(store: Store, *, link_id: str, now: datetime) -> Registered:
    """Stop watching a link; its history and earned notices stay. Raises InvalidInput, NotFound."""
    check_link_id(link_id)

    def decide(stored: Link | None) -> Registered:
        link = _existing(stored, link_id)
        if link.retired_at is not None:
            return Registered(link=link, change=Change.UNCHANGED)
        retired = replace(link, retired_at=now, config_version=link.config_version + 1)
        return Registered(link=retired, change=Change.RETIRED)

    return _save(store, link_id, decide)


def list_links(
    store: Store, *, owner: str | None = None, state: LinkState | None = None, damaged: Damaged | None = None
) -> Iterator[Link]:
    """Links in id order, retired ones included. Raises NotFound for an owner that nobody ever named.

    Args: damaged: as in `ports.damaged`.
    """
    if owner is not None and store.get_owner(check_team(owner)) is None:
        raise NotFound(f"there is no owner {owner!r}; 'linkwatch owner --list' shows them.")
    return (link for link in store.links(owner=owner, damaged=damaged) if state is None or link.state is state)


def owner_to_write(store: Store, team: str, notify: str | None) -> Owner | None:
    """The owner that has to be made; None if the team is known, with the same address if one is given."""
    check_team(team)
    address = check_address(notify, "notify") if notify is not None else None
    known = store.get_owner(team)
    if known is None and address is None:
        raise NotFound(
            f"there is no owner {team!r}; give its address with --notify, or run 'linkwatch owner {team} ADDRESS'."
        )
    if known is None or address is None:
        return Owner(team=team, address=address) if address is not None else None
    if known.address != address:
        raise ConflictingContent(
            f"owner {team!r} has the address {known.address}; change it for all its links with "
            f"'linkwatch owner {team} {address}'."
        )
    return None


def registration(
    stored: Link | None, wanted: Link, *, rival_of: Callable[[Link], Link | None], now: datetime
) -> Registered:
    """What becomes of the stored link (None if there is none) when somebody registers `wanted`.

    Args: rival_of: another link that watches the same URL now, None if the URL is free.
    Raises: ConflictingContent.
    """
    if stored is None:
        _check_url_is_free(wanted, rival_of)
        return Registered(link=wanted, change=Change.REGISTERED)
    if stored.url != wanted.url:
        raise ConflictingContent(
            f"link {stored.id!r} is registered with another URL ({redacted_url(stored.url)}); "
            f"change it with 'linkwatch update {stored.id} --url URL', or choose another id."
        )
    after = _configured(
        stored, url=None, owner=wanted.owner, marker=wanted.marker, confirm=wanted.confirm, now=stored.active_since
    )
    if stored.retired_at is not None:
        _check_url_is_free(wanted, rival_of)
        revived = replace(after, retired_at=None, active_since=now, config_version=stored.config_version + 1)
        return Registered(link=revived, change=Change.REVIVED)
    if after == stored:
        return Registered(link=stored, change=Change.UNCHANGED)
    if stored.owner is None:  # made by `record`: nobody has registered it yet
        return Registered(link=after, change=Change.REGISTERED)
    raise ConflictingContent(
        f"link {stored.id!r} is registered with another owner, expected text or confirmation; "
        f"change it with 'linkwatch update {stored.id}'."
    )


def _configured(
    link: Link,
    *,
    url: str | None,
    owner: str | None,
    marker: str | Keep | None,
    confirm: int | Keep | None,
    now: datetime,
) -> Link:
    """The link with what is given; jobs planned for another URL or marker become outdated."""
    after = replace(
        link,
        owner=owner if owner is not None else link.owner,
        marker=link.marker if isinstance(marker, Keep) else marker,
        confirm=link.confirm if isinstance(confirm, Keep) else confirm,
    )
    if url is not None and url != link.url:
        after = _moved(after, url, now)
    if (after.url, after.marker) != (link.url, link.marker):
        after = replace(after, config_version=link.config_version + 1)
    return after


def _moved(link: Link, url: str, now: datetime) -> Link:
    """The link at another URL: nothing is known of that page, and `version` counts the reset too."""
    known = link.state is not LinkState.UNKNOWN
    return replace(
        link,
        url=url,
        host=host_key(url),
        active_since=now,
        state=LinkState.UNKNOWN,
        state_since=None,
        version=link.version + 1 if known else link.version,
        broken_streak=0,
    )


def _check_url_is_free(wanted: Link, rival_of: Callable[[Link], Link | None]) -> None:
    rival = rival_of(wanted)
    if rival is not None:
        raise ConflictingContent(
            f"{redacted_url(wanted.url)} is watched already, as link {rival.id!r}"
            + (f" of {rival.owner}." if rival.owner else ".")
        )


def _rival(store: Store, wanted: Link) -> Link | None:
    links = store.links(damaged=unless_one_of([wanted.url], []))
    others = (link for link in links if link.url == wanted.url and link.id != wanted.id)
    return next((link for link in others if link.retired_at is None), None)


def _existing(stored: Link | None, link_id: str) -> Link:
    if stored is None:
        raise NotFound(f"there is no link {link_id!r}; 'linkwatch links' shows them.")
    return stored


def _save(
    store: Store,
    link_id: str,
    decide: Callable[[Link | None], Registered],
    *,
    make_owner: Callable[[], Owner | None] = lambda: None,
) -> Registered:
    """Write what `decide` makes of the stored link, together with the owner that has to be made.

    Both are decided anew whenever somebody else was faster.
    """
    for _ in range(ATTEMPTS):
        owner = make_owner()
        stored = store.get_link(link_id)
        decided = decide(stored)
        owners = [owner] if owner is not None else []
        links = [(decided.link, stored)] if decided.change is not Change.UNCHANGED else []
        if not owners and not links:
            return decided
        try:
            store.save_registry(owners=owners, links=links)
        except StaleWrite:
            continue
        return decided
    raise StaleWrite(f"link {link_id!r} changes all the time; nothing was written, try again later.")
