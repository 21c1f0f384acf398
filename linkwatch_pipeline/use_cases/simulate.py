"""A run in virtual time, without store or network: visits, slots and rests only, so that 600,000 links take seconds.

The order is the engine's own (`domain.scheduling.WorkBook`), or one that it is compared with. Times are seconds.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from linkwatch_pipeline.domain.allowances import NO_ALLOWANCES, Allowances, host_of, slot_for
from linkwatch_pipeline.domain.planning import (
    Bound,
    DaysPlan,
    Pace,
    bound,
    links_on_hosts,
    needed_allowance,
    plan_over_days,
    planned_starts,
)
from linkwatch_pipeline.domain.runs import DEADLINE_AFTER, OPEN_FOR
from linkwatch_pipeline.domain.scheduling import WorkBook
from linkwatch_pipeline.ports import RegistryStore

# Seconds that a visit takes; asked once for each link, in the order of the hosts.
Service = Callable[[], float]
# Draws from the normal distribution of this mean and deviation.
Normal = Callable[[float, float], float]
_LONGEST_SERVICE = 5.0  # times the mean: SPEC 3's 10 s at its 2 s


OUR_ORDER = "most work left first"
MOST_HOSTS_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a run would take. `makespans` by order, ours first; `days` None if not even one link fits a day.

    `needed_allowance` names the longest of the hosts that alone exceed the run's window, at most five, with the visits
    at once that they would have to allow; `needs_more_slots` is how many the whole run would need, None if it has them.
    """

    pace: Pace
    least: Bound
    makespans: Mapping[str, timedelta]
    days: DaysPlan | None
    needed_allowance: Mapping[str, int]
    needs_more_slots: int | None

    @property
    def in_time(self) -> bool:
        """Whether it is finished by 09:30."""
        return self.makespans[OUR_ORDER] <= DEADLINE_AFTER

    @property
    def fits_window(self) -> bool:
        """Whether nothing expires."""
        return self.makespans[OUR_ORDER] <= OPEN_FOR


def forecast(chains: Mapping[str, int], pace: Pace, *, normal: Normal | None) -> Forecast:
    """Work out the bound, play the run in our order and in others, and say what would make it fit its window.

    Args:
        chains: links per chain, by the name of its slot, one at least: `links_per_slot`, `agreed_chains`.
        normal: varies how long visits take; None: each takes the mean.
    """
    service = fixed_service(pace) if normal is None else varied_service(pace, normal)
    work = Workload(chains, service, pace)
    slots = math.ceil(len(work.takes) * pace.mean_service / OPEN_FOR)
    return Forecast(
        pace=pace,
        least=bound(chains, pace),
        makespans={
            OUR_ORDER: in_our_order(work),
            "plain FIFO, by host": in_given_order(work, range(len(work.takes))),
            "planned starts on a queue": with_planned_starts(work),
            "all starts at once on a queue": on_message_queue(work, {}),
        },
        days=plan_over_days(chains, pace, window=OPEN_FOR),
        needed_allowance=_allowances(chains, pace),
        needs_more_slots=slots if slots > pace.concurrency else None,
    )


def _allowances(chains: Mapping[str, int], pace: Pace) -> dict[str, int]:
    agreed = Counter(host_of(slot) for slot in chains)
    too_long = {host_of(slot) for slot, links in chains.items() if pace.chain_time(links) > OPEN_FOR}
    on_hosts = ((host, links) for host, links in links_on_hosts(chains).items() if host in too_long)
    longest = heapq.nlargest(MOST_HOSTS_NAMED, on_hosts, key=lambda each: each[1])
    needed = ((host, needed_allowance(links, pace, window=OPEN_FOR)) for host, links in longest)
    # Slots are never filled quite evenly: where as many as needed are agreed to, one more helps.
    return {host: max(number, agreed[host] + 1) for host, number in needed if number is not None}


@dataclass(slots=True)
class Workload:
    """Chains of links and how long each visit takes: the same for every order that is tried.

    Args:
        chains: links per chain, in the order of the registry.
        service: how long each takes.
    """

    chains: Mapping[str, int]
    service: Service
    pace: Pace
    names: list[str] = field(init=False)
    first: array[int] = field(init=False)
    takes: array[float] = field(init=False)

    def __post_init__(self) -> None:
        self.names = list(self.chains)
        self.first, self.takes = array("q", [0]), array("d")
        for links in self.chains.values():
            self.takes.extend(self.service() for _ in range(links))
            self.first.append(len(self.takes))

    @property
    def bound(self) -> timedelta:
        """The least makespan for these very visits."""
        rest = self.pace.cooldown.total_seconds()
        longest = max(
            sum(self.takes[begin:end]) + (end - begin - 1) * rest
            for begin, end in zip(self.first, self.first[1:], strict=False)
        )
        return timedelta(seconds=max(sum(self.takes) / self.pace.concurrency, longest))


def links_per_slot(store: RegistryStore, allowances: Allowances, *, busiest: int | None = None) -> dict[str, int]:
    """How many links are watched on each host, or each slot of one, read as a stream.

    Args: busiest: visits at once that the host with the most links allows; None for what `allowances` say.
    """
    if busiest is not None:
        on_hosts = links_per_slot(store, NO_ALLOWANCES)
        most = {max(on_hosts, key=lambda host: on_hosts[host]): busiest} if on_hosts else {}
        return links_per_slot(store, {**allowances, **most})
    watched = (link for link in store.links_by_host(brief=True) if link.retired_at is None)
    return dict(Counter(slot_for(link.id, link.host, allowances.get(link.host, 1)) for link in watched))


