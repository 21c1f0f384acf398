"""The kinds of values that one setting or two alone have: addresses, hosts, names at AWS."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from linkwatch_pipeline.domain.allowances import MAX_AGREED_WITH, MAX_VISITS, Allowance
from linkwatch_pipeline.domain.errors import InvalidInput
from linkwatch_pipeline.domain.json_text import read_json
from linkwatch_pipeline.domain.links import MAX_CONFIRM, check_address, check_confirm, check_link_id
from linkwatch_pipeline.domain.urls import RefusedUrl, host_key
from linkwatch_pipeline.settings.kinds import Kind, list_of, text, text_like, whole_number


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine, going by its name."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_contact(value: object) -> str:
    """Printable ASCII on one line: it goes into a header, between parentheses."""
    if not isinstance(value, str) or not value.isascii() or not (value.isprintable() or value == ""):
        raise ValueError("a URL or an e-mail address in plain ASCII")
    if any(c in value for c in "()\\ ") or len(value) > 200:
        raise ValueError("a URL or an e-mail address of at most 200 characters, without spaces or parentheses")
    return value


def _check_confirm(value: object) -> int:
    if value is None or isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"a whole number from 1 to {MAX_CONFIRM}")
    check_confirm(value)
    return value


def _check_mail_from(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("an e-mail address")
    return check_address(value, "mail_from")


def _host_name(name: str, setting: str) -> str:
    mend = InvalidInput(setting, f"{name!r} is not a host name", "Give bare names, such as docs.example.com.")
    if any(c in name for c in "/?#:"):
        raise mend
    try:
        return host_key(f"https://{name}/")
    except RefusedUrl:
        raise mend from None


def _check_allowances(value: object) -> Mapping[str, Allowance]:
    if not isinstance(value, Mapping):
        raise ValueError(
            'a table, such as {"docs.example.com" = {visits = 2, agreed_with = "Ada, docs team"}}; in a variable JSON, '
            'such as {"docs.example.com": {"visits": 2, "agreed_with": "Ada, docs team"}}'
        )
    agreed: dict[str, Allowance] = {}
    for name, entry in value.items():
        host = _host_name(str(name), "allowances")
        if host in agreed:
            raise _twice(host)
        agreed[host] = _allowance(str(name), entry)
    return agreed


def _read_allowances(text: str) -> object:
    return read_json(text, of_fields=_each_once)


def _each_once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """What JSON leaves to its reader and TOML refuses: the last one would win without a word."""
    found: dict[str, Any] = {}
    for name, value in fields:
        if name in found:
            raise _twice(name)
        found[name] = value
    return found


def _twice(name: str) -> InvalidInput:
    return InvalidInput("allowances", f"{name!r} stands there twice", "Leave one of the two.")


def _allowance(host: str, entry: object) -> Allowance:
    """Refused without a word on who agreed: several visits at once are never our own decision."""
    if not isinstance(entry, Mapping) or not set(entry) <= {"visits", "agreed_with"}:
        mend = "Give the two fields visits and agreed_with, and nothing else."
        raise InvalidInput("allowances", f"{host!r} is not described rightly", mend)
    agreed_with = entry.get("agreed_with")
    if not isinstance(agreed_with, str) or not agreed_with.strip() or len(agreed_with) > MAX_AGREED_WITH:
        raise InvalidInput(
            "allowances",
            f"{host!r} has no agreed_with",
            f"Say in at most {MAX_AGREED_WITH} characters who of that host's operators agreed, and when.",
        )
    try:
        visits = whole_number(2, MAX_VISITS).check(entry.get("visits"))
    except ValueError as exc:
        mend = f"Give {exc}; without an entry a host has one visit at a time."
        raise InvalidInput("allowances", f"visits of {host!r} are {entry.get('visits')!r}", mend) from None
    return Allowance(visits=visits, agreed_with=agreed_with.strip())


def _check_webhook(value: object) -> str:
    """Its value is never repeated: such URLs hold secrets."""
    if not isinstance(value, str):
        raise InvalidInput("ops_webhook", "it is no text", "Write the URL between quotes.")
    if value and (problem := _url_problem(value)) is not None:
        mend = "Give a URL such as https://alerts.example.com/hook, or leave it empty."
        raise InvalidInput("ops_webhook", f"the URL {problem}", mend)
    return value


def _url_problem(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return "cannot be read"
    if parts.scheme not in ("http", "https") or not named:
        return "does not begin with http:// or https:// and a host"
    if "@" in parts.netloc:
        return "holds a user name or password"
    if not url.isascii() or not url.isprintable() or " " in url or len(url) > 2000:
        return "holds more than 2000 characters, spaces or characters beyond ASCII"
    return None


CONTACT = Kind(check=_check_contact)
CONFIRM = Kind(read=int, check=_check_confirm)
MAIL_FROM = Kind(check=_check_mail_from)
MAIL_SERVER = text_like(r"[A-Za-z0-9._:-]{0,253}", "the name or address of a mail server, without a scheme")
USER_NAME = text(
    "a user name of at most 200 visible characters in plain ASCII",
    lambda value: value.isascii() and value.isprintable() and len(value) <= 200,
)
HOSTS = list_of(lambda name: _host_name(name, "allowed_hosts"), 'a list of host names, such as ["docs.example.com"]')
ALLOWANCES = Kind(read=_read_allowances, check=_check_allowances)
LINK_IDS = list_of(
    lambda name: check_link_id(name, "canaries"),
    'a list of link ids, such as ["front-page", "docs-home", "status-page"]',
)
WEBHOOK = Kind(check=_check_webhook)
FILE = text(
    "the path of a file, within this home if it is relative, or empty",
    lambda value: value.isprintable() and len(value) <= 1000 and not value.endswith("/"),
)
SES_NAME = text_like(r"[A-Za-z0-9_-]{0,64}", "at most 64 letters, digits, '_' or '-'")
TABLE = text_like(r"[A-Za-z0-9_.-]{3,255}|", "the name of a DynamoDB table: 3 to 255 letters, digits, '_', '-' or '.'")
NAMESPACE = text_like(
    r"(?!AWS/)[A-Za-z0-9_./#-]{1,255}",
    "1 to 255 letters, digits, '_', '-', '.', '/' or '#', not beginning with AWS/, where only Amazon puts numbers",
)
QUEUE_URL = text_like(
    r"https?://[!-~]{1,500}/[A-Za-z0-9_-]{1,80}|",
    "the URL of an SQS queue, such as https://sqs.eu-west-1.amazonaws.com/123456789012/work",
)
BUCKET = text_like(
    r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[A-Za-z0-9_=.-]+)*|",
    "a bucket's name, and a prefix behind a slash if one is wanted, such as links-warehouse/weekly",
)
