"""What a fetch is asked for and what it brings back. A failed fetch is a value with a reason, never an exception."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.observations import RedirectHop
from linkwatch_pipeline.domain.reasons import Reason

TOTAL_DEADLINE = timedelta(seconds=10)  # network time: DNS to last byte, over all hops
MAX_BODY_BYTES = 64 * 1024
MAX_WIRE_BYTES = 96 * 1024  # per request: body, headers, chunk framing and interim answers together
MAX_REDIRECTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResult:
    """One bounded GET over all its hops.

    `status` is the last one seen, None if none was. `failure` says why the look did not end properly, None if it did;
    a status other than 2xx carries its verdict alone, so trouble in its body is no failure. `body` is what was read,
    at most 64 KiB after one layer of asked-for or volunteered gzip; it is judged and dropped, never stored.
    `network_ms` is time on the network, without waits for admission. `retry_after` is the raw header, non-ASCII
    escaped. `rate_limit_spent` is whether rate-limit headers say that nothing is left. `ended_at` is when the last
    byte of the last hop was read or given up (UTC).
    """

    status: int | None
    failure: Reason | None
    body: bytes = b""
    content_complete: bool = True
    bytes_read: int = 0
    network_ms: int = 0
    content_type: str | None = None
    charset: str | None = None
    final_url: str
    redirects: tuple[RedirectHop, ...] = ()
    retry_after: str | None = None
    rate_limit_spent: bool = False
    challenged: bool = False
    tls_not_after: datetime | None = None
    started_at: datetime
    ended_at: datetime


class HopDeferred(Exception):
    """Raised by a hop gate: the host of the next hop is busy, and the whole job should come back at `until`."""

    def __init__(self, host: str, until: datetime) -> None:
        super().__init__(f"host {host} is busy until {until.isoformat()}")
        self.host = host
        self.until = until


class HopRefused(Exception):
    """Raised by a hop gate: the look ends here, with this reason."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason
