"""What a person looks at first after a week: pages that gave trouble, slow hosts, and what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nsmallest

from linkwatch_pipeline.domain.links import Link, LinkState
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.observations import Observation
from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.runs import Run, RunCounts, is_missed_too_early, weekly_run_id
from linkwatch_pipeline.domain.timestamps import WEEK
from linkwatch_pipeline.domain.transitions import Transition
from linkwatch_pipeline.domain.urls import host_key
from linkwatch_pipeline.ports import Damaged, Store
from linkwatch_pipeline.use_cases.close_run import run_counts
from linkwatch_pipeline.use_cases.damage import Damage, each_alone
from linkwatch_pipeline.use_cases.observe_week import week_runs

_WORST_OUTCOME_FIRST = (Outcome.BROKEN, Outcome.CONTENT_CHANGED, Outcome.UNCERTAIN, Outcome.THROTTLED)
_WORST_STATE_FIRST = (LinkState.BROKEN, LinkState.UNKNOWN, LinkState.REACHABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPace:
    """How fast a host answered in a week: its observations, their mean and highest latency in milliseconds."""

    host: str
    observations: int
    mean_ms: float
    slowest_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One run of a week and its arithmetic."""

    run: Run
    counts: RunCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekReview:
    """A week so far. `runs` begins with the weekly run; retry runs follow.

    `troubled` is the last observation of each link that was not found reachable, the worst outcomes first.
    """

    runs: tuple[RunSummary, ...]
    troubled: tuple[Observation, ...]
    paces: Mapping[str, HostPace]

    @property
    def weekly(self) -> RunSummary:
        return self.runs[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySummary:
    """The watched links: how many there are per state and without an owner, and some of them, broken ones first."""

    by_state: Mapping[LinkState, int]
    without_owner: int
    links: tuple[Link, ...]

    @property
    def watched(self) -> int:
        return sum(self.by_state.values())


def review_week(store: Store, intended_at: datetime) -> WeekReview | None:
    """The week's runs as they stand, without observations that are damaged; None if there is none."""
    weekly = store.get_run(weekly_run_id(intended_at))
    if weekly is None:
        return None
    runs, damage = week_runs(store, weekly), Damage()
    last: dict[str, Observation] = {}
    paces: dict[str, _Pace] = {}
    for run in runs:
        for seen in store.observations(run_id=run.run_id, damaged=damage):
            paces.setdefault(host_key(seen.url), _Pace()).add(seen.latency_ms)
            if seen.outcome is Outcome.REACHABLE:
                last.pop(seen.link_id, None)
            else:
                last[seen.link_id] = seen
    return WeekReview(
        runs=tuple(RunSummary(run=run, counts=run_counts(store, run)) for run in runs),
        troubled=tuple(sorted(last.values(), key=lambda o: (_WORST_OUTCOME_FIRST.index(o.outcome), o.link_id))),
        paces={host: pace.of(host) for host, pace in paces.items()},
    )


def latest_week(store: Store, *, now: datetime) -> datetime | None:
    """The intended time of the newest week that the store knows, None if it knows none."""
    return max(
        (run.intended_at for run in store.runs(damaged=Damage()) if not is_missed_too_early(run, now)), default=None
    )


def summarise_registry(store: Store, *, most: int) -> RegistrySummary:
    """The links that are watched now, `most` of them named."""
    damage = Damage()

    def watched() -> Iterable[Link]:
        return (link for link in store.links(damaged=damage) if link.retired_at is None)

    counts = Counter(link.state for link in watched())
    return RegistrySummary(
        by_state={state: counts[state] for state in LinkState},
        without_owner=sum(link.owner is None for link in watched()),
        links=tuple(nsmallest(most, watched(), key=lambda link: (_WORST_STATE_FIRST.index(link.state), link.id))),
    )


def changes_of_week(
    store: Store, week: datetime, *, damaged: Damaged | None = None
) -> list[tuple[Transition, Notice | None]]:
    """The transitions of a week (its Monday 09:00 until the next), each with its notice, in time order.

    One that is damaged, or whose notice is, is left out: it is neither told nor lost.
    """
    damage = damaged or Damage()
    stored = store.transitions(damaged=damage)
    found = sorted((t for t in stored if week <= t.at < week + WEEK), key=lambda t: (t.at, t.id))
    changes: list[tuple[Transition, Notice | None]] = []
    each_alone(found, lambda transition: changes.append((transition, store.get_notice(transition.id))), damage)
    return changes


def notices_of_week(store: Store, week: datetime) -> list[Notice]:
    """The notices of what was observed in a week, in the order in which they were made."""
    return [notice for notice in store.notices(damaged=Damage()) if week <= notice.observed_at < week + WEEK]


def slowest_hosts(paces: Iterable[HostPace], *, most: int) -> Sequence[HostPace]:
    """The hosts with the highest mean latency, the slowest first."""
    return nsmallest(most, paces, key=lambda pace: (-pace.mean_ms, pace.host))


@dataclass(slots=True)
class _Pace:
    """One host's observations so far. A week may have hundreds of thousands: they are added up, not kept."""

    observations: int = 0
    total_ms: int = 0
    slowest_ms: int = 0

    def add(self, latency_ms: int) -> None:
        self.observations += 1
        self.total_ms += latency_ms
        self.slowest_ms = max(self.slowest_ms, latency_ms)

    def of(self, host: str) -> HostPace:
        mean_ms = self.total_ms / self.observations
        return HostPace(host=host, observations=self.observations, mean_ms=mean_ms, slowest_ms=self.slowest_ms)
