"""How long a run has to take at least, what makes it fit its window, and when its hosts best begin. Pure arithmetic.

A chain is what one visitor after another does on a host: visit, rest, visit. A host whose owner agreed to an allowance
of k has k chains, each with its own rests.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from linkwatch_pipeline.domain.allowances import host_of

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How links are visited: so many at once, each taking so long on average, each followed by a rest of its host."""

    concurrency: int
    mean_service: timedelta
    cooldown: timedelta

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.mean_service <= timedelta(0) or self.cooldown < timedelta(0):
            raise ValueError("a pace has a slot, a service time and no negative rest")

    def chain_time(self, links: int) -> timedelta:
        """The least time for `links` visits one after the other: nobody waits for the rest after the last one."""
        return links * (self.mean_service + self.cooldown) - self.cooldown if links else timedelta(0)

    def links_within(self, window: timedelta) -> int:
        """How many links one chain gets done within the window."""
        return (window + self.cooldown) // (self.mean_service + self.cooldown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The least time that politeness allows. `work` is the time of all visits, side by side or not, without rests.

    The busiest host is the one that takes longest alone: with the longest chain.
    """

    links: int
    hosts: int
    work: timedelta
    shared: timedelta
    busiest_host: str
    busiest_links: int
    busiest_chains: int
    busiest: timedelta

    @property
    def makespan(self) -> timedelta:
        """No order of visits is done sooner."""
        return max(self.shared, self.busiest)


def bound(chains: Mapping[str, int], pace: Pace) -> Bound:
    """The larger of all work over the slots, and of the longest chain.

    Args: chains: links per chain, by the name of its slot (`domain.allowances`): a host's own where it has one.
    Raises: ValueError without any link.
    """
    if not any(chains.values()):
        raise ValueError("there is no link to visit")
    on_hosts = links_on_hosts(chains)
    longest = max(chains, key=lambda slot: (chains[slot], on_hosts[host_of(slot)]))
    busiest_host = host_of(longest)
    work = sum(chains.values()) * pace.mean_service
    return Bound(
        links=sum(chains.values()),
        hosts=len(on_hosts),
        work=work,
        shared=work / pace.concurrency,
        busiest_host=busiest_host,
        busiest_links=on_hosts[busiest_host],
        busiest_chains=sum(host_of(slot) == busiest_host for slot in chains),
        busiest=pace.chain_time(chains[longest]),
    )


def links_on_hosts(chains: Mapping[str, int]) -> dict[str, int]:
    """Links per host, those without any left out."""
    on_hosts: dict[str, int] = {}
    for slot, links in chains.items():
        if links:
            on_hosts[host_of(slot)] = on_hosts.get(host_of(slot), 0) + links
    return on_hosts


def agreed_chains(links_per_host: Mapping[str, int], allowance: int) -> dict[str, int]:
    """Links per chain. The busiest host alone, the one to agree with first, has `allowance` chains of equal length."""
    if allowance < 1:
        raise ValueError("a host allows at least one visit at a time")
    chains = {host: links for host, links in links_per_host.items() if links}
    if allowance > 1 and chains:
        host = max(chains, key=lambda each: chains[each])
        links = chains.pop(host)
        parts = [links // allowance + (number < links % allowance) for number in range(allowance)]
        # A host's name holds no `#`.
        chains.update((f"{host}#{number}", part) for number, part in enumerate(parts, start=1) if part)
    return chains


@dataclass(frozen=True, slots=True, kw_only=True)
class DaysPlan:
    """Runs of one window each, on so many days, with at most so many links a day, in all and of the busiest host."""

    days: int
    links_a_day: int
    busiest_a_day: int

    def due_day(self, place: int) -> int:
        """On which day, from 0, the link is due that stands at `place`, from 0, in the registry's (host, id) order.

        A host's links stand side by side there, so they fall on the days in turn: no day has more of them than its
        share, nor more links in all.
        """
        return place % self.days


def plan_over_days(chains: Mapping[str, int], pace: Pace, *, window: timedelta) -> DaysPlan | None:
    """The fewest days on which every day's part has a bound within the window. None if no link fits into it."""
    by_chain, by_slots = pace.links_within(window), pace.concurrency * window // pace.mean_service
    if by_chain < 1 or by_slots < 1:
        return None
    links, longest = sum(chains.values()), max(chains.values(), default=0)
    most = max(links_on_hosts(chains).values(), default=0)
    days = max(1, math.ceil(longest / by_chain), math.ceil(links / by_slots))
    return DaysPlan(days=days, links_a_day=math.ceil(links / days), busiest_a_day=math.ceil(most / days))


