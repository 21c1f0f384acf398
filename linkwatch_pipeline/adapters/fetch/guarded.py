"""Bounded, safe GETs (SPEC 3, 8, 9): own redirect loop, one deadline over all hops, every hop through the gate.

httpcore's connection is driven directly: a client on top would bring cookies, proxies from the environment, credentials
and a second reading of the URL. One connection serves one request and is then dropped.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache

from linkwatch_pipeline.adapters.fetch.answers import (
    Headers,
    decode,
    is_challenged,
    is_rate_limit_spent,
    media_type,
)
from linkwatch_pipeline.adapters.fetch.backend import Dial
from linkwatch_pipeline.adapters.fetch.policy import Policy
from linkwatch_pipeline.adapters.fetch.resolver import Resolver, SystemResolver, no_names
from linkwatch_pipeline.adapters.fetch.visit import FOLLOWED, Visit, Visitor
from linkwatch_pipeline.domain.fetching import (
    MAX_REDIRECTS,
    TOTAL_DEADLINE,
    FetchResult,
    HopDeferred,
    HopRefused,
)
from linkwatch_pipeline.domain.hosts import Departure
from linkwatch_pipeline.domain.observations import RedirectHop
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.retry_after import parse_retry_after
from linkwatch_pipeline.domain.urls import RefusedUrl, Url, parse_url, resolve_reference
from linkwatch_pipeline.ports import Clock, HopGate


@dataclass(slots=True)
class _Journey:
    """One look over all its hops. `status` is the last one seen; `spent` is network time so far, in seconds."""

    started_at: datetime
    final_url: str
    redirects: list[RedirectHop] = field(default_factory=list)
    status: int | None = None
    last: Visit = field(default_factory=Visit)
    failure: Reason | None = None
    spent: float = 0.0
    tried_again: bool = False


class GuardedFetcher:
    """`ports.Fetcher` for the Internet, or for fixtures: the same code, another policy.

    Args:
        policy: which URLs and addresses may be visited.
        user_agent: who we are and where to complain.
        resolver: names to addresses; by default the machine's, or none if the policy does not look names up.
        ssl_context: whom to trust; by default the public certificate authorities. It is told to read host names where
            RFC 9525 lets them stand only, among a certificate's alternative names.
        deadline: network time of one look, from the first look-up to the last byte, over all hops. Real time.
        dial: how a judged address is connected to.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        clock: Clock,
        user_agent: str,
        resolver: Resolver | None = None,
        ssl_context: ssl.SSLContext | None = None,
        deadline: timedelta = TOTAL_DEADLINE,
        max_redirects: int = MAX_REDIRECTS,
        dial: Dial = asyncio.open_connection,
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._deadline = deadline.total_seconds()
        self._max_redirects = max_redirects
        ssl_context = ssl_context or _public_trust()
        ssl_context.hostname_checks_common_name = False
        self._own_resolver = SystemResolver() if resolver is None and policy.looks_up_names else None
        self._visitor = Visitor(
            policy=policy,
            resolver=resolver or self._own_resolver or no_names,
            dial=dial,
            ssl_context=ssl_context,
            user_agent=user_agent,
        )

    async def fetch(self, url: str, gate: HopGate) -> FetchResult:
        """See `ports.Fetcher`. What a gate raises otherwise is raised on."""
        journey = _Journey(started_at=self._clock.now(), final_url=url)
        try:
            await self._travel(journey, gate)
        except (RefusedUrl, HopRefused) as refused:
            journey.failure = refused.reason
        return self._result(journey)

    async def aclose(self) -> None:
        """End the threads that look names up."""
        if self._own_resolver is not None:
            self._own_resolver.close()

    async def _travel(self, journey: _Journey, gate: HopGate) -> None:
        url = parse_url(journey.final_url)
        self._policy.judge_url(url)
        seen = {str(url)}
        while True:
            visit = await self._visit_again_if_reset(url, journey, gate)
            if visit.failure is not None or visit.status not in FOLLOWED:
                return
            url = self._target(url, visit, seen)
            journey.redirects.append(RedirectHop(url=journey.final_url, status=visit.status))
            journey.final_url = str(url)
            seen.add(journey.final_url)

    def _target(self, current: Url, visit: Visit, seen: set[str]) -> Url:
        """Where a redirect leads, judged like a URL that a person gave. Raises RefusedUrl."""
        target = resolve_reference(current, _location(visit.headers))
        if current.scheme == "https" and target.scheme == "http":
            raise RefusedUrl(Reason.DOWNGRADE, "the redirect leaves TLS")
        if str(target) in seen:
            raise RefusedUrl(Reason.REDIRECT_LOOP, "the redirects lead back")
        if len(seen) > self._max_redirects:
            raise RefusedUrl(Reason.TOO_MANY_REDIRECTS, f"more than {self._max_redirects} redirects")
        self._policy.judge_url(target)
        return target

    async def _visit_again_if_reset(self, url: Url, journey: _Journey, gate: HopGate) -> Visit:
        """A visit; a second one if the connection was reset before a byte came, once per look."""
        visit = await self._polite_visit(url, journey, gate)
        if not visit.was_reset_untouched or journey.tried_again or journey.spent >= self._deadline:
            return visit
        journey.tried_again = True
        try:
            return await self._polite_visit(url, journey, gate)
        except (HopDeferred, HopRefused):  # the second try is a courtesy, not worth coming back for
            return visit

    async def _polite_visit(self, url: Url, journey: _Journey, gate: HopGate) -> Visit:
        await gate.enter(url.host)
        visit = journey.last = Visit()
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            await self._visitor.pay(visit, url, within=max(self._deadline - journey.spent, 0.0))
        finally:
            journey.spent += loop.time() - began
            visit.ended_at = self._clock.now()
            await gate.leave(_departure(visit, visit.ended_at))
        journey.failure = visit.failure
        if visit.status is not None:
            journey.status = visit.status
        return visit

    def _result(self, journey: _Journey) -> FetchResult:
        last = journey.last
        content = decode(last.raw_body, complete=last.complete, headers=last.headers)
        content_type, charset = media_type(last.headers)
        return FetchResult(
            status=journey.status,
            failure=journey.failure,
            body=content.body,
            # A 206 is a part by its own word, although none was asked for.
            content_complete=content.complete and last.status != 206,
            bytes_read=len(last.raw_body),
            network_ms=round(journey.spent * 1000),
            content_type=content_type,
            charset=charset,
            final_url=journey.final_url,
            redirects=tuple(journey.redirects),
            retry_after=last.headers.text("retry-after"),
            rate_limit_spent=is_rate_limit_spent(last.headers),
            challenged=last.status is not None and is_challenged(last.status, last.headers, content.body),
            tls_not_after=last.tls_not_after,
            started_at=journey.started_at,
            ended_at=last.ended_at or journey.started_at,
        )


def _departure(visit: Visit, at: datetime) -> Departure:
    retry_after = visit.headers.text("retry-after")
    told = retry_after is not None or is_rate_limit_spent(visit.headers)
    return Departure(
        at=at,
        answered=visit.status is not None,
        asked_to_pause=visit.status == 429 or (visit.status in (403, 503) and told),
        retry_after=parse_retry_after(retry_after, now=at),
    )


def _location(headers: Headers) -> str:
    """The one Location, as text. Raises RefusedUrl if there is none, or several that differ."""
    values = set(headers.all("location"))
    if len(values) != 1:
        raise RefusedUrl(Reason.REDIRECT_INVALID, f"{len(values)} different targets")
    value = values.pop()
    try:
        return value.decode("utf-8").strip(" \t")
    except UnicodeDecodeError:  # bytes that are no UTF-8 are sent back as they came
        return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in value).strip(" \t")


@cache
def _public_trust() -> ssl.SSLContext:
    # Once in a process, since reading all authorities takes longer than many a look. httpx knows where the bundled ones
    # are; loaded here, so that merely importing this room stays cheap.
    from httpx import create_ssl_context

    return create_ssl_context(trust_env=False)
