"""What stands in a handbook: the links found there, which of them are watched, and under which ids.

Nothing is read here; `adapters/handbook` reads files and `use_cases/scan` puts the two together.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from typing import NoReturn
from urllib.parse import urljoin

from linkwatch_pipeline.domain.links import Place
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.redaction import redacted_url
from linkwatch_pipeline.domain.urls import RefusedUrl, Url, host_key, parse_url

HOST_SLUG_CHARACTERS = 30
PATH_SLUG_CHARACTERS = 40

_SHOWN_CHARACTERS = 200
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_TEMPLATE = re.compile(r"[{}]|<[^<>]*>")
# SharePoint writes document ids so; they are part of the address.
_GUID = re.compile(r"\{[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}")
_SEPARATORS = re.compile(r"[^a-z0-9]+")
# RFC 6761, 6762, 8375, 9476 and ICANN's list of collisions: names that only a private network answers for.
_PRIVATE_NAMES = (
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "lan",
    "corp",
    "home",
    "home.arpa",
    "private",
)


class Aside(StrEnum):
    """A reference that is counted and not checked."""

    MAIL = "mail addresses"
    PHONE = "phone numbers"
    ANCHOR = "anchors"
    RELATIVE = "relative links"
    OTHER_SCHEME = "other schemes"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLink:
    """A reference as a reader's browser would see it, entities decoded and `<base>` applied; `line` counts from 1."""

    text: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """One file of a handbook. `file` is its path under the PATH that was given.

    `problem` says why not all of it could be read, None if it was. `passed` says why it was left out on purpose.
    """

    file: str
    links: tuple[FoundLink, ...] = ()
    problem: str | None = None
    passed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundUrl:
    """A URL to watch, canonical, with every place in (file, line) order."""

    url: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A link that is not watched, and why. `text` never holds a password."""

    file: str
    line: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProblem:
    """A file (or folder) that could not be read, or not whole."""

    file: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanResult:
    """What a handbook holds. `found` is in URL order, the rest in (file, line) order.

    `files` were read, whole or in part; `problems` could not be, or not whole; `passed` were left out on purpose.
    """

    found: tuple[FoundUrl, ...]
    skipped: tuple[Skipped, ...]
    asides: Mapping[Aside, int]
    files: tuple[str, ...]
    problems: tuple[FileProblem, ...]
    passed: tuple[FileProblem, ...]


def read_reference(text: str, *, base: str | None) -> Url | Aside:
    """What a reference in a file points to.

    Args: base: the URL of the file itself, None if nobody said where the handbook stands.
    Raises: RefusedUrl with the reason why it is not watched.
    """
    text = _as_a_browser_reads_it(text)
    if _TEMPLATE.search(_GUID.sub("", text)):
        _refuse("a template: the address exists only when the page is built")
    if text == "" or text.startswith("#"):
        return Aside.ANCHOR
    scheme = _SCHEME.match(text)
    if scheme is not None:
        return _read_absolute(text, scheme[1].lower())
    if text.startswith("//"):
        return parse_url(f"https:{text}")
    if base is None:
        return Aside.RELATIVE
    try:
        return parse_url(urljoin(base, text))
    except RefusedUrl:
        raise
    except ValueError:  # urljoin's own
        _refuse("the relative address cannot be read")


def shown_reference(text: str) -> str:
    """A reference for people to read: without a password, and not too long."""
    text = re.sub(r"//[^/?#]*@", "//…@", text)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def refuse_private_name(url: Url) -> None:
    """Raise RefusedUrl for a host name that only a private network can know. Literal addresses are not judged here."""
    if is_literal(url.host):
        return
    if "." not in url.host or any(url.host == name or url.host.endswith(f".{name}") for name in _PRIVATE_NAMES):
        raise RefusedUrl(Reason.BLOCKED_ADDRESS, f"{url.host!r} is not a name of the public Internet")


def is_literal(host: str) -> bool:
    """Whether a host is an IP address and not a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def scanned_link_id(url: str) -> str:
    """The id of a link that a scan registers: readable, and the same for the same canonical URL on every machine.

    Ids stand in logs and mails, so a query value that looks like a secret does not become a part of one.
    """
    digest = hashlib.sha256(url.encode()).hexdigest()[:8]
    host = _slug(host_key(url), HOST_SLUG_CHARACTERS)
    path = _slug(redacted_url(parse_url(url).target).lower(), PATH_SLUG_CHARACTERS)
    return "-".join(part for part in (host, path, digest) if part)


def scanned_link_ids(url: str) -> Iterator[str]:
    """The ids to try for a new link, best first: a link that was moved to another URL keeps its own."""
    link_id = scanned_link_id(url)
    yield link_id
    yield from (f"{link_id[:70]}-{number}" for number in range(2, 10_000))


def has_scanned_id(link_id: str, url: str) -> bool:
    """Whether an id is one that a scan gives to this URL, and so not one that a person chose."""
    scanned = scanned_link_id(url)
    return link_id == scanned or re.fullmatch(rf"{re.escape(scanned[:70])}-[0-9]{{1,4}}", link_id) is not None


def _as_a_browser_reads_it(text: str) -> str:
    """Source: WHATWG URL, "basic URL parser", steps 1-3; a space inside is sent as %20."""
    text = text.strip("".join(map(chr, range(0x21))))
    return re.sub(r"[\t\n\r]", "", text).replace(" ", "%20")


def _read_absolute(text: str, scheme: str) -> Url | Aside:
    if "ttp" in scheme:  # http and https; and `hhttps` is a slip that its author will want to see
        return parse_url(text)
    return {"mailto": Aside.MAIL, "tel": Aside.PHONE}.get(scheme, Aside.OTHER_SCHEME)


def _slug(text: str, characters: int) -> str:
    return _SEPARATORS.sub("-", text).strip("-")[:characters].strip("-")


def _refuse(problem: str) -> NoReturn:
    raise RefusedUrl(Reason.BLOCKED_URL, problem)
