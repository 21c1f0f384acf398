"""From the servers' own log: whether every host was left in peace, and how long a run took beside its bound."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from linkwatch_pipeline_tests.campaigns.fates import Look, Script
from linkwatch_pipeline_tests.world import Hit, RequestLog


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
            f"(all work over the slots: {self.shared:.2f} s, {self.host}: {self.busiest:.2f} s); {self.ratio:.3f}"
        )


class WeekLog:
    """One week's hits, each with the answer that the script gave."""

    def __init__(self, script: Script, log: RequestLog, week: int) -> None:
        self._script = script
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
        return Counter(_url_of(hit) for hit in self.hits if self._is_first(hit))

    def pace(self, cooldown: float, concurrency: int, *, since: float, until: float) -> Pace:
        """The pace of the visits that began between two moments."""
        hits = [hit for hit in self.hits if since <= hit.started <= until]
        busiest = self._needs(hits, cooldown)
        host = max(busiest, key=lambda name: busiest[name])
        return Pace(
            visits=len(hits),
            hops=len(hits) - sum(map(self._is_first, hits)),
            took=max(hit.ended for hit in hits) - min(hit.started for hit in hits),
            shared=sum(hit.ended - hit.started for hit in hits) / concurrency,
            busiest=busiest[host],
            host=host,
        )

    def _needs(self, hits: Sequence[Hit], cooldown: float) -> dict[str, float]:
        """The seconds that each host needs: for its own jobs one after the other, or for all visits to it."""
        needs: dict[str, float] = {}
        next_job: dict[str, float] = defaultdict(float)
        next_visit: dict[str, float] = defaultdict(float)
        for job in self._jobs(hits):
            own = job[0].host
            now = rested = next_job[own]
            for hit in job:
                takes, rest = hit.ended - hit.started, self._rest_after(hit, cooldown)
                now = (max(now, rested) if hit.host == own else now) + takes
                rested = now + rest if hit.host == own else rested
                needs[hit.host] = max(needs.get(hit.host, 0.0), next_visit[hit.host] + takes)
                next_visit[hit.host] += takes + rest
            needs[own] = max(needs[own], now)
            next_job[own] = max(now, rested)
        return needs

    def _answers(self) -> Iterator[tuple[Hit, Look]]:
        asked: Counter[str] = Counter()
        for hit in filter(self._is_first, self.hits):
            url = _url_of(hit)
            looks = self._script.looks(url, self._week)
            yield hit, looks[min(asked[url], len(looks) - 1)]
            asked[url] += 1

    def _is_first(self, hit: Hit) -> bool:
        """Whether it was for a page of the handbook, and no hop."""
        return _url_of(hit) in self._script.fates

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
                latest[_url_of(hit)] = jobs[-1]
        return jobs


def _url_of(hit: Hit) -> str:
    return f"{hit.scheme}://{hit.host}{hit.target}"
