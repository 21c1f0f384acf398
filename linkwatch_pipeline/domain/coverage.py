"""How much a run and a week really saw (docs/explanation/counting-rules.md).

Uncertain is not down, throttled is not seen, and 0/0 or a forgotten run is "no data", never 100 %. In a week a link
counts once, by its last look of the week's runs; checks by hand count nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.reasons import Reason
from linkwatch_pipeline.domain.runs import JobStatus, RunCounts, RunState
from linkwatch_pipeline.domain.timestamps import WEEK, week_start

WARN_BELOW = 0.90
REPEATED_FROM = 2  # weeks in a row from which uncertainty is called repeated
_SEEN = (Outcome.REACHABLE, Outcome.BROKEN, Outcome.CONTENT_CHANGED)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekCount:
    """One week: how its weekly run went, as the store has it, and how many links ended with which outcome.

    `run_state` and `counts` are None when the store knows no run of the week (any more), `links` when no look of a run
    is known: no data, which is not nought. Of a week that was missed there are no counts.
    """

    week: datetime
    run_state: RunState | None = None
    counts: RunCounts | None = None
    links: Mapping[Outcome, int] | None = None

    @property
    def completeness(self) -> float | None:
        return completeness(self.counts) if self.counts is not None else None

    @property
    def coverage(self) -> float | None:
        return coverage(self.counts) if self.counts is not None else None

    @property
    def links_seen(self) -> int | None:
        """How many links were looked at, whatever the outcome."""
        return sum(self.links.values()) if self.links is not None else None

    def count(self, outcome: Outcome) -> int | None:
        """How many links ended so; None is no data."""
        return self.links.get(outcome, 0) if self.links is not None else None

    def share(self, outcome: Outcome) -> float | None:
        """The part of the links looked at that ended so, 0 to 1; None is no data."""
        return self.links.get(outcome, 0) / self.links_seen if self.links and self.links_seen else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTrouble:
    """A host's links in a week: how many were looked at, how many ended badly or in doubt, and the reasons of those."""

    host: str
    links: int
    broken: int
    uncertain: int
    throttled: int
    reasons: Mapping[Reason, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedUncertainty:
    """A link that nobody has been sure about for `weeks` weeks in a row, first observed so at `since`.

    `reason` is this week's, `reasons` are all of these weeks', in alphabetical order.
    """

    link_id: str
    url: str
    weeks: int
    since: datetime
    reason: Reason | None
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedContent:
    """A page that answered without the text expected of it: a person has to look."""

    link_id: str
    url: str
    observed_at: datetime
    status: int | None
    final_url: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked(Generic[T]):
    """The first rows of a list, and how many there are in all."""

    rows: tuple[T, ...] = ()
    total: int = 0


def completeness(counts: RunCounts) -> float | None:
    """Terminal jobs over expected ones, 0 to 1; None when none were expected."""
    return counts.terminal / counts.expected if counts.expected else None


def coverage(counts: RunCounts) -> float | None:
    """Jobs with a verdict over those that were to be checked (cancelled ones left out), 0 to 1; None is "no data"."""
    to_check = counts.expected - counts.by_end.get(JobStatus.CANCELLED.value, 0)
    seen = sum(counts.by_end.get(outcome.value, 0) for outcome in _SEEN)
    return seen / to_check if to_check > 0 else None


def every_week(known: Iterable[datetime], *, through: datetime) -> list[datetime]:
    """All weeks from the first known one to `through`, the newest first, those that nobody ran included."""
    weeks = [week_start(through)]
    first = min((week_start(week) for week in known), default=weeks[0])
    while weeks[-1] > first:
        weeks.append(weeks[-1] - WEEK)
    return weeks


def is_poor(value: float | None) -> bool:
    """Whether a coverage deserves a warning; no data does."""
    return value is None or value < WARN_BELOW


def percent(value: float | None) -> str:
    """`99.5 %`, cut and never rounded up to 100, or `no data`."""
    return "no data" if value is None else f"{int(value * 1000) / 10:.1f} %"
