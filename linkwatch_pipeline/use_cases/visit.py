"""One worker's visits to hosts during one job: every hop is admitted, leaves, and lets the host rest (SPEC 8)."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.fetching import HopDeferred
from linkwatch_pipeline.domain.hosts import Admitted, Chance, DeferralReason, Deferred, Departure
from linkwatch_pipeline.ports import Clock, Fetcher, Progress, RunBlocking, Store

HOP_PATIENCE = timedelta(seconds=8)  # waiting for other hosts, per job
LAST_CONNECTION_AFTER = timedelta(seconds=16)  # of the worker's life
_HELD_POLL = timedelta(milliseconds=250)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckParts:
    """What a check is made of. `worker` names the process and begins every owner token.

    `cooldown` is the pause after each visit, `skew` how far other workers' clocks may differ from ours.
    """

    store: Store
    fetcher: Fetcher
    clock: Clock
    chance: Chance
    blocking: RunBlocking
    progress: Progress
    worker: str
    cooldown: timedelta
    skew: timedelta
    default_confirm: int

    def watched_by(self, progress: Progress) -> CheckParts:
        """The same parts, telling somebody else what happens."""
        return replace(self, progress=progress)


class Visit:
    """The hop gate of one job. Not shared, not reused."""

    def __init__(self, parts: CheckParts, job_id: str) -> None:
        self._parts = parts
        self._job_id = job_id
        self._token = f"{parts.worker}:{secrets.token_hex(8)}"
        self._began_at = parts.clock.now()
        self._waited = timedelta(0)
        self._host: str | None = None
        self._admitted = False
        self.next_allowed_at: datetime | None = None

    async def ask(self, host: str) -> Admitted | Deferred:
        """Ask once for admission. Admitted holds the host until `leave`."""
        parts, now = self._parts, self._parts.clock.now()
        answer = await parts.blocking(
            lambda: parts.store.acquire_host(host, token=self._token, job_id=self._job_id, now=now, skew=parts.skew)
        )
        if isinstance(answer, Admitted):
            self._host, self._admitted = host, True
        return answer

    async def enter(self, host: str) -> None:
        """Return when the host may be visited: at once if it was asked for already, else after a bounded wait."""
        if self._admitted and host == self._host:
            return
        own_host = host == self._host
        while isinstance(answer := await self.ask(host), Deferred):
            await self._wait(host, answer, own_host)

    async def leave(self, departure: Departure) -> None:
        """Let the host go, to rest until its next allowed time; nothing if no host is held."""
        if not self._admitted or self._host is None:
            return
        parts, host = self._parts, self._host
        self._admitted = False
        record = await parts.blocking(
            lambda: parts.store.release_host(
                host, token=self._token, departure=departure, cooldown=parts.cooldown, chance=parts.chance
            )
        )
        self.next_allowed_at = record.next_allowed_at if record is not None else None

    async def _wait(self, host: str, deferred: Deferred, own_host: bool) -> None:
        now = self._parts.clock.now()
        wait = deferred.until - now
        if deferred.reason is DeferralReason.HELD:
            wait = min(wait, _HELD_POLL)
        wait = max(wait, timedelta(milliseconds=1))
        # The cooldown of the host just left is no waiting for somebody else.
        patience = HOP_PATIENCE - self._waited if not (own_host and wait <= self._parts.cooldown) else wait
        if wait > patience or now + wait > self._began_at + LAST_CONNECTION_AFTER:
            raise HopDeferred(host, deferred.until)
        if not own_host or wait > self._parts.cooldown:
            self._waited += wait
        await self._parts.clock.sleep(wait)
