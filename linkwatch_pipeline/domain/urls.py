"""Which URLs linkwatch accepts, and their one canonical spelling (the URL layer of the fetch boundary).

Sources: RFC 3986 for the shape, UTS 46 / IDNA 2008 (through `idna`) for host names, WHATWG for what browsers do with
odd IPv4 spellings, which are refused. Everything after the host is kept byte for byte and fetched so.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import NoReturn
from urllib.parse import quote

import idna

from linkwatch_pipeline.domain.reasons import Reason

MAX_URL_CHARACTERS = 2048
DEFAULT_PORTS = {"http": 80, "https": 443}

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
# Controls, every kind of space, and lone surrogates (which no encoding can send).
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ud800-\udfff]")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# A last label that a resolver may read as a number: 2130706433, 0x7f.1, 127.1, 0177.0.0.1
_NUMERIC_LABEL = re.compile(r"([0-9]+|0x[0-9a-f]*)")
_DOTTED_QUAD = re.compile(r"(0|[1-9][0-9]{0,2})(\.(0|[1-9][0-9]{0,2})){3}")


class RefusedUrl(ValueError):
    """A URL that linkwatch does not fetch; `reason` is what an observation would say, `problem` what a person reads."""

    def __init__(self, reason: Reason, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """A URL taken apart. `host` is the A-label name or a literal address without brackets: also the politeness key."""

    scheme: str
    host: str
    port: int
    target: str  # path and query, as sent

    @property
    def is_ipv6(self) -> bool:
        return ":" in self.host

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if self.is_ipv6 else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_url(text: str) -> Url:
    """Take an absolute http(s) URL apart, strictly. Raises RefusedUrl with the reason.

    The fragment is dropped. Which ports and addresses may be dialled is the fetch policy's question, not this one's.
    """
    _refuse_characters(text)
    scheme, rest = _split_scheme(text)
    if not rest.startswith("//"):
        _refuse(Reason.BLOCKED_URL, f"'{scheme}:' is not followed by '//' and a host")
    authority, target = _split_authority(rest[2:])
    host, port = _parse_authority(authority, scheme)
    url = Url(scheme=scheme, host=host, port=port, target=target)
    _refuse_length(str(url))  # percent-encoding may have made it longer, and its canonical spelling must be readable
    return url


def resolve_reference(base: Url, reference: str) -> Url:
    """The URL that a Location header at `base` points to, as strictly judged as one that a person gave.

    Source: RFC 3986 section 5.2.2. Raises RefusedUrl; an empty reference is refused as `redirect_invalid`.
    """
    if not reference:
        _refuse(Reason.REDIRECT_INVALID, "the redirect has no target")
    _refuse_characters(reference)
    if _SCHEME.match(reference):
        return parse_url(reference)
    if reference.startswith("//"):
        return parse_url(f"{base.scheme}:{reference}")
    return parse_url(f"{base.scheme}://{base.authority}{_merge(base.target, reference.partition('#')[0])}")


def canonical_url(text: str) -> str:
    """The one spelling under which a URL is matched: scheme and host lower-case, default port and fragment dropped."""
    return str(parse_url(text))


def host_key(text: str) -> str:
    """The politeness key of a URL: its A-label host name, without port."""
    return parse_url(text).host


def _refuse(reason: Reason, problem: str) -> NoReturn:
    raise RefusedUrl(reason, problem)


def _refuse_length(text: str) -> None:
    if len(text) > MAX_URL_CHARACTERS:
        _refuse(
            Reason.BLOCKED_URL,
            f"the URL has {len(text)} characters; at most {MAX_URL_CHARACTERS} are allowed",
        )


def _refuse_characters(text: str) -> None:
    _refuse_length(text)
    if _FORBIDDEN.search(text):
        _refuse(Reason.BLOCKED_URL, "the URL contains a space or a control character")
    if "\\" in text:
        _refuse(Reason.BLOCKED_URL, "the URL contains a backslash")


def _merge(base_target: str, reference: str) -> str:
    if not reference:  # it was a fragment alone: the same document
        return base_target
    base_path = base_target.partition("?")[0]
    path, mark, query = reference.partition("?")
    if not path:
        return f"{base_path}?{query}"
    if not path.startswith("/"):
        path = base_path.rpartition("/")[0] + "/" + path
    return _without_dot_segments(path) + mark + query


def _without_dot_segments(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):  # they name a folder
        kept.append("")
    return "/" + "/".join(kept)


def _split_scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.match(text)
    if match is None:
        _refuse(Reason.BLOCKED_URL, "the URL does not begin with http:// or https://")
    scheme = match[1].lower()
    if scheme not in DEFAULT_PORTS:
        _refuse(Reason.BLOCKED_SCHEME, f"the scheme '{scheme}' is not http or https")
    return scheme, text[match.end() :]


def _split_authority(rest: str) -> tuple[str, str]:
    end = next((i for i, c in enumerate(rest) if c in "/?#"), len(rest))
    authority, tail = rest[:end], rest[end:].partition("#")[0]
    if not tail.startswith("/"):
        tail = "/" + tail
    # Browsers and RFC 3987 both send non-ASCII characters as percent-encoded UTF-8; the rest stays byte for byte.
    return authority, quote(tail, safe="".join(map(chr, range(0x21, 0x7F))))


def _parse_authority(authority: str, scheme: str) -> tuple[str, int]:
    if "@" in authority:
        _refuse(Reason.BLOCKED_URL, "the URL carries credentials (an '@' before the host)")
    if "%" in authority:
        _refuse(Reason.BLOCKED_URL, "the host is percent-encoded or has a zone")
    if authority.startswith("["):
        literal, bracket, tail = authority[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            _refuse(Reason.BLOCKED_URL, "the brackets around the IPv6 address do not match")
        return _parse_ipv6(literal), _parse_port(tail[1:], scheme)
    name, _, port = authority.partition(":")
    return _parse_host(name), _parse_port(port, scheme)


def _parse_port(text: str, scheme: str) -> int:
    if text == "":
        return DEFAULT_PORTS[scheme]
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535):
        _refuse(Reason.BLOCKED_PORT, "the port is not a number from 1 to 65535")  # it may be half a password
    return int(text)


def _parse_ipv6(literal: str) -> str:
    try:
        return ipaddress.IPv6Address(literal).compressed
    except ValueError:
        _refuse(Reason.BLOCKED_URL, f"'[{literal}]' is not an IPv6 address")


def _parse_host(name: str) -> str:
    host = _to_a_label(name).removesuffix(".")  # example.com. and example.com are one host
    if not host:
        _refuse(Reason.BLOCKED_URL, "the URL has no host")
    if _DOTTED_QUAD.fullmatch(host):
        return _parse_ipv4(host)
    labels = host.split(".")
    if _NUMERIC_LABEL.fullmatch(labels[-1]):
        _refuse(Reason.BLOCKED_ADDRESS, f"{name!r} is an odd spelling of an IPv4 address")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        _refuse(Reason.BLOCKED_URL, f"{name!r} is not a host name")
    return host


def _parse_ipv4(host: str) -> str:
    try:
        return str(ipaddress.IPv4Address(host))
    except ValueError:
        _refuse(Reason.BLOCKED_ADDRESS, f"{host!r} is not an IPv4 address")


def _to_a_label(name: str) -> str:
    if name.isascii() and "xn--" not in name.lower():
        return name.lower()
    try:
        encoded = idna.encode(name, uts46=True, transitional=False).decode("ascii")
        idna.decode(encoded)  # a well-formed but meaningless A-label is refused here
    except (idna.IDNAError, UnicodeError):
        _refuse(Reason.BLOCKED_URL, f"{name!r} is not a valid international host name")
    return encoded.lower()
