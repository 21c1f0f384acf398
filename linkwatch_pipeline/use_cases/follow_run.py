"""Follow a run whose checks other machines do: tick as it waits, and tell how far it is (ARCHITECTURE 2b).

Whoever follows holds nothing: what it sends, any tick may send, and it may end at any moment and be started again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial

from linkwatch_pipeline.domain.errors import LinkwatchError, QueueError, QueueUnusable, StoreContended, StoreUnavailable
from linkwatch_pipeline.domain.planning import Pace
from linkwatch_pipeline.domain.runs import OPEN_FOR, HostChain, Run, RunCounts, count_chains
from linkwatch_pipeline.ports import Queue, Store
from linkwatch_pipeline.use_cases.visit import CheckParts
from linkwatch_pipeline.use_cases.work_on_queue import tick_on_queue

# A look reads the counters of every host: a short run is followed closely, a long one is not read all day.
SHORTEST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(seconds=30)
_PAUSES_IN_A_WAIT = 4  # of what was waited so far
TICK_EVERY = timedelta(seconds=60)
LONGEST_OUTAGE = OPEN_FOR  # of the store or the queue: no run waits longer

IDLE_AFTER = timedelta(seconds=90)  # longer than a worker of many needs for a slow page

Tell = Callable[[Run, RunCounts], None]
Warn = Callable[[int], None]
TellOutage = Callable[[LinkwatchError | None], None]


async def follow_run(
    parts: CheckParts,
    queue: Queue,
    run_id: str,
    hosts: frozenset[str] | None,
    *,
    pace: Pace,
    tell: Tell,
    warn: Warn,
    tell_outage: TellOutage,
) -> None:
    """Return when these hosts (all, if None) have nothing left in the run, or the run is over.

    Every open run is ticked at once and then each minute, so that the run goes on whether or not somebody else ticks.

    Args:
        tell: is given the run and its counters whenever they changed.
        warn: is given how many messages wait, once, if for 90 s no job ended though anybody could have received some.
        tell_outage: is given what store or queue fail with, when it begins and when it becomes another, and None when
            they serve again.
    Raises: QueueUnusable, StoreUnusable at once; other faults of store and queue when they lasted as long as a run may.
    """
    await _Follower(parts, queue, run_id, hosts, pace, tell, warn, tell_outage).follow()


class _Follower:
    """One following of one run. Not reused."""

    def __init__(
        self,
        parts: CheckParts,
        queue: Queue,
        run_id: str,
        hosts: frozenset[str] | None,
        pace: Pace,
        tell: Tell,
        warn: Warn,
        tell_outage: TellOutage,
    ) -> None:
        self._parts, self._queue, self._pace = parts, queue, pace
        self._run_id, self._hosts, self._tell, self._warn = run_id, hosts, tell, warn
        self._tell_outage = tell_outage
        self._idle_since = parts.clock.monotonic()
        self._visible_since: float | None = None
        self._warned = False
        self._told: RunCounts | None = None
        self._ticked_at: float | None = None
        self._fault: LinkwatchError | None = None
        self._out_since = 0.0

    async def follow(self) -> None:
        clock = self._parts.clock
        began = clock.monotonic()
        while not await self._looked():
            waited = timedelta(seconds=clock.monotonic() - began)
            await clock.sleep(min(max(waited / _PAUSES_IN_A_WAIT, SHORTEST_PAUSE), LONGEST_PAUSE))

    async def _looked(self) -> bool:
        """Whether nothing is left to wait for. Faults of store and queue are waited out."""
        try:
            is_done = await self._look()
            if not is_done:
                await self._tick()
                await self._mind_idleness()
        except QueueUnusable:
            raise
        except (QueueError, StoreUnavailable, StoreContended) as fault:
            self._mind_outage(fault)
            return False
        if self._fault is not None:
            self._tell_outage(None)
            self._fault = None
        return is_done

    def _mind_outage(self, fault: LinkwatchError) -> None:
        now = self._parts.clock.monotonic()
        if self._fault is None:
            self._out_since = now
        if now - self._out_since >= LONGEST_OUTAGE.total_seconds():
            raise fault
        if type(self._fault) is not type(fault):  # each call of one outage says it in other words
            self._tell_outage(fault)
        self._fault = fault
        self._idle_since = now

    async def _look(self) -> bool:
        run, chains = await self._parts.blocking(partial(_stored, self._parts.store, self._run_id))
        counts = run.totals if run.totals is not None else count_chains(chains)
        if counts != self._told:
            self._tell(run, counts)
            self._told = counts
            self._idle_since, self._warned = self._parts.clock.monotonic(), False
        return run.state.is_over or not any(
            chain.remaining for chain in chains if self._hosts is None or chain.host in self._hosts
        )

    async def _mind_idleness(self) -> None:
        """A host may rest for minutes, and a message may be lost; but one that stays visible rests with nobody."""
        if self._warned:
            return
        with suppress(QueueError):  # not everybody who sends may look; the tick tells what fails
            waiting = await self._parts.blocking(self._queue.visible)
            now = self._parts.clock.monotonic()
            if not waiting or self._visible_since is None:
                self._visible_since = now if waiting else None
                return
            if now - max(self._visible_since, self._idle_since) >= IDLE_AFTER.total_seconds():
                self._warn(waiting)
                self._warned = True

    async def _tick(self) -> None:
        now = self._parts.clock.monotonic()
        if self._ticked_at is None or now - self._ticked_at >= TICK_EVERY.total_seconds():
            await tick_on_queue(self._parts, self._queue, pace=self._pace)
            self._ticked_at = now


def _stored(store: Store, run_id: str) -> tuple[Run, Sequence[HostChain]]:
    run = store.get_run(run_id)
    if run is None:
        raise LookupError(f"run {run_id} is not in the store")
    return run, list(store.chains(run_id))
