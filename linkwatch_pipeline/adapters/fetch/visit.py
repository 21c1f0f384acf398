"""One connection, one request, one bounded answer. Trouble of any kind becomes a reason."""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import httpcore

from linkwatch_pipeline.adapters.fetch.answers import Headers
from linkwatch_pipeline.adapters.fetch.backend import Dial, GuardedBackend, NetworkTrouble, WireBudgetSpent
from linkwatch_pipeline.adapters.fetch.policy import Policy
from linkwatch_pipeline.adapters.fetch.resolver import Resolver
from linkwatch_pipeline.domain.fetching import MAX_BODY_BYTES
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.redaction import fault_in_our_words
from linkwatch_pipeline.domain.urls import RefusedUrl, Url

logger = logging.getLogger(__name__)
# At DEBUG it would log every header that comes, with all the secrets in them.
logging.getLogger("httpcore").setLevel(logging.WARNING)

FOLLOWED = (301, 302, 303, 307, 308)
_WITHOUT_BODY = (204, 205, 304)
# The body of another status than 2xx carries no verdict, so it is not worth a long wait.
_SIDE_BODY_PATIENCE = timedelta(seconds=2)
# All that is judged is there; whether the page ends here is worth no more than this.
_END_PATIENCE = timedelta(seconds=1)
# So many bytes in a row without one byte of body are trailers (or other padding), not a page.
_TRAILER_ALLOWANCE = 16 * 1024
# No page needs so many; their bytes have a bound of their own.
_MOST_HEADERS = 500


@dataclass(slots=True)
class Visit:
    """What one connection brought; filled while it goes on, so that an interrupted visit tells what it had.

    `complete` is whether `raw_body` is the whole body, `untouched` whether not a byte came.
    """

    status: int | None = None
    headers: Headers = field(default_factory=lambda: Headers(()))
    raw_body: bytes = b""
    complete: bool = True
    tls_not_after: datetime | None = None
    failure: Reason | None = None
    untouched: bool = True
    ended_at: datetime | None = None

    @property
    def was_reset_untouched(self) -> bool:
        return self.failure is Reason.CONNECTION_RESET and self.untouched


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Pays visits. For the arguments see `GuardedFetcher`."""

    policy: Policy
    resolver: Resolver
    dial: Dial
    ssl_context: ssl.SSLContext
    user_agent: str

    async def pay(self, visit: Visit, url: Url, *, within: float) -> None:
        """GET one URL, without redirects, within so many seconds of real time."""
        backend = GuardedBackend(self.policy, self.resolver, self.dial)
        try:
            async with asyncio.timeout(within):
                await self._converse(visit, url, backend)
        except Exception as exc:
            visit.failure = _reason(exc, backend, visit, host=url.host)
        finally:
            backend.abort()
            visit.untouched = backend.wire.received == 0
        _forgive(visit)

    async def _converse(self, visit: Visit, url: Url, backend: GuardedBackend) -> None:
        origin = httpcore.Origin(url.scheme.encode(), url.host.encode(), url.port)
        connection = httpcore.AsyncHTTPConnection(origin, ssl_context=self.ssl_context, network_backend=backend)
        response = await connection.handle_async_request(self._request(url))
        if response.status < 200:
            raise NetworkTrouble(Reason.PROTOCOL, f"status {response.status} is not a final one")
        visit.tls_not_after = _not_after(backend)
        if len(response.headers) > _MOST_HEADERS:
            raise NetworkTrouble(Reason.OVERSIZE_HEADERS, f"{len(response.headers)} headers")
        visit.headers = Headers.read(response.headers)
        visit.status = response.status
        if visit.status in FOLLOWED or visit.status in _WITHOUT_BODY:
            return
        patience = None if _is_success(visit.status) else _SIDE_BODY_PATIENCE.total_seconds()
        async with asyncio.timeout(patience) as limit:
            await _read_body(response, visit, backend, limit)

    def _request(self, url: Url) -> httpcore.Request:
        return httpcore.Request(
            "GET",
            httpcore.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target),
            headers=[
                ("Host", url.authority),
                ("User-Agent", self.user_agent),
                ("Accept", "*/*"),
                ("Accept-Encoding", "identity"),
                ("Connection", "close"),
            ],
        )


async def _read_body(
    response: httpcore.Response, visit: Visit, backend: GuardedBackend, limit: asyncio.Timeout
) -> None:
    """Read at most 64 KiB into the visit; a longer body is cut and marked incomplete."""
    now = asyncio.get_running_loop().time
    wire_at_last_byte = backend.wire.received
    try:
        async for chunk in response.aiter_stream():
            wire_at_last_byte = backend.wire.received
            visit.raw_body += chunk
            if len(visit.raw_body) == MAX_BODY_BYTES and limit.when() is None:
                limit.reschedule(now() + _END_PATIENCE.total_seconds())
            if len(visit.raw_body) > MAX_BODY_BYTES:
                # Ending it from below unwinds httpcore's generators; leaving the loop would abandon them half-read.
                backend.wire.close()
    except WireBudgetSpent as exc:
        visit.complete = False
        if backend.wire.received - wire_at_last_byte >= _TRAILER_ALLOWANCE:
            raise NetworkTrouble(Reason.OVERSIZE_TRAILERS, "padding without end after the body") from exc
    if len(visit.raw_body) > MAX_BODY_BYTES:
        visit.raw_body = visit.raw_body[:MAX_BODY_BYTES]
        visit.complete = False


def _forgive(visit: Visit) -> None:
    """Trouble in a body is no failure if all that counts was read, or if the status carries the verdict alone."""
    if visit.status is None or visit.failure is None:
        return
    visit.complete = False
    if len(visit.raw_body) >= MAX_BODY_BYTES or not _is_success(visit.status):
        visit.failure = None


def _reason(exc: Exception, backend: GuardedBackend, visit: Visit, *, host: str) -> Reason:
    match exc:
        case NetworkTrouble() | RefusedUrl():
            return exc.reason
        case TimeoutError():
            return Reason.TIMEOUT
        case WireBudgetSpent():
            return Reason.OVERSIZE_HEADERS
        case httpcore.RemoteProtocolError():
            if not backend.wire.ended:
                return Reason.PROTOCOL
            if visit.status is not None:
                return Reason.INCOMPLETE_BODY
            return Reason.PROTOCOL if backend.wire.received else Reason.CONNECTION_RESET
        case _:
            extra = {"action": "fetch", "host": host, "error": type(exc).__name__}
            logger.error("fetch failed inside: %s", fault_in_our_words(exc), extra=extra)
            return Reason.INTERNAL


def _not_after(backend: GuardedBackend) -> datetime | None:
    """When the connection's certificate ends to be valid (UTC); None without TLS or if it does not say."""
    tls = backend.stream.get_extra_info("ssl_object") if backend.stream is not None else None
    certificate = tls.getpeercert() if tls is not None else None
    if not certificate or "notAfter" not in certificate:
        return None
    try:
        return datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)
    except (ValueError, OverflowError):
        return None


def _is_success(status: int) -> bool:
    return 200 <= status <= 299
