"""An internet in virtual time: every URL answers by script, and the log proves how politely it was visited."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from linkwatch_pipeline.domain.fetching import MAX_REDIRECTS, FetchResult, HopRefused
from linkwatch_pipeline.domain.hosts import Departure
from linkwatch_pipeline.domain.observations import RedirectHop
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.retry_after import parse_retry_after
from linkwatch_pipeline.domain.urls import host_key
from linkwatch_pipeline.ports import Clock, HopGate


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a URL does when asked: after `takes`, a status (None: silence until the deadline), perhaps a Location."""

    status: int | None = 200
    takes: timedelta = timedelta(milliseconds=200)
    location: str | None = None
    retry_after: str | None = None
    body: bytes = b"guide"
    refused: Reason | None = None  # by our own policy, before any connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as the host saw it; `asked_to_wait` is the pause that its answer named, if any."""

    host: str
    url: str
    started_at: datetime
    ended_at: datetime
    asked_to_wait: timedelta | None = None


Script = Callable[[str, int], Answer]  # the URL and how often it was asked before


@dataclass(slots=True)
class ScriptedInternet:
    """A `ports.Fetcher` over scripts. `clock` is the visitor's; the log has the hosts' own, None meaning the same."""

    clock: Clock
    script: Script
    hosts_clock: Clock | None = None
    log: list[Request] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)
    in_flight: int = 0
    most_in_flight: int = 0

    async def fetch(self, url: str, gate: HopGate) -> FetchResult:
        started_at, hops = self.clock.now(), list[RedirectHop]()
        current = url
        while True:
            refused = self.script(current, self.asked.get(current, 0)).refused
            if refused is not None:
                return self._result(None, refused, current, hops, started_at)
            try:
                await gate.enter(host_key(current))
            except HopRefused as hop:
                return self._result(None, hop.reason, current, hops, started_at)
            answer = await self._ask(current, gate)
            redirected = answer.status in (301, 302, 307, 308) and answer.location is not None
            if not redirected or answer.location is None or answer.status is None:
                failure = Reason.TIMEOUT if answer.status is None else None
                return self._result(answer, failure, current, hops, started_at)
            hops.append(RedirectHop(url=current, status=answer.status))
            if len(hops) > MAX_REDIRECTS:
                return self._result(answer, Reason.TOO_MANY_REDIRECTS, current, hops, started_at)
            current = answer.location

    async def _ask(self, url: str, gate: HopGate) -> Answer:
        answer = self.script(url, self.asked.get(url, 0))
        self.asked[url] = self.asked.get(url, 0) + 1
        hosts_clock = self.hosts_clock or self.clock
        started_at = hosts_clock.now()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await self.clock.sleep(answer.takes)
        finally:
            self.in_flight -= 1
            ended_at = self.clock.now()
            wait = parse_retry_after(answer.retry_after, now=ended_at)
            self.log.append(
                Request(
                    host=host_key(url),
                    url=url,
                    started_at=started_at,
                    ended_at=hosts_clock.now(),
                    asked_to_wait=wait,
                )
            )
            await gate.leave(
                Departure(
                    at=ended_at,
                    answered=answer.status is not None,
                    asked_to_pause=answer.status == 429,
                    retry_after=wait,
                )
            )
        return answer

    def _result(
        self,
        answer: Answer | None,
        failure: Reason | None,
        url: str,
        hops: Iterable[RedirectHop],
        started_at: datetime,
    ) -> FetchResult:
        return FetchResult(
            status=answer.status if answer is not None else None,
            failure=failure,
            body=answer.body if answer is not None else b"",
            final_url=url,
            redirects=tuple(hops),
            retry_after=answer.retry_after if answer is not None else None,
            started_at=started_at,
            ended_at=self.clock.now(),
        )

    async def aclose(self) -> None:
        """Nothing to close."""

    def visits(self, host: str) -> list[Request]:
        """What one host saw, in order."""
        return sorted((r for r in self.log if r.host == host), key=lambda r: r.started_at)

    def hosts(self) -> set[str]:
        return {request.host for request in self.log}

    def shortest_rest(self, host: str) -> timedelta | None:
        """The shortest pause between two visits; negative if they overlapped, None for fewer than two."""
        visits = self.visits(host)
        rests = [later.started_at - earlier.ended_at for earlier, later in pairwise(visits)]
        return min(rests, default=None)