def fixed_service(pace: Pace) -> Service:
    """Every visit takes the mean."""
    mean = pace.mean_service.total_seconds()
    return lambda: mean


def varied_service(pace: Pace, normal: Normal) -> Service:
    """Log-normal around the mean, and at most five times as long."""
    mean, sigma = pace.mean_service.total_seconds(), 0.5
    return lambda: mean * min(math.exp(normal(-sigma * sigma / 2, sigma)), _LONGEST_SERVICE)


def in_our_order(work: Workload) -> timedelta:
    """The makespan when the host with the most work left goes first and a slot is kept for a critical one."""
    return timedelta(seconds=_Engine(work).play())


def in_given_order(work: Workload, order: Iterable[int]) -> timedelta:
    """The makespan of plain FIFO: slots take the links in `order` (numbers into `takes`) and wait there for the host.

    This is what a worker pool does that reads a list and holds a lock per host.
    """
    rest = work.pace.cooldown.total_seconds()
    slots = [0.0] * work.pace.concurrency
    allowed = array("d", bytes(8 * len(work.names)))
    chain_of = _chain_numbers(work)
    last = 0.0
    for link in order:
        chain = chain_of[link]
        ends = max(slots[0], allowed[chain]) + work.takes[link]
        heapq.heapreplace(slots, ends)
        allowed[chain] = ends + rest
        last = max(last, ends)
    return timedelta(seconds=last)


def on_message_queue(work: Workload, starts: Mapping[str, timedelta]) -> timedelta:
    """The makespan on a queue that hands out by visible time and delays by whole seconds, as SQS does.

    `starts` is when each chain's first message becomes visible; a chain without one is visible at 0. Starts that lie
    further ahead than one delay are sent by the tick, which looks each minute and so loses nothing.
    """
    delay = math.ceil(work.pace.cooldown.total_seconds())
    ready = [(starts.get(name, timedelta(0)).total_seconds(), n) for n, name in enumerate(work.names)]
    heapq.heapify(ready)
    following = array("q", work.first[:-1])
    slots = [0.0] * work.pace.concurrency
    last = 0.0
    while ready:
        visible, chain = heapq.heappop(ready)
        ends = max(slots[0], visible) + work.takes[following[chain]]
        heapq.heapreplace(slots, ends)
        last = max(last, ends)
        following[chain] += 1
        if following[chain] < work.first[chain + 1]:
            heapq.heappush(ready, (ends + delay, chain))
    return timedelta(seconds=last)


def with_planned_starts(work: Workload) -> timedelta:
    """`on_message_queue`, each chain beginning when it was planned from the mean service time."""
    return on_message_queue(work, planned_starts(work.chains, work.pace))


def _chain_numbers(work: Workload) -> array[int]:
    numbers = array("q")
    for number, links in enumerate(work.chains.values()):
        numbers.extend([number] * links)
    return numbers


class _Engine:
    """Slots, hosts and rests as `use_cases.work` has them, over one heap of moments."""

    def __init__(self, work: Workload) -> None:
        self._work = work
        self._rest = work.pace.cooldown.total_seconds()
        self._book = WorkBook(concurrency=work.pace.concurrency, cooldown=work.pace.cooldown)
        self._following = array("q", work.first[:-1])
        self._moments: list[tuple[float, bool, int]] = []  # a visit ends (False), a host has rested (True)
        self._ready: list[tuple[float, int, int]] = []  # by urgency, then as they became ready
        self._readied = 0
        self._busy = 0

    def play(self) -> float:
        now = last = 0.0
        for chain, (name, links) in enumerate(self._work.chains.items()):
            self._book.expect(name, links)
            self._moments.append((0.0, True, chain))
        heapq.heapify(self._moments)
        while self._moments:
            now = self._moments[0][0]
            while self._moments and self._moments[0][0] <= now:
                _, has_rested, chain = heapq.heappop(self._moments)
                if has_rested:
                    self._make_ready(chain)
                else:
                    self._end(chain, now)
                    last = now
            self._fill_slots(now)
        return last

    def _make_ready(self, chain: int) -> None:
        self._readied += 1
        urgency = self._book.work_left(self._work.names[chain])
        heapq.heappush(self._ready, (-urgency, self._readied, chain))

    def _end(self, chain: int, now: float) -> None:
        link = self._following[chain]
        self._following[chain] = link + 1
        self._busy -= 1
        took = timedelta(seconds=self._work.takes[link])
        self._book.end(self._work.names[chain], took=took, jobs_done=1)
        if link + 1 < self._work.first[chain + 1]:
            heapq.heappush(self._moments, (now + self._rest, True, chain))

    def _fill_slots(self, now: float) -> None:
        while self._ready and self._busy < self._work.pace.concurrency:
            chain = self._ready[0][2]
            name = self._work.names[chain]
            if not self._book.is_critical(name) and self._book.keeps_last_slot(self._busy):
                return
            heapq.heappop(self._ready)
            self._book.begin(name)
            self._busy += 1
            heapq.heappush(self._moments, (now + self._work.takes[self._following[chain]], False, chain))
