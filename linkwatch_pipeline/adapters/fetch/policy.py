"""Who may be visited. A policy judges a URL before anything is looked up, and every address before it is dialled.

The two policies are disjoint: the public one never admits loopback, the fixture one nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from ipaddress import ip_address
from typing import Protocol

from linkwatch_pipeline.adapters.fetch.addresses import is_public
from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.domain.fetching import TOTAL_DEADLINE
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.urls import RefusedUrl, Url

PUBLIC_PORTS = (80, 443)
FIXTURE_DEADLINE = timedelta(seconds=2)
_FIRST_UNPRIVILEGED_PORT = 1024

# Names that never belong to the public Internet (RFC 2606, 6761, 6762, 7686, 8375, 9476, ICANN's list of collisions).
_SPECIAL_NAMES = (
    "alt",
    "arpa",
    "corp",
    "example",
    "home",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "mail",
    "onion",
    "private",
    "test",
)


class Policy(Protocol):
    """What a fetcher asks before it acts. `deadline` is the network time that a whole look may take.

    `looks_up_names` is whether names may be asked of the machine's resolver when no other one is given.
    """

    @property
    def deadline(self) -> timedelta: ...

    @property
    def looks_up_names(self) -> bool: ...

    def judge_url(self, url: Url) -> None:
        """Return if the URL may be looked up. Raises RefusedUrl."""
        ...

    def judge_address(self, ip: str, port: int) -> None:
        """Return if the address may be dialled. Raises RefusedUrl."""
        ...


class PublicPolicy:
    """The public Internet on ports 80 and 443. It takes no parameters, so nothing can widen it."""

    deadline = TOTAL_DEADLINE
    looks_up_names = True

    def judge_url(self, url: Url) -> None:
        if url.port not in PUBLIC_PORTS:
            raise RefusedUrl(Reason.BLOCKED_PORT, f"port {url.port} is not 80 or 443")
        if _is_literal(url.host):
            self.judge_address(url.host, url.port)
            return
        _, dot, top = url.host.rpartition(".")
        if not dot or top in _SPECIAL_NAMES:
            raise RefusedUrl(Reason.BLOCKED_ADDRESS, f"{url.host!r} is not a name of the public Internet")

    def judge_address(self, ip: str, port: int) -> None:
        if port not in PUBLIC_PORTS or not is_public(ip):
            raise RefusedUrl(Reason.BLOCKED_ADDRESS, f"{ip} port {port} is not a public address")


class FixturePolicy:
    """Only the named loopback pairs, for fixture homes and tests.

    Args: pairs: (ip, port) of the fixtures. Raises ConfigurationError if there is none, or one that is not loopback
        or below port 1024.
    """

    deadline = FIXTURE_DEADLINE
    looks_up_names = False

    def __init__(self, pairs: Iterable[tuple[str, int]]) -> None:
        self._pairs = frozenset(pairs)
        if not self._pairs:
            raise ConfigurationError("a fixture needs at least one address such as 127.0.0.1:8765")
        for ip, port in self._pairs:
            if not _is_loopback(ip) or not _FIRST_UNPRIVILEGED_PORT <= port <= 65535:
                raise ConfigurationError(
                    f"{ip}:{port} cannot be a fixture: give a loopback address and a port from "
                    f"{_FIRST_UNPRIVILEGED_PORT} to 65535, such as 127.0.0.1:8765"
                )

    def judge_url(self, url: Url) -> None:
        if _is_literal(url.host):
            self.judge_address(url.host, url.port)

    def judge_address(self, ip: str, port: int) -> None:
        if (ip, port) not in self._pairs:
            raise RefusedUrl(Reason.BLOCKED_ADDRESS, f"{ip} port {port} is not one of this home's fixtures")


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(ip: str) -> bool:
    return _is_literal(ip) and ip_address(ip).is_loopback
