"""From the servers' own log: whether every host was left in peace, and how long a run took beside its bound."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from linkwatch_pipeline_tests.campaigns.fates import Look, Script, host_of, target_of
from linkwatch_pipeline_tests.world import Hit, RequestLog

CONCURRENCY = 20


@dataclass(frozen=True)
class Pace:
    """A run of so many visits: how long it took, and the least that it needs, all in seconds.

    `shared` is all service over the slots, `busiest` the longest chain of one host, hops and pauses included.
    """

    visits: int
    hops: int
    took: float
    shared: float
    busiest: float
    host: str

    @property
    def bound(self) -> float:
        return max(self.shared, self.busiest)

    @property
    def ratio(self) -> float:
        return self.took / self.bound

    def __str__(self) -> str:
        return (
            f"{self.visits} visits ({self.hops} hops) in {self.took:.2f} s; bound {self.bound:.2f} s "
            f"(all work / {CONCURRENCY}: {self.shared:.2f} s, {self.host}: {self.busiest:.2f} s); {self.ratio:.3f}"
        )


class WeekLog:
    """One week's hits, each with the answer that the script gave."""

    def __init__(self, script: Script, log: RequestLog, week: int) -> None:
        self._script = script
        self._urls = {(host_of(url), target_of(url)): url for url in script.fates}
        self.hits = sorted((hit for hit in log.hits if hit.week == week), key=lambda hit: hit.started)
        self._week = week
        self._looks = {(hit.host, hit.started): look for hit, look in self._answers()}

    def rude_visits(self, cooldown: float) -> list[str]:
        """Visits that overlapped with the one before on their host, or came too soon after it; [] if there are none."""
        by_host = defaultdict(list)
        for hit in self.hits:
            by_host[hit.host].append(hit)
        return [
            f"{after.host}{after.target} {after.started - before.ended:.4f} s after {before.target}"
            for hits in by_host.values()
            for before, after in pairwise(hits)
            if after.started - before.ended < self._rest_after(before, cooldown)
        ]

    def asked(self) -> Counter[str]:
        """How often each page of the handbook was asked for."""
        return Counter(self._urls[hit.host, hit.target or ""] for hit in self.hits if self._is_first(hit))

    def pace(self, cooldown: float, *, since: float, until: float) -> Pace:
        """The pace of the visits that began between two moments."""
        hits = [hit for hit in self.hits if since <= hit.started <= until]
        jobs = self._jobs(hits)
        ends: dict[str, float] = defaultdict(float)  # of each host's jobs, if each began as early as it may
        free: dict[str, float] = defaultdict(float)  # when each host may be visited, by the visits to it alone
        for job in jobs:
            chain = job[0].host
            ends[chain] = self._after_job(job, ends[chain], cooldown)
            for hit in job:
                free[hit.host] += hit.ended - hit.started + self._rest_after(hit, cooldown)
        busiest = {host: max(ends[host], free[host]) for host in free}
        host = max(busiest, key=lambda name: busiest[name])
        service = sum(hit.ended - hit.started for hit in hits)
        return Pace(
            visits=len(hits),
            hops=len(hits) - sum(map(self._is_first, hits)),
            took=max(hit.ended for hit in hits) - min(hit.started for hit in hits),
            shared=service / CONCURRENCY,
            busiest=busiest[host] - cooldown,
            host=host,
        )

    def _answers(self) -> Iterator[tuple[Hit, Look]]:
        asked: Counter[str] = Counter()
        for hit in filter(self._is_first, self.hits):
            url = self._urls[hit.host, hit.target or ""]
            looks = self._script.looks(url, self._week)
            yield hit, looks[min(asked[url], len(looks) - 1)]
            asked[url] += 1

    def _is_first(self, hit: Hit) -> bool:
        """Whether it was for a page of the handbook, and no hop."""
        return (hit.host, hit.target) in self._urls

    def _rest_after(self, hit: Hit, cooldown: float) -> float:
        look = self._looks.get((hit.host, hit.started))
        return max(cooldown, look.pause if look is not None else 0.0)

    def _jobs(self, hits: Sequence[Hit]) -> list[list[Hit]]:
        """The visits of each look at a link: the first page, and where it led."""
        jobs: list[list[Hit]] = []
        latest: dict[str, list[Hit]] = {}
        for hit in hits:
            url = self._script.hops.get((hit.host, hit.target or ""))
            if url is not None and url in latest:
                latest[url].append(hit)
                continue
            jobs.append([hit])
            if self._is_first(hit):
                latest[self._urls[hit.host, hit.target or ""]] = jobs[-1]
        return jobs

    def _after_job(self, job: Sequence[Hit], start: float, cooldown: float) -> float:
        """When the first host's next job may begin, if this one began at `start`."""
        now, own_rest = start, start
        for hit in job:
            now = max(now, own_rest) if hit.host == job[0].host else now
            now += hit.ended - hit.started
            if hit.host == job[0].host:
                own_rest = now + self._rest_after(hit, cooldown)
        return max(now, own_rest)
