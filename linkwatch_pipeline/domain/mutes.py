"""A mute: nobody is told of a link, or of a host's links, until a day (SPEC 10). It stops delivery and never state."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.timestamps import format_seconds, parse_utc

LONGEST_MUTE = timedelta(days=366)
_LINK, _HOST = "link:", "host:"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mute:
    """What is muted (`link:guide`, `host:docs.example.com`), why, by whom if known, and from when until when (UTC).

    `ended_at` is when a person ended it before its time. `lifted_at` is when its links were looked through after its
    end, so that what had not been told was told; None means that this is still to be done.
    """

    target: str
    reason: str
    muted_by: str | None
    since: datetime
    until: datetime
    ended_at: datetime | None = None
    lifted_at: datetime | None = None

    @property
    def link_id(self) -> str | None:
        """The link that is muted; None for a host."""
        return self.target.removeprefix(_LINK) if self.target.startswith(_LINK) else None

    @property
    def host(self) -> str | None:
        """The host whose links are muted; None for a link."""
        return self.target.removeprefix(_HOST) if self.target.startswith(_HOST) else None

    @property
    def over_at(self) -> datetime:
        """When it ends or ended."""
        return min(self.until, self.ended_at) if self.ended_at is not None else self.until

    def is_active(self, now: datetime) -> bool:
        return now < self.over_at

    def covers(self, link_id: str, host: str) -> bool:
        return self.target in targets_of(link_id, host)


@dataclass(frozen=True, slots=True, kw_only=True)
class MuteView:
    """A mute, how many watched links it covers, and how many of them are broken now."""

    mute: Mute
    links: int
    broken: int


def link_target(link_id: str) -> str:
    return f"{_LINK}{link_id}"


def host_target(host: str) -> str:
    return f"{_HOST}{host}"


def targets_of(link_id: str, host: str) -> tuple[str, str]:
    """What the mutes of a link are known by."""
    return link_target(link_id), host_target(host)


def is_target(text: str) -> bool:
    """Whether it says what is muted: a link or a host."""
    return text.startswith((_LINK, _HOST))


def mute_of(mutes: Iterable[Mute], link_id: str, host: str, *, now: datetime) -> Mute | None:
    """The mute that keeps a link quiet now: the one that lasts longest."""
    active = [mute for mute in mutes if mute.covers(link_id, host) and mute.is_active(now)]
    return max(active, key=lambda mute: mute.over_at, default=None)


def check_until(value: str, *, now: datetime) -> datetime:
    """The end of a mute: a day (its beginning, UTC) or a moment, within a year from now. Raises InvalidInput."""
    mend = f"Give a day such as {(now + timedelta(days=14)).date().isoformat()}, at most a year from now."
    try:
        until = datetime.fromisoformat(value).replace(tzinfo=UTC) if _DAY.fullmatch(value) else parse_utc(value)
    except ValueError:
        raise InvalidInput("until", f"{value[:60]!r} is not a day or a moment in UTC", mend) from None
    if not now < until <= now + LONGEST_MUTE:
        when = "over already" if until <= now else "too far away"
        raise InvalidInput("until", f"{format_seconds(until)} is {when}", mend)
    return until