def needed_allowance(links: int, pace: Pace, *, window: timedelta) -> int | None:
    """How many chains one host would have to allow to be done within the window; None if none are enough."""
    in_time = pace.links_within(window)
    return math.ceil(links / in_time) if in_time else None


def planned_starts(chains: Mapping[str, int], pace: Pace) -> dict[str, timedelta]:
    """When each chain's first message should become visible, in whole seconds after the dispatch.

    For a queue that hands out the longest visible first (SQS has no other order): chains longer than half the bound
    begin at 0. The others begin, the longest first, as the planned load leaves room, and at the latest when they are
    as long as half of what is left of the bound. A queue that delays by 900 s at most is given later starts by the
    tick.
    """
    waiting = sorted(((links, host) for host, links in chains.items() if links), key=lambda each: (-each[0], each[1]))
    if not waiting:
        return {}
    load, starts = _PlannedLoad(pace.concurrency), dict[str, timedelta]()
    least = bound(chains, pace).makespan.total_seconds()
    for links, host in waiting:
        takes = pace.chain_time(links).total_seconds()
        weight = links * pace.mean_service.total_seconds() / takes
        load.advance(until_it_takes=weight, at_the_latest=least - 2 * takes)
        starts[host] = int(load.now) * SECOND
        load.add(takes, weight)
    return starts


# The slots are promised to a quarter more chains than they can serve at once: a chain's visits come unevenly, and
# with less on hand slots idle. With much more, long chains wait behind the messages of short ones.
_ROOM = 1.25
_ROUNDING = 1e-6  # of a sum of many fractions


class _PlannedLoad:
    """The chains going on at a planned moment. Each loads a slot only while it visits; overloaded, all go slower."""

    def __init__(self, concurrency: int) -> None:
        self.now = 0.0  # seconds after the dispatch
        self._concurrency = concurrency
        self._progress = 0.0  # seconds that a chain which began at 0 has got done
        self._load = 0.0
        self._ends: list[tuple[float, float]] = []  # by progress, with the weight that ends then

    def add(self, takes: float, weight: float) -> None:
        heapq.heappush(self._ends, (self._progress + takes, weight))
        self._load += weight

    def advance(self, *, until_it_takes: float, at_the_latest: float) -> None:
        """Move on until there is room for a chain of this weight, but not past the latest moment."""
        while self._ends and self._load + until_it_takes > _ROOM * self._concurrency + _ROUNDING:
            if self.now >= at_the_latest:
                return
            slower = max(1.0, self._load / self._concurrency)
            progress, weight = self._ends[0]
            ends_at = self.now + (progress - self._progress) * slower
            if ends_at > at_the_latest:
                self._progress += (at_the_latest - self.now) / slower
                self.now = at_the_latest
                return
            heapq.heappop(self._ends)
            self.now, self._progress = ends_at, progress
            self._load -= weight


def shape(*, links: int, hosts: int, busiest: int) -> Iterable[tuple[str, int]]:
    """Hosts with their links: one with `busiest`, the others with equal shares. Raises ValueError if none are so."""
    others = hosts - 1
    rest = links - busiest
    if hosts < 1 or rest < others or (others == 0 and rest) or (others and math.ceil(rest / others) > busiest):
        raise ValueError("no such hosts")
    return _shape(busiest, others, rest)


def _shape(busiest: int, others: int, rest: int) -> Iterator[tuple[str, int]]:
    yield "busiest.example", busiest
    for number in range(others):
        yield f"h{number:06d}.example", rest // others + (number < rest % others)
