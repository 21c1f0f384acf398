"""Which hosts of a run a process holds in memory: those that come next. The others wait in the store for their turn.

The most work left goes first, so every host of a run is begun before most are done. A host whose turn is over is put
back as soon as others in the store have more left. So what is held is the same for a thousand hosts and a million.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from linkwatch_pipeline.domain.runs import HostChain, work_order
from linkwatch_pipeline.domain.scheduling import WorkBook

# Hosts: what is at hand lasts for minutes, and finding the next ones reads all chains of the run once.
MOST_HELD = 2000


@dataclass(slots=True)
class _Held:
    """A host: its jobs left, and since when its message may be received; None while it is worked on."""

    remaining: int
    visible_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsLeft:
    """Of a run: on the hosts that are waited for, and on those that are not held."""

    watched: int
    elsewhere: int


def count_jobs(chains: Iterable[HostChain], *, watched: frozenset[str] | None, held: frozenset[str]) -> JobsLeft:
    """Look at all chains of a run. Args: watched: None for all."""
    of_watched = elsewhere = 0
    for chain in chains:
        of_watched += chain.remaining if watched is None or chain.host in watched else 0
        elsewhere += chain.remaining if chain.host not in held else 0
    return JobsLeft(watched=of_watched, elsewhere=elsewhere)


class HostWindow:
    """The hosts at hand, and how many jobs are left elsewhere. Counts are as this process saw them: estimates.

    Args:
        book: is told of the hosts that are held.
        watched: the hosts that are waited for; None: all.
        most: how many are held before any is put back.
    """

    def __init__(self, book: WorkBook, watched: frozenset[str] | None, *, most: int = MOST_HELD) -> None:
        self._book = book
        self._watched = watched
        self.most = most
        self._held: dict[str, _Held] = {}
        self._near: set[str] = set()
        self._elsewhere = 0
        self._left = 0
        # The place of the last chain that was taken in; None while all that may be visited soon is held.
        self._last: tuple[int, str] | None = None
        self._has_more = False

    @property
    def is_done(self) -> bool:
        """Whether nothing is left on the hosts that are waited for."""
        return self._left <= 0

    @property
    def is_full(self) -> bool:
        return len(self._held) >= self.most

    @property
    def wants_more(self) -> bool:
        """Whether few messages are near, and the store has more hosts that may be visited now."""
        return self._has_more and self._is_low

    @property
    def may_want_more(self) -> bool:
        """Whether few messages are near, and the store has more hosts: some pauses may end soon."""
        return self._elsewhere > 0 and self._is_low

    @property
    def _is_low(self) -> bool:
        return len(self._near) < self.most // 2

    @property
    def is_idle(self) -> bool:
        """Whether no message is near."""
        return not self._near

    def hosts(self) -> frozenset[str]:
        """The hosts that are held."""
        return frozenset(self._held)

    def holds(self, host: str) -> bool:
        return host in self._held

    def count(self, jobs: JobsLeft) -> None:
        """Start anew from what the store says."""
        self._book.foresee(jobs.elsewhere - self._elsewhere)
        self._left, self._elsewhere = jobs.watched, jobs.elsewhere

    def look_for_more(self) -> None:
        """The store is about to be read."""
        self._has_more = False

    def found(self, chains: Sequence[HostChain], *, limit: int) -> None:
        """The store was read: these are first by `work_order`, and at most `limit` were asked for."""
        all_of_them = len(chains) < limit
        self._last = None if all_of_them else work_order(chains[-1])
        self._has_more = self._has_more or not all_of_them

    def hold(self, chain: HostChain, *, now: datetime) -> None:
        """Take a host in; its message is sent next."""
        self._held[chain.host] = _Held(remaining=chain.remaining, visible_at=now)
        self._elsewhere -= chain.remaining
        self._book.expect_foreseen(chain.host, chain.remaining)

    def keeps(self, host: str) -> bool:
        """Whether a host whose next message could be sent is held on, or another one's turn comes first."""
        if self._last is None:
            return True
        held = self._held.get(host)
        return held is not None and (-held.remaining, host) <= self._last

    def put_back(self, host: str) -> None:
        """Leave a host to the store."""
        self._has_more = True
        held = self._forget(host)
        if held is not None:
            self._elsewhere += held.remaining
            self._book.put_back(host, held.remaining)

    def drop(self, host: str) -> None:
        """Nothing is left on a host after all."""
        held = self._forget(host)
        if held is not None:
            self._left -= held.remaining if self._is_watched(host) else 0
            self._book.put_back(host, 0)

    def sent(self, host: str, *, visible_at: datetime, is_near: bool) -> None:
        """A message of the host is on its way."""
        held = self._held.get(host)
        if held is not None:
            held.visible_at = visible_at
            (self._near.add if is_near else self._near.discard)(host)

    def received(self, host: str) -> None:
        """The host's message is being worked on."""
        self._near.discard(host)
        if host in self._held:
            self._held[host].visible_at = None

    def visit_ended(self, host: str, *, now: datetime) -> None:
        """The host's message was worked on; perhaps another one was sent, or it comes back."""
        held = self._held.get(host)
        if held is not None and held.visible_at is None:
            held.visible_at = now

    def job_ended(self, host: str) -> None:
        """One of the host's jobs is terminal."""
        held = self._held.get(host)
        if held is None and self._last is None:
            return  # one more than its chain counted
        if held is None:
            self._elsewhere -= 1
        else:
            held.remaining -= 1
            if held.remaining <= 0:
                self._forget(host)
        self._left -= 1 if self._is_watched(host) else 0

    def silent_since(self, moment: datetime) -> list[str]:
        """The hosts whose last message could be received by then, and has not been since."""
        return [host for host, held in self._held.items() if held.visible_at and held.visible_at <= moment]

    def _is_watched(self, host: str) -> bool:
        return self._watched is None or host in self._watched

    def _forget(self, host: str) -> _Held | None:
        self._near.discard(host)
        return self._held.pop(host, None)
