"""A link: what is watched, for whom, and the summary of what is known about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from email.headerregistry import Address
from enum import StrEnum

from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.timestamps import require_utc
from linkwatch_pipeline.domain.urls import RefusedUrl, canonical_url

_LINK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_TEAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,79}")
_ADDRESS_LOCAL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}")
_ADDRESS_DOMAIN = re.compile(r"([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9-]{2,63}")
MAX_MARKER_CHARACTERS = 500
MAX_REASON_CHARACTERS = 300
MAX_PERSON_CHARACTERS = 80
MAX_CONFIRM = 10
LONG_FIELDS = ("places", "also_used_by")  # of a link: as many as a handbook has files and teams


class LinkState(StrEnum):
    """What linkwatch last knew for certain."""

    UNKNOWN = "unknown"
    REACHABLE = "reachable"
    BROKEN = "broken"


class AllocationSlot(StrEnum):
    """A link holds one sequence for the weekly run and one for a retry run at a time."""

    WEEKLY = "weekly"
    RETRY = "retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """A sequence promised to a run, with the configuration it was promised for."""

    run_id: str
    sequence: int
    host: str
    config_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a link stands in the handbook; `line` counts from 1.

    `scanned_for` is the team whose file a scan found it in, None if nobody scanned: an import says so.
    """

    file: str
    line: int
    scanned_for: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """Somebody knows that a link is broken. It holds for the state with this `version` and no other."""

    version: int
    reason: str
    by: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Configuration and current state of one watched URL. `host` is its politeness key.

    `confirm` None means the setting for all links. `last_sequence` is -1 and `version` 0 before the first observation.
    `active_since` is when it was registered, revived or moved; runs started before that leave it out.
    """

    id: str
    url: str
    host: str
    owner: str | None
    marker: str | None = None
    confirm: int | None = None
    config_version: int = 1
    active_since: datetime
    retired_at: datetime | None = None
    places: tuple[Place, ...] = ()
    also_used_by: tuple[str, ...] = ()
    state: LinkState = LinkState.UNKNOWN
    state_since: datetime | None = None
    version: int = 0
    last_sequence: int = -1
    broken_streak: int = 0
    allocations: Mapping[AllocationSlot, Allocation]
    ack: Ack | None = None

    def __post_init__(self) -> None:
        require_utc("active_since", self.active_since)

    @property
    def highest_sequence(self) -> int:
        """The highest sequence applied or promised; the next one allocated is one more."""
        return max([self.last_sequence, *(a.sequence for a in self.allocations.values())])

    @property
    def acknowledged(self) -> Ack | None:
        """The acknowledgement that holds now: of this very break. A recovery ends it without anybody writing."""
        holds = self.state is LinkState.BROKEN and self.ack is not None and self.ack.version == self.version
        return self.ack if holds else None


def in_brief(link: Link) -> Link:
    """The link without what may be long: all that a check needs of it."""
    return replace(link, places=(), also_used_by=()) if link.places or link.also_used_by else link


class Delivery(StrEnum):
    """How a team is told: a mail for each change, or one for all changes of a run."""

    EACH = "each"
    DIGEST = "digest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A team, the one address that its notices go to, and how: trusted configuration."""

    team: str
    address: str
    delivery: Delivery = Delivery.EACH


def check_link_id(value: str, field: str = "link id") -> str:
    """The id itself, or InvalidInput."""
    if not isinstance(value, str) or not _LINK_ID.fullmatch(value):
        raise InvalidInput(
            field,
            f"{shown(value)} is not a link id",
            "Use 1 to 80 letters, digits, '.', '_' or '-', beginning with a letter or digit.",
        )
    return value


def check_url(value: str, field: str = "url") -> str:
    """The canonical spelling of a URL that may be registered, or InvalidInput."""
    try:
        return canonical_url(value)
    except RefusedUrl as refused:
        raise InvalidInput(
            field,
            f"{shown(_without_credentials(value))} is refused: {refused.problem}",
            "Give an absolute URL such as https://docs.example.com/guide, without user name or password.",
        ) from None


def check_team(value: str, field: str = "owner") -> str:
    """The team name itself, or InvalidInput."""
    if not _TEAM.fullmatch(value) or value != value.strip():
        raise InvalidInput(
            field,
            f"{shown(value)} is not a team name",
            "Use 1 to 80 letters, digits, spaces, '.', '_' or '-', beginning with a letter or digit.",
        )
    return value


def check_address(value: str, field: str = "address") -> str:
    """A bare e-mail address (`name@host.example`), or InvalidInput. ASCII only: every mail provider takes those."""
    local, at, domain = value.rpartition("@")
    well_formed = (
        bool(at)
        and _ADDRESS_LOCAL.fullmatch(local) is not None
        and _ADDRESS_DOMAIN.fullmatch(domain) is not None
        and len(value) <= 254
        and not domain.rpartition(".")[2].isdigit()
    )
    try:
        if not well_formed:
            raise ValueError("shape")
        Address(addr_spec=value)  # RFC 5322 dot-atom rules (no leading, trailing or double dots)
    except ValueError:
        raise InvalidInput(
            field,
            f"{shown(value)} is not an e-mail address",
            "Give one bare address such as docs-team@example.com.",
        ) from None
    return value


def check_marker(value: str | None, field: str = "expect") -> str | None:
    """The expected text itself, or InvalidInput; None expects nothing."""
    if value is None:
        return None
    if not value.strip() or len(value) > MAX_MARKER_CHARACTERS or not value.isprintable():
        raise InvalidInput(
            field,
            f"{shown(value)} cannot be an expected text",
            f"Give 1 to {MAX_MARKER_CHARACTERS} printable characters on one line, not only spaces.",
        )
    return value


def check_reason(value: str, field: str = "reason") -> str:
    """Why somebody acknowledged or muted something, or InvalidInput."""
    return _check_line(value, field, "a reason", MAX_REASON_CHARACTERS)


def check_person(value: str | None, field: str = "by") -> str | None:
    """Who decided something, or InvalidInput; None is not known."""
    return _check_line(value, field, "a name", MAX_PERSON_CHARACTERS) if value is not None else None


def check_confirm(value: int | None, field: str = "confirm") -> int | None:
    """How many failing observations in a row make a link broken, or InvalidInput; None means the setting for all."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_CONFIRM:
        raise InvalidInput(
            field,
            f"{shown(value)} is not a count",
            f"Give a whole number from 1 to {MAX_CONFIRM}.",
        )
    return value


def _check_line(value: str, field: str, kind: str, most: int) -> str:
    if not value.strip() or len(value) > most or not value.isprintable():
        raise InvalidInput(
            field,
            f"{shown(value)} cannot be {kind}",
            f"Give 1 to {most} printable characters on one line, not only spaces.",
        )
    return value


def shown(value: object) -> str:
    """A value as an error shows it: not all of a long one."""
    text = repr(value)
    return text if len(text) <= 90 else f"{text[:60]}… ({len(text)} characters)"


def _without_credentials(url: object) -> object:
    """A refused URL may hold a password: it is never printed back."""
    return re.sub(r"^([^/]*//)?.*@", r"\1…@", url, flags=re.DOTALL) if isinstance(url, str) else url
