"""Which host to visit next when several are ready: the one with the most work left, a slot kept for a critical one.

A host's work is the time its remaining jobs need one after the other, pauses included. A host whose work exceeds
what the others would need side by side decides when the run ends, so it never waits for a slot. While it asks for a
longer pause than its usual rest, the others have the slot.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from datetime import timedelta

# Prior for a host that has not answered yet: SPEC 3's mean.
ASSUMED_SERVICE = timedelta(seconds=2)
_PRIOR_WEIGHT = 1.0
# A host a little short of critical would become so while it waits for a slot: its slot is kept a little earlier.
CRITICAL_FROM = 0.95
# Outdated entries are thrown away when they outnumber the hosts by this many: else each visit would leave one.
_SPARE_ENTRIES = 100


@dataclass(slots=True)
class _HostWork:
    remaining: int
    service_seconds: float = 0.0
    visits: int = 0
    active: int = 0
    paused: bool = False

    def mean_service(self) -> float:
        prior = ASSUMED_SERVICE.total_seconds() * _PRIOR_WEIGHT
        return (prior + self.service_seconds) / (_PRIOR_WEIGHT + self.visits)


@dataclass(slots=True)
class WorkBook:
    """The remaining work of every host of the open runs, as one process sees it. An estimate: it never decides truth.

    Args:
        concurrency: how many visits may go on at once.
        cooldown: the pause after each visit.
    """

    concurrency: int
    cooldown: timedelta
    _hosts: dict[str, _HostWork] = field(default_factory=dict)
    _service_left: float = 0.0
    # Hosts by work left, the most first; entries outlive changes and are recognised by their figure.
    _heaviest: list[tuple[float, str]] = field(default_factory=list)

    def foresee(self, jobs: int) -> None:
        """Add jobs whose hosts are named when their turn comes (`expect_foreseen`), those with the most jobs first.

        So a book need hold only the hosts that are visited or come next, however many there are.
        """
        self._service_left += jobs * ASSUMED_SERVICE.total_seconds()

    def expect(self, host: str, jobs: int) -> None:
        """Add jobs that are still to be done on a host."""
        self._service_left += jobs * self._of(host).mean_service()
        self.expect_foreseen(host, jobs)

    def expect_foreseen(self, host: str, jobs: int) -> None:
        """Name the host of jobs that were foreseen."""
        self._of(host).remaining += jobs
        self._weigh(host)

    def put_back(self, host: str, jobs: int) -> None:
        """Forget a host, of whose jobs so many are left: they are foreseen again. It may be being visited."""
        work = self._of(host)
        self._service_left += jobs * ASSUMED_SERVICE.total_seconds() - work.remaining * work.mean_service()
        work.remaining = 0
        if work.active == 0:
            del self._hosts[host]

    def begin(self, host: str) -> None:
        """A visit to the host starts."""
        work = self._of(host)
        work.active += 1
        work.paused = False

    def pause(self, host: str) -> None:
        """The host may not be visited for longer than its usual rest: until its next visit no slot is kept for it."""
        if host in self._hosts:
            self._hosts[host].paused = True

    def end(self, host: str, *, took: timedelta, jobs_done: int) -> None:
        """A visit to the host ended; `jobs_done` is 0 when the job has to come back."""
        work = self._of(host)
        before = work.remaining * work.mean_service()
        work.active -= 1
        if jobs_done:
            work.service_seconds += took.total_seconds()
            work.visits += 1
        self._take_off(host, work, jobs_done, before)

    def end_unvisited(self, host: str) -> None:
        """A job of the host ended without a visit."""
        work = self._of(host)
        self._take_off(host, work, 1, work.remaining * work.mean_service())

    def work_left(self, host: str) -> float:
        """Seconds that the host's remaining jobs need one after the other."""
        work = self._hosts.get(host)
        return work.remaining * (work.mean_service() + self.cooldown.total_seconds()) if work is not None else 0.0

    def is_critical(self, host: str) -> bool:
        """Whether this host alone needs as long as everything left would need side by side."""
        return self.work_left(host) > self._critical_work()

    def keeps_last_slot(self, busy: int) -> bool:
        """Whether the only free slot has to wait for a critical host that is between two visits."""
        if busy < self.concurrency - 1:
            return False
        critical = (self._hosts[host] for host in self._critical_hosts())
        return any(work.active == 0 and not work.paused for work in critical)

    def _critical_work(self) -> float:
        return CRITICAL_FROM * self._service_left / self.concurrency

    def _critical_hosts(self) -> list[str]:
        """Few by definition: together they hold more than their number's share of all the work."""
        found: dict[str, float] = {}
        while self._heaviest and -self._heaviest[0][0] > self._critical_work():
            negative, host = heapq.heappop(self._heaviest)
            if host in self._hosts and -negative == self.work_left(host):
                found[host] = negative
        for host, negative in found.items():
            heapq.heappush(self._heaviest, (negative, host))
        return list(found)

    def _weigh(self, host: str) -> None:
        heapq.heappush(self._heaviest, (-self.work_left(host), host))
        if len(self._heaviest) > 2 * len(self._hosts) + _SPARE_ENTRIES:
            self._heaviest = [(-self.work_left(host), host) for host in self._hosts]
            heapq.heapify(self._heaviest)

    def _take_off(self, host: str, work: _HostWork, jobs: int, service_before: float) -> None:
        work.remaining = max(work.remaining - jobs, 0)
        self._service_left += work.remaining * work.mean_service() - service_before
        if work.remaining == 0 and work.active == 0:
            del self._hosts[host]
        else:
            self._weigh(host)

    def _of(self, host: str) -> _HostWork:
        return self._hosts.setdefault(host, _HostWork(remaining=0))
