"""How much a run really saw. Uncertain is not down, throttled is not seen, and 0/0 is "no data", never 100 %."""

from __future__ import annotations

from linkwatch_pipeline.domain.outcomes import Outcome
from linkwatch_pipeline.domain.runs import JobStatus, RunCounts

WARN_BELOW = 0.90
_SEEN = (Outcome.REACHABLE, Outcome.BROKEN, Outcome.CONTENT_CHANGED)


def completeness(counts: RunCounts) -> float | None:
    """Terminal jobs over expected ones, 0 to 1; None when none were expected."""
    return counts.terminal / counts.expected if counts.expected else None


def coverage(counts: RunCounts) -> float | None:
    """Jobs with a verdict over those that were to be checked (cancelled ones left out), 0 to 1; None is "no data"."""
    to_check = counts.expected - counts.by_end.get(JobStatus.CANCELLED.value, 0)
    seen = sum(counts.by_end.get(outcome.value, 0) for outcome in _SEEN)
    return seen / to_check if to_check > 0 else None


def is_poor(value: float | None) -> bool:
    """Whether a coverage deserves a warning; no data does."""
    return value is None or value < WARN_BELOW


def percent(value: float | None) -> str:
    """`99.5 %`, cut and never rounded up to 100, or `no data`."""
    return "no data" if value is None else f"{int(value * 1000) / 10:.1f} %"
