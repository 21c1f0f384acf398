"""One worker's visits to hosts during one job: every hop is admitted, leaves, and lets the host rest (SPEC 8)."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from linkwatch_pipeline.domain.allowances import Allowances, host_of, leased_slot, slots_of
from linkwatch_pipeline.domain.errors import OutOfTime, StoreContended, StoreUnavailable
from linkwatch_pipeline.domain.fetching import TOTAL_DEADLINE, HopDeferred
from linkwatch_pipeline.domain.hosts import (
    Admitted,
    Chance,
    DeferralReason,
    Deferred,
    Departure,
    pausing_until,
)
from linkwatch_pipeline.ports import Clock, Fetcher, Progress, RunBlocking, Store
from linkwatch_pipeline.use_cases.hop_lines import HopLine, HopLines
from linkwatch_pipeline.use_cases.sleeping import sleep_until_changed

HOP_PATIENCE = timedelta(seconds=8)  # waiting for other hosts, per job
LAST_CONNECTION_AFTER = timedelta(seconds=16)  # of the worker's life
_HELD_POLL = timedelta(milliseconds=250)
_SHORTEST_WAIT = timedelta(milliseconds=1)
# Turns are estimates, so whoever is sent away is asked back a little earlier.
_BACK_EARLY = HOP_PATIENCE / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftBehind:
    """A host that the store could not be told to let go: its lease would be taken for that of a dead worker."""

    host: str
    token: str
    departure: Departure


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckParts:
    """What a check is made of. `worker` names the process and begins every owner token.

    `cooldown` is the pause after each visit, `skew` how far other workers' clocks may differ from ours. `lines` are
    shared by all checks of a process. `allowances` as in dispatch. A fetch, waits for its
    redirects included, is over at `fetched_by`, in the clock's monotonic seconds, and is not begun shortly before.
    `left_behind` is what this process still has to let go (`use_cases.outages`).
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
    allowances: Allowances = field(default_factory=dict)
    fetched_by: float = math.inf
    left_behind: list[LeftBehind] = field(default_factory=list)
    lines: HopLines = field(default_factory=HopLines)

    def require_time(self) -> None:
        """Raise OutOfTime if a fetch could not take its time any more: it would tell of us and not of the page."""
        if self.clock.monotonic() + TOTAL_DEADLINE.total_seconds() > self.fetched_by:
            raise OutOfTime("too little time is left in this call for a visit.")

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
        self._entered_at = self._began_at
        self.next_allowed_at: datetime | None = None

    async def ask(self, host: str) -> Admitted | Deferred:
        """Ask once for admission to a host (or to one of its slots). Admitted holds it until `leave`."""
        parts, now = self._parts, self._parts.clock.now()
        host = leased_slot(host, parts.allowances)
        with self._remembered(host, Departure(at=now, answered=False)):  # it may have been written all the same
            answer = await parts.blocking(lambda: self._acquire(host, now))
        if isinstance(answer, Admitted):
            self._host, self._admitted, self._entered_at = host, True, now
        return answer

    def _acquire(self, host: str, now: datetime) -> Admitted | Deferred:
        """The store's answer, or the pause that the host asked another of its slots for: it means all of them."""
        parts, name = self._parts, host_of(host)
        for slot in slots_of(name, parts.allowances.get(name, 1)) if name in parts.allowances else ():
            record = parts.store.get_host(slot) if slot != host else None
            if record is not None and (until := pausing_until(record, now=now, skew=parts.skew)) is not None:
                return Deferred(until=until, reason=DeferralReason.COOLING)
        return parts.store.acquire_host(host, token=self._token, job_id=self._job_id, now=now, skew=parts.skew)

    async def enter(self, host: str) -> None:
        """Return when the host may be visited: at once if it was asked for already, else after a bounded wait."""
        if self._host is not None and host == host_of(self._host):
            if not self._admitted:
                await self._return_to(self._host)
            return
        line = self._parts.lines.of(host)
        line.join(self._job_id)
        try:
            await self._wait_in(line, host)
        except HopDeferred as busy:
            line.send_away(self._job_id, busy.until)
            raise
        except BaseException:
            line.forget(self._job_id)
            raise
        line.forget(self._job_id)

    async def leave(self, departure: Departure) -> None:
        """Let the host go, to rest until its next allowed time; nothing if no host is held."""
        if not self._admitted or self._host is None:
            return
        parts, host = self._parts, self._host
        self._admitted = False
        with self._remembered(host, departure):
            record = await parts.blocking(
                lambda: parts.store.release_host(
                    host, token=self._token, departure=departure, cooldown=parts.cooldown, chance=parts.chance
                )
            )
        self.next_allowed_at = record.next_allowed_at if record is not None else None
        parts.lines.visit_ended(host, departure.at - self._entered_at + parts.cooldown, self.next_allowed_at)

    @contextmanager
    def _remembered(self, host: str, departure: Departure) -> Iterator[None]:
        """What the store could not be told is not forgotten."""
        try:
            yield
        except (StoreUnavailable, StoreContended):
            self._parts.left_behind.append(LeftBehind(host=host, token=self._token, departure=departure))
            raise

    async def _return_to(self, host: str) -> None:
        """Wait for the host that was just left: its cooldown is no waiting for somebody else."""
        while isinstance(answer := await self.ask(host), Deferred):
            wait = self._wait_for(answer)
            resting = wait <= self._parts.cooldown
            self._refuse_long_wait(host, wait, answer.until, patience=wait if resting else self._patience)
            await self._parts.clock.sleep(wait)
            self._waited += timedelta(0) if resting else wait

    async def _wait_in(self, line: HopLine, host: str) -> None:
        """Wait for another host, in line with this process's other visitors."""
        clock = self._parts.clock
        while True:
            changed, now = line.changed, clock.now()
            pause, until = line.expected_wait(self._job_id, now), None
            if line.is_first(self._job_id):
                answer = await self.ask(host)
                if isinstance(answer, Admitted):
                    return
                if answer.reason is DeferralReason.COOLING:
                    line.opens_at = answer.until
                pause, until = self._wait_for(answer), answer.until
            self._refuse_long_wait(host, pause, until or max(now + pause - _BACK_EARLY, now), patience=self._patience)
            before = clock.now()
            await sleep_until_changed(clock, pause if until else self._patience, changed)
            self._waited += clock.now() - before

    @property
    def _patience(self) -> timedelta:
        return HOP_PATIENCE - self._waited

    def _wait_for(self, deferred: Deferred) -> timedelta:
        wait = deferred.until - self._parts.clock.now()
        if deferred.reason is DeferralReason.HELD:
            wait = min(wait, _HELD_POLL)
        return max(wait, _SHORTEST_WAIT)

    def _refuse_long_wait(self, host: str, wait: timedelta, until: datetime, *, patience: timedelta) -> None:
        too_late = self._parts.clock.now() + wait > self._began_at + LAST_CONNECTION_AFTER
        if wait > patience or patience <= timedelta(0) or too_late:
            raise HopDeferred(host, until)
